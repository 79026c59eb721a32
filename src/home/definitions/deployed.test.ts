// The definitions in deploy/crds, as the embedded server takes them in, and objects of each kind under them.

import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { addressClaimType } from '../../addresses/address-claim.ts';
import { inOneGo } from '../../base/turns.ts';
import { clusterType } from '../../clusterset/kinds/cluster.ts';
import { clusterPropertyType } from '../../clusterset/kinds/cluster-property.ts';
import { clusterSetDefaults, clusterSetType } from '../../clusterset/kinds/cluster-set.ts';
import { federatedServiceType } from '../../clusterset/kinds/federated-service.ts';
import { serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { serviceExportPolicyType } from '../../clusterset/kinds/service-export-policy.ts';
import { serviceImportType } from '../../clusterset/kinds/service-import.ts';
import { serviceShardType } from '../../clusterset/kinds/service-shard.ts';
import { hostnameGeneratorType } from '../../external/kinds/hostname-generator.ts';
import { meshExternalServiceType } from '../../external/kinds/mesh-external-service.ts';
import { federationType } from '../../federation/kinds/federation.ts';
import type { AnyObject, ResourceType } from '../../kube/objects/object.ts';
import { peerType } from '../../peering/kinds/peer.ts';
import { peerExportType } from '../../peering/kinds/peer-export.ts';
import { peerServiceType } from '../../peering/kinds/peer-service.ts';
import { customResourceDefinitionKind } from '../kinds/custom-resource-definition.ts';
import type { Kind } from '../kinds/kind.ts';
import { applySchemaDefaults } from '../schema/defaults.ts';
import { pruneUnknownFields } from '../schema/prune.ts';
import { validateSchema } from '../schema/validate.ts';
import { acceptDefinition } from './accept.ts';
import { loadDefinitions } from './bundled.ts';
import type { CustomResourceDefinition } from './definition.ts';
import { kindsFromDefinition } from './kind-of.ts';
import { definitionWarnings } from './validate.ts';

const folder = new URL('../../../deploy/crds/', import.meta.url);
const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'));
const definitions = loadDefinitions(files.map((name) => readFileSync(new URL(name, folder), 'utf8')));

function accept(object: AnyObject, others: readonly Kind[]): CustomResourceDefinition {
  const { schema } = customResourceDefinitionKind.versions[0]!;
  const { applyDefaults, validateInPieces } = customResourceDefinitionKind.behaviour;
  const copy = structuredClone(object);
  expect(pruneUnknownFields(schema, copy)).toEqual([]);
  applyDefaults!(copy);
  expect([...validateSchema(schema, copy), ...inOneGo(validateInPieces!(copy, undefined))]).toEqual([]);
  const definition = copy as unknown as CustomResourceDefinition;
  definition.status = acceptDefinition(definition, others, '2026-01-01T00:00:00Z');
  return definition;
}

const kinds: Kind[] = [];
for (const object of definitions) {
  const definition = accept(object, kinds);
  expect(definition.status!.conditions!.map(({ status }) => status)).toEqual(['True', 'True']);
  kinds.push(kindsFromDefinition(definition));
}

function kindOf(name: string): Kind {
  return kinds.find(({ kind }) => kind === name)!;
}

/** The result of a strict create: the object afterwards, or all its problems. */
function create(kindName: string, text: string): { object: AnyObject; wrong: string[] } {
  const { schema } = kindOf(kindName).versions[0]!;
  const object = parse(text) as AnyObject;
  const unknown = pruneUnknownFields(schema, object).map((path) => `unknown field ${path}`);
  applySchemaDefaults(schema, object);
  const errors = validateSchema(schema, object).map(({ field, message }) => `${field}: ${message}`);
  return { object, wrong: [...unknown, ...errors] };
}

describe('definitions of deploy/crds', () => {
  test('crds: every kind of the plan that is not built in -> a file, named by its plural', () => {
    expect(kinds.map(({ kind }) => kind).sort()).toEqual([
      ...[
        'AddressClaim',
        'Cluster',
        'ClusterProperty',
        'ClusterSet',
        'EndpointShard',
        'FederatedService',
        'Federation',
      ],
      ...[
        'Heartbeat',
        'HostnameGenerator',
        'LivenessReport',
        'MeshExternalService',
        'Peer',
        'PeerExport',
        'PeerService',
        'ServiceExport',
        'ServiceExportPolicy',
        'ServiceImport',
        'ServiceShard',
      ],
    ]);
    expect(files).toEqual(kinds.map(({ plural }) => `${plural}.yaml`).sort());
  });

  test('crds: nothing in them needs what this server does not do', () => {
    const found = definitions.flatMap((object) => definitionWarnings(object as unknown as CustomResourceDefinition));
    expect(found).toEqual([]);
  });

  test('crds: our own kinds -> in category portolan, with a short name; no name is used twice', () => {
    const own = kinds.filter(({ group }) => group === 'portolan.dev');
    expect(own.filter(({ categories }) => !categories.includes('portolan'))).toEqual([]);
    expect(own.filter(({ shortNames }) => shortNames.length === 0)).toEqual([]);
    const names = kinds.flatMap(({ plural, singular, shortNames }) => [plural, singular, ...shortNames]);
    expect(new Set(names).size).toBe(names.length);
  });

  test.each(['ServiceExport', 'ServiceImport', 'ClusterProperty'])(
    'crds: %s -> v1beta1 preferred and stored, v1alpha1 served with the same schema [003-15, 003-83]',
    (name) => {
      const { versions, storageVersion } = kindOf(name);
      expect(versions.map((version) => [version.name, version.isServed])).toEqual([
        ['v1beta1', true],
        ['v1alpha1', true],
      ]);
      expect(storageVersion).toBe('v1beta1');
      expect(versions[1]!.schema).toEqual(versions[0]!.schema);
    },
  );

  const types: ResourceType[] = [
    ...[addressClaimType, clusterPropertyType, clusterSetType, clusterType, federatedServiceType, federationType],
    ...[hostnameGeneratorType, meshExternalServiceType, peerExportType, peerServiceType, peerType],
    ...[serviceExportPolicyType, serviceExportType, serviceImportType, serviceShardType],
  ];
  test.each(types)('crds: $kind -> named in the model as in its definition', (type) => {
    const { group, kind, plural, isNamespaced, storageVersion } = kindOf(type.kind);
    expect({ group, kind, plural, isNamespaced, version: storageVersion }).toEqual(type);
  });

  test('crds: every field has a type a person can read of, every kind a description', () => {
    for (const kind of kinds) expect(kind.versions[0]!.schema.description, kind.kind).toMatch(/^[A-Z].*\.$/);
  });
});

const valid: Record<string, string> = {
  MeshExternalService: `
    metadata: { name: example, namespace: portolan-system, labels: { kuma.io/mesh: default, kuma.io/zone: east-1 } }
    spec:
      match: [{ type: InternalVIP, value: example.ext.svc.local, port: 80, protocol: http }]
      destination:
        type: Regular
        endpoints: [{ address: 1.1.1.1, port: 12345 }, { address: example.com }, { address: 'unix:///run/app.sock' }]
        tls:
          enabled: true
          version: { min: TLSv1_2, max: TLSv1_3 }
          allowRenegotiation: false
          verification: { skip: true, subjectAltNames: [example.com, 'spiffe://example.local/ns/local'] }
          caCert: { inline: YWJj }
          clientCert: { secret: pair }
          clientKey: { secret: pair }
    status:
      vips: [{ ip: 242.0.0.1, type: Kuma, hostname: example.ext.svc.local }]
      addresses:
        - { hostname: a.b, status: NotAvailable, origin: { kind: HostnameGenerator, name: g }, reason: 'label "x" is missing' }
      overlaps: ['a and b have overlapping IPs']`,
  HostnameGenerator: `
    metadata: { name: k8s-zone-hostnames, namespace: prod }
    spec:
      targetRef: { kind: MeshExternalService, tags: { my.label.io/service: my-service } }
      selector: { matchLabels: { tier: db } }
      template: '{{ name }}.svc.meshext.local'
    status: { selected: 3 }`,
  ServiceExport: `
    metadata: { name: checkout, namespace: shop }
    spec: { exportedLabels: { tier: front }, exportedAnnotations: { note: hello } }
    status:
      conditions:
        - { type: Valid, status: 'True', reason: Valid, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }
        - { type: Conflict, status: 'True', reason: 'PortConflict,TypeConflict', message: m, lastTransitionTime: '2026-01-01T00:00:00Z', observedGeneration: 1 }`,
  ServiceImport: `
    metadata: { name: checkout, namespace: shop }
    spec:
      type: ClusterSetIP
      ports: [{ name: http, protocol: TCP, appProtocol: http, port: 80 }, { name: dns, protocol: UDP, port: 80 }]
      ips: [243.0.0.7, 'fd70:6f72:74f3::7']
      ipFamilies: [IPv4, IPv6]
      sessionAffinity: ClientIP
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 600 } }
      internalTrafficPolicy: Cluster
      trafficDistribution: PreferClose
    status: { clusters: [{ cluster: east }, { cluster: west.eu }], endpointSliceObjects: Present }`,
  ClusterProperty: `
    metadata: { name: cluster.clusterset.k8s.io }
    spec: { value: east }`,
  ClusterSet: `
    metadata: { name: prod, namespace: prod }
    spec:
      ports: intersection
      endpoints: ClusterIP
      clusterSetIP: none
      staleness: Keep
      lease: { renewSeconds: 5, durationSeconds: 15, holdDownSeconds: 0, holdDownMaxSeconds: 60 }
      addressRanges: { clusterSet: [10.99.0.0/16], peers: [], external: ['fd00::/64'] }
      addressHoldSeconds: 60
      dns: { zone: set.example, ttlSeconds: 1, clusterNames: Served }
      legacyNamespace: submariner-k8s-broker`,
  Cluster: `
    metadata: { name: east.eu, namespace: prod }
    spec:
      namespace: prod-m-east
      serviceAccountName: east
      region: eu
      zone: eu-1
      allowedRanges: [10.1.0.0/16, 'fd00:1::/64']
      resolver: { endpoint: 'https://10.1.0.2:8053', caBundle: YQ== }`,
  ServiceShard: `
    metadata: { name: checkout.shop, namespace: prod-m-east }
    spec:
      type: ClusterSetIP
      exportedAt: '2026-01-01T00:00:00Z'
      ports: [{ name: http, protocol: TCP, port: 80, appProtocol: http }, { name: dns, protocol: UDP, port: 80 }]
      sessionAffinity: ClientIP
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } }
      internalTrafficPolicy: Local
      trafficDistribution: PreferClose
      publishNotReadyAddresses: true
      exportedLabels: { a: b }
      exportedAnnotations: { c: d }
      ipFamilies: [IPv4]
      clusterIPs: [10.1.0.9]
      loadBalancer: [{ ip: 192.0.2.1 }, { hostname: lb.example.com }]
      clusterSetIPs: [243.0.0.7]
      readyEndpoints: 3
      exportTo: [west]
      endpointShards: 1
      onStale: NotReady`,
  EndpointShard: `
    metadata: { name: checkout-a.shop.pods, namespace: prod-m-east }
    addressType: IPv4
    endpoints:
      - addresses: [10.1.0.9]
        conditions: { ready: true, serving: true, terminating: false }
        hostname: web-0
        zone: eu-1a
    ports: [{ name: http, protocol: TCP, port: 8080, appProtocol: http }]`,
  Heartbeat: `
    metadata: { name: portolan-agent, namespace: prod-m-east }
    spec:
      holderIdentity: east
      leaseDurationSeconds: 30
      renewTime: '2026-01-01T00:00:00.000000Z'
      reads: AllNamespaces
      judging: true`,
  LivenessReport: `
    metadata: { name: portolan-liveness, namespace: prod-m-east }
    spec: { renewTime: '2026-01-01T00:00:00.000000Z', silent: [west] }`,
  ServiceExportPolicy: `
    metadata: { name: shops }
    spec:
      namespaces: [default]
      namespaceSelector: { matchLabels: { team: shop } }
      serviceSelector: { matchExpressions: [{ key: export, operator: In, values: ['yes'] }] }
      exportedLabels: { a: b }
      exportTo: [west]
      onStale: Withdraw
    status: { exportedServices: 2, observedGeneration: 1 }`,
  FederatedService: `
    metadata: { name: checkout.shop, namespace: prod }
    spec:
      clusters: [east, west]
      template:
        labels: { app: checkout }
        spec:
          type: LoadBalancer
          selector: { app: checkout }
          ports: [{ name: http, protocol: TCP, port: 80, targetPort: 8080 }, { name: https, protocol: TCP, port: 443, targetPort: tls }]
    status: { clusters: [{ cluster: east, state: Placed }] }`,
  Federation: `
    metadata: { name: world, namespace: prod }
    spec:
      suffix: federation
      clusters: [east]
      nameservers: [10.1.0.2, '10.1.0.3:5353', 'fd00::2', '[fd00::2]:5353']
      policy: nearest-only
      ttlSeconds: 10
      source: { optionCode: 65002, ranges: [10.0.0.0/8], tsigKeys: [{ name: resolver-key }], certificateNames: [east] }
      public:
        domain: example.com
        ttlSeconds: 30
        levels: [Zone, Region]
        provider: { type: RFC2136, rfc2136: { server: ns.example.com, zone: example.com, tsigSecret: { name: tsig } } }
    status: { services: 3, publicRecords: 9, stubZones: [{ cluster: east, state: Posted }] }`,
  AddressClaim: `
    metadata: { name: fd70-6f72-74f3-0-0-0-0-7 }
    spec:
      address: fd70:6f72:74f3::7
      owner: { kind: ServiceImport, namespace: shop, name: checkout }
      releasedAt: '2026-01-01T00:00:00Z'`,
  Peer: `
    metadata: { name: partner, namespace: portolan-system }
    spec:
      address: mesh.partner.example:7443
      serverName: mesh.partner.example
      versions: [v1alpha1]
      trust: { domain: partner.example, bundleSecret: { name: partner-roots }, identities: ['spiffe://partner.example/mesh'] }
      certificateSecret: { name: our-cert }
      allowedDomains: [partner.example, '*']
      retentionSeconds: 0
      window: 1
      foreign: { quietSeconds: 3, graceSeconds: 60 }
    status:
      consumer: { state: Synced, version: v1alpha1, services: 4, refused: 1, reconciliation: Marker, lastContact: '2026-01-01T00:00:00Z' }
      owner: { state: Syncing, unacknowledged: 2, identity: 'spiffe://partner.example/mesh' }`,
  PeerExport: `
    metadata: { name: shop, namespace: shop }
    spec:
      services: [checkout]
      serviceSelector: {}
      peers: [partner]
      fqdn: '{service}.{namespace}.our.example'
      serviceId: '{service}.{namespace}.our.example'
      san: 'spiffe://our.example/ns/shop/sa/db'
      serviceAccount: db
      ingress: [{ address: 192.0.2.9, port: 15443 }]
      protocols: [http]
      description: The shop
      tags: [shop]
      labels: { a: b }
    status: { services: 1, peers: [{ peer: partner, state: Refused, message: outside its domains }] }`,
  PeerService: `
    metadata: { name: partner-db, namespace: portolan-system }
    spec:
      peer: partner
      id: outbound_.8080_.v1_.db.partner.example
      name: db
      fqdn: db.partner.example
      tags: [db]
      labels: { a: b }
      sans: ['spiffe://partner.example/db']
      protocols: [mongo]
      endpoints: [{ address: ingress.partner.example, port: 15443, labels: [a], description: x }]
      instances: [{ id: i, protocol: mongo, metadata: { SNI: x }, endpointSelector: [a] }]
    status: { state: Active, ips: [241.0.0.1], hostnames: [db.partner.example] }`,
};

const missing = kinds.map(({ kind }) => kind).filter((kind) => !(kind in valid));

describe('objects of our kinds', () => {
  test('crds: every kind has an example here', () => expect(missing).toEqual([]));

  test.each(Object.entries(valid))(
    '%s: complete example -> taken, nothing lost or added [003-27, 003-47]',
    (kind, text) => {
      const { object, wrong } = create(kind, text);
      expect(wrong).toEqual([]);
      const given = parse(text);
      expect(object).toMatchObject(given);
    },
  );

  test('ClusterSet: no spec -> the defaults that the model knows', () => {
    const { object, wrong } = create('ClusterSet', 'metadata: { name: prod }');
    expect(wrong).toEqual([]);
    expect(object['spec']).toEqual(clusterSetDefaults);
  });

  test('ports: no protocol -> TCP', () => {
    const { object } = create('ServiceImport', 'spec: { type: Headless, ports: [{ port: 80 }] }');
    expect(object['spec']).toEqual({ type: 'Headless', ports: [{ port: 80, protocol: 'TCP' }] });
  });

  test('Peer: only what is required -> defaults', () => {
    const { object } = create('Peer', 'spec: { trust: { domain: a.b, bundle: pem } }');
    expect(object['spec']).toMatchObject({
      versions: ['v1alpha1', 'v1alpha2'],
      allowedDomains: [],
      retentionSeconds: 86_400,
      window: 1024,
      foreign: { quietSeconds: 3, graceSeconds: 60 },
    });
  });

  test.each<[string, string, string[]]>([
    [
      'ServiceExport',
      'spec: { exportedLabels: { a: 1 }, weight: 3 }',
      [
        'unknown field spec.weight',
        'spec.exportedLabels.a: Invalid value: "integer": spec.exportedLabels.a in body must be of type string: "integer"',
      ],
    ],
    [
      'ServiceImport',
      'spec: { ports: [{ port: 0 }, { name: x }], ips: [1.2.3.4, 1.2.3.5, 1.2.3.6] }',
      [
        'spec.type: Required value',
        'spec.ports[0].port: Invalid value: 0: spec.ports[0].port in body should be greater than or equal to 1',
        'spec.ports[1].port: Required value',
        'spec.ips: Too many: 3: must have at most 2 items',
      ],
    ],
    [
      'ServiceImport',
      'spec: { type: ExternalName, ips: [here] }',
      [
        'spec.type: Unsupported value: "ExternalName": supported values: "ClusterSetIP", "Headless"',
        'spec.ips[0]: Invalid value: "": "spec.ips[0]" must validate at least one schema (anyOf)',
        'spec.ips[0]: Invalid value: "here": spec.ips[0] in body must be of type ipv4: "here"',
      ],
    ],
    [
      'ClusterProperty',
      'spec: { value: "" }',
      ['spec.value: Invalid value: "": spec.value in body should be at least 1 chars long'],
    ],
    [
      'ClusterSet',
      'spec: { ports: both, lease: { renewSeconds: 0 }, addressRanges: { peers: [10.0.0.0/40] } }',
      [
        'spec.ports: Unsupported value: "both": supported values: "union", "intersection"',
        'spec.lease.renewSeconds: Invalid value: 0: spec.lease.renewSeconds in body should be greater than or equal to 1',
        'spec.addressRanges.peers[0]: Invalid value: "10.0.0.0/40": spec.addressRanges.peers[0] in body must be of type cidr: "10.0.0.0/40"',
      ],
    ],
    [
      'Cluster',
      "spec: { resolver: { endpoint: 'http://a' } }",
      [
        'spec.namespace: Required value',
        `spec.resolver.endpoint: Invalid value: "http://a": spec.resolver.endpoint in body should match '^https://'`,
      ],
    ],
    [
      'ServiceShard',
      `
      metadata: { name: checkout }
      spec: { type: Headless, exportedAt: yesterday, ports: [{ port: 80 }, { port: 80, protocol: TCP }], loadBalancer: [{}], onStale: Drop }`,
      [
        `metadata.name: Invalid value: "checkout": metadata.name in body should match '^[a-z]([-a-z0-9]{0,61}[a-z0-9])?\\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'`,
        'spec.exportedAt: Invalid value: "yesterday": spec.exportedAt in body must be of type date-time: "yesterday"',
        'spec.ports[1]: Duplicate value: {"port":80,"protocol":"TCP"}',
        'spec.loadBalancer[0]: Invalid value: "": "spec.loadBalancer[0]" must validate at least one schema (anyOf)',
        'spec.loadBalancer[0].ip: Required value',
        'spec.onStale: Unsupported value: "Drop": supported values: "Withdraw", "NotReady", "Keep"',
      ],
    ],
    [
      'ServiceExportPolicy',
      'spec: { serviceSelector: { matchExpressions: [{ key: a, operator: Like }] } }',
      [
        'spec.serviceSelector.matchExpressions[0].operator: Unsupported value: "Like": supported values: "In", "NotIn", "Exists", "DoesNotExist"',
      ],
    ],
    [
      'FederatedService',
      'spec: { template: { spec: { ports: [], clusterIP: 10.0.0.1 } } }',
      [
        'spec.template.spec.ports: Invalid value: 0: spec.template.spec.ports in body should have at least 1 items',
        'spec.template.spec.clusterIP: Unsupported value: "10.0.0.1": supported values: "None"',
      ],
    ],
    [
      'Federation',
      'spec: { policy: random, source: { optionCode: 8 }, public: { domain: a.b, provider: { type: RFC2136 } } }',
      [
        'spec.policy: Unsupported value: "random": supported values: "ordered", "nearest-only", "local-only-if-healthy"',
        'spec.source.optionCode: Invalid value: 8: spec.source.optionCode in body should be greater than or equal to 65001',
        'spec.public.provider.rfc2136: Required value',
      ],
    ],
    [
      'AddressClaim',
      "metadata: { name: 'fd00--1' }\nspec: { address: 243.0.0.1, owner: { kind: ServiceImport } }",
      [
        `metadata.name: Invalid value: "fd00--1": metadata.name in body should match '^([0-9]{1,3}(\\.[0-9]{1,3}){3}|[0-9a-f]{1,4}(-[0-9a-f]{1,4}){7})$'`,
        'spec.owner.name: Required value',
      ],
    ],
    [
      'Peer',
      'spec: { address: nowhere, trust: { domain: a.b } }',
      [
        String.raw`spec.address: Invalid value: "nowhere": spec.address in body should match '^(https://)?(\[[0-9a-fA-F:.]+\]|[^:\[\]/\s]+):[0-9]{1,5}$'`,
        'spec.trust: Invalid value: "": "spec.trust" must validate one and only one schema (oneOf). Found none valid',
        'spec.trust.bundle: Required value',
      ],
    ],
    [
      'PeerExport',
      'spec: { peers: [] }',
      [
        'spec: Invalid value: "": "spec" must validate at least one schema (anyOf)',
        'spec.services: Required value',
        'spec.peers: Invalid value: 0: spec.peers in body should have at least 1 items',
      ],
    ],
    [
      'PeerService',
      'spec: { peer: p, endpoints: [{ address: a, port: 70000 }] }',
      [
        'spec.id: Required value',
        'spec.endpoints[0].port: Invalid value: 70000: spec.endpoints[0].port in body should be less than or equal to 65535',
      ],
    ],
  ])('%s: %s -> refused with exact paths', (kind, text, expected) => {
    expect(create(kind, text).wrong).toEqual(expected);
  });
});

describe('loadDefinitions', () => {
  test('load: several documents in one text, empty ones between -> all of them', () => {
    const one = 'apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: { name: a }\n';
    expect(loadDefinitions([`---\n${one}---\n---\n${one}`, '']).length).toBe(2);
  });

  test('load: not YAML, another kind -> an error that says which file', () => {
    expect(() => loadDefinitions(['', '{'])).toThrow(/definition file 2 is not YAML/);
    expect(() => loadDefinitions(['apiVersion: v1\nkind: Pod'])).toThrow(/definition file 1 holds v1 Pod/);
  });
});

// A wildcard shows one value on a Kubernetes API server, which prints the first result of the path alone.
test.each(definitions.map((each) => [each.metadata.name, each] as const))(
  'deploy/crds: no column of %s has a wildcard, so that a real Kubernetes shows all of a list',
  (_name, definition) => {
    const { versions } = (definition as unknown as CustomResourceDefinition).spec;
    const paths = versions.flatMap((version) => version.additionalPrinterColumns ?? []).map(({ jsonPath }) => jsonPath);
    expect(paths.filter((path) => path.includes('*'))).toEqual([]);
  },
);

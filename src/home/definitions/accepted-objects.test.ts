// Objects of the kinds in deploy/crds that are accepted: a complete example of each kind, and the defaults of short ones.

import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { clusterSetDefaults } from '../../clusterset/kinds/cluster-set.ts';
import { create, kinds } from './testing/deployed-kinds.ts';

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
  ClusterProfile: `
    metadata: { name: east, namespace: prod, labels: { x-k8s.io/cluster-manager: portolan-prod } }
    spec: { displayName: Frankfurt, clusterManager: { name: portolan-prod } }
    status:
      version: { kubernetes: v1.36.4 }
      properties: [{ name: portolan.dev/region, value: eu, lastObservedTime: '2026-01-01T00:00:00Z' }]
      accessProviders: [{ name: kubeconfig, cluster: { server: 'https://east:6443', tls-server-name: east, extensions: [{ name: exec, extension: { audience: a } }] } }]
      credentialProviders: [{ name: old, cluster: { server: 'https://east:6443', certificate-authority-data: Zm9v } }]
      conditions:
        - { type: ControlPlaneHealthy, status: 'True', reason: Answers, message: m, lastTransitionTime: '2026-01-01T00:00:00Z', observedGeneration: 1 }`,
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
  SealedRecord: `
    metadata: { name: a-0f8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a0b, namespace: prod-m-east }
    spec:
      audience: a-0f8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a0b
      epoch: 1795000000
      counter: 1795000000123
      data: c2VhbGVk
      readers: [{ cluster: west, fingerprint: 'SHA256:aaaa', key: c2VhbGVk }]`,
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
  ServiceAccessPolicy: `
    metadata: { name: db, namespace: shop }
    spec:
      services: [db]
      from: [{ cluster: west, namespaces: [billing] }, { cluster: south.eu }]
    status: { services: 1, observedGeneration: 1 }`,
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
  ServiceImportPolicy: `
    metadata: { name: checkout }
    spec:
      namespaces: [shop]
      namespaceSelector: { matchLabels: { team: shop } }
      services: [checkout]
      importSelector: { matchExpressions: [{ key: app, operator: Exists }] }
      accept: true
      clusters:
        - { clusters: [east], weight: 95 }
        - { regions: [eu], zones: [eu-1], weight: 5 }
        - { clusterSelector: { matchLabels: { tier: gold } } }
      exclude: [{ clusters: [north] }]
      spillover: { minReady: 50% }
    status: { imports: 2, observedGeneration: 1 }`,
  TrafficShift: `
    metadata: { name: checkout, namespace: shop }
    spec:
      service: checkout
      from: east
      to: west
      steps: [5, 25, 50, 100]
      every: 5m
      maxWorse: 1.5
      minConnections: 0
      paused: true
      abort: false
    status:
      phase: Shifting
      step: 2
      percent: 25
      heldSeconds: 60
      before: { tried: 100, answered: 99, reset: 1 }
      seenTo: { tried: 100, answered: 99, reset: 1 }
      seenAll: { tried: 100, answered: 99, reset: 1 }
      message: 25 % go to west
      observedGeneration: 1`,
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
    '%s: complete example -> taken, nothing lost or added [003-27, 003-47, 004-36]',
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
    // The layout is for agents of the release before, which know another default.
    expect(object['spec']).toEqual({ ...clusterSetDefaults, layout: 'AllNamespaces' });
  });

  test.each(['[1, { a: [null] }]', '{ arn: x, list: [{ b: [1] }] }', 'text', '7'])(
    'MeshExternalService: config of a plugin, %s -> kept as it is [004-22]',
    (config) => {
      const text = `{ metadata: { name: a }, spec: { match: [{ type: IP, value: 10.0.0.1, port: 1, protocol: http }], destination: { type: Extension, extension: { type: X, config: ${config} } } } }`;
      const { object, wrong } = create('MeshExternalService', text);
      expect(wrong).toEqual([]);
      expect(object).toMatchObject(parse(text));
    },
  );

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
});

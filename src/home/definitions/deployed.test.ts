// The definitions in deploy/crds, as the embedded server takes them in.

import { describe, expect, test } from 'vitest';
import { addressClaimType } from '../../addresses/address-claim.ts';
import { clusterType } from '../../clusterset/kinds/cluster.ts';
import { clusterPropertyType } from '../../clusterset/kinds/cluster-property.ts';
import { clusterSetType } from '../../clusterset/kinds/cluster-set.ts';
import { federatedServiceType } from '../../clusterset/kinds/federated-service.ts';
import { serviceAccessPolicyType } from '../../clusterset/kinds/service-access-policy.ts';
import { serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { serviceExportPolicyType } from '../../clusterset/kinds/service-export-policy.ts';
import { serviceImportType } from '../../clusterset/kinds/service-import.ts';
import { serviceImportPolicyType } from '../../clusterset/kinds/service-import-policy.ts';
import { serviceShardType } from '../../clusterset/kinds/service-shard.ts';
import { trafficShiftType } from '../../clusterset/kinds/traffic-shift.ts';
import { hostnameGeneratorType } from '../../external/kinds/hostname-generator.ts';
import { meshExternalServiceType } from '../../external/kinds/mesh-external-service.ts';
import { federationType } from '../../federation/kinds/federation.ts';
import type { AnyObject, ResourceType } from '../../kube/objects/object.ts';
import { peerType } from '../../peering/kinds/peer.ts';
import { peerExportType } from '../../peering/kinds/peer-export.ts';
import { peerServiceType } from '../../peering/kinds/peer-service.ts';
import type { CustomResourceDefinition } from './definition.ts';
import { definitions, files, kindOf, kinds } from './testing/deployed-kinds.ts';
import { definitionWarnings } from './validate.ts';

describe('definitions of deploy/crds', () => {
  test('crds: every kind of the plan that is not built in -> a file, named by its plural', () => {
    expect(kinds.map(({ kind }) => kind).sort()).toEqual([
      ...[
        'AddressClaim',
        'Cluster',
        'ClusterProfile',
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
        'SealedRecord',
        'ServiceAccessPolicy',
        'ServiceExport',
        'ServiceExportPolicy',
        'ServiceImport',
        'ServiceImportPolicy',
        'ServiceShard',
        'TrafficShift',
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
    ...[serviceExportPolicyType, serviceExportType, serviceImportPolicyType, serviceImportType, serviceShardType],
    ...[serviceAccessPolicyType, trafficShiftType],
  ];
  test.each(types)('crds: $kind -> named in the model as in its definition', (type) => {
    const { group, kind, plural, isNamespaced, storageVersion } = kindOf(type.kind);
    expect({ group, kind, plural, isNamespaced, version: storageVersion }).toEqual(type);
  });

  test('crds: every field has a type a person can read of, every kind a description', () => {
    for (const kind of kinds) expect(kind.versions[0]!.schema.description, kind.kind).toMatch(/^[A-Z].*\.$/);
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

test.each([
  [
    'ServiceImport',
    {
      spec: { type: 'ClusterSetIP', ips: ['243.0.0.7', 'fd00::7'] },
      status: { clusters: [{ cluster: 'east' }, { cluster: 'west' }], conditions: [{ type: 'Ready', status: 'True' }] },
    },
    ['checkout', 'ClusterSetIP', '243.0.0.7', 'True', '3m'],
    ['fd00::7', 'east,west'],
  ],
  ['ServiceImport', { spec: { type: 'Headless' } }, ['checkout', 'Headless', null, null, '3m'], [null, null]],
  [
    'PeerService',
    { spec: { peer: 'b', fqdn: 'a.b', id: '1' }, status: { ips: ['243.1.0.7', 'fd00::8'], state: 'Active' } },
    ['checkout', 'b', 'a.b', '243.1.0.7', 'Active', '3m'],
    ['fd00::8', '1'],
  ],
  [
    'FederatedService',
    {
      spec: { clusters: ['east', 'west'], template: { spec: { type: 'ClusterIP' } } },
      status: {
        conditions: [
          { type: 'Ready', status: 'False', reason: 'Pending', message: 'placed in 1 of 2 clusters; west: not yet' },
        ],
      },
    },
    ['checkout', 'ClusterIP', 'False', 'Pending', '3m'],
    ['placed in 1 of 2 clusters; west: not yet'],
  ],
  [
    'PeerExport',
    {
      spec: { peers: ['acme', 'globex'] },
      status: {
        ...{ services: 2, shared: 'acme Acknowledged, globex Pending' },
        conditions: [{ type: 'Ready', status: 'True', message: 'every service it selects can be offered' }],
      },
    },
    ['checkout', 2, 'acme Acknowledged, globex Pending', 'True', '3m'],
    ['every service it selects can be offered'],
  ],
  [
    'ServiceImportPolicy',
    {
      spec: { importAs: 'bank/pay' },
      status: {
        imports: 3,
        conditions: [
          { type: 'Accepted', status: 'True' },
          { type: 'Resolved', status: 'False', message: 'cluster north is no member' },
        ],
      },
    },
    ['checkout', 3, 'True', 'False', '3m'],
    ['bank/pay', null, 'cluster north is no member'],
  ],
  [
    'ServiceShard',
    { spec: { type: 'ClusterSetIP', readyEndpoints: 2, clusterIPs: ['10.96.0.7', 'fd00::9'] } },
    ['checkout', 'ClusterSetIP', 2, '10.96.0.7', null, '3m'],
    ['fd00::9', null],
  ],
])(
  'deploy/crds: kubectl get of a %s -> addresses as people read them, no JSON; the rest with -o wide',
  (name, fields, narrow, wide) => {
    const nowMs = Date.parse('2026-01-01T00:03:00Z');
    const metadata = { name: 'checkout', creationTimestamp: '2026-01-01T00:00:00Z' };
    const object = { apiVersion: 'v1', kind: name, metadata, ...fields } as AnyObject;
    const { columns } = kindOf(name).versions[0]!;
    const cells = (isWide: boolean) =>
      columns.filter(({ priority }) => priority > 0 === isWide).map(({ value }) => value(object, nowMs));
    expect(cells(false)).toEqual(narrow);
    expect(cells(true)).toEqual(wide);
  },
);

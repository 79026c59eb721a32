import { describe, expect, test } from 'vitest';
import { clusterType } from '../../src/clusterset/kinds/cluster.ts';
import { endpointShardType } from '../../src/clusterset/kinds/endpoint-shard.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { serviceShardType } from '../../src/clusterset/kinds/service-shard.ts';
import { importableSinceAnnotation } from '../../src/clusterset/rules/propagation.ts';
import { type EndpointSlice, endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { createNamespace, memberNamespace, SimClusterSet, type SimClusterSetOptions, setName } from '../clusterset.ts';
import { conditionMessage, eventLines, exportLine, find, importedIps, importLine, sliceLines } from '../look.ts';
import { exportService, service, serviceExport, slice } from '../manifests.ts';

const key = 'shop/checkout';
const exported = 'Valid=True/Valid Ready=True/Exported Conflict=False/NoConflicts';

async function twoClusters(options: Partial<SimClusterSetOptions> = {}) {
  const set = await new SimClusterSet({ clusters: ['east', 'west'], ...options }).start({ namespaces: ['shop'] });
  const [east, west] = options.clusters?.map((id) => set.home(id).admin) ?? [
    set.home('east').admin,
    set.home('west').admin,
  ];
  return { set, east: east!, west: west!, settle: () => set.time.advance(4_000) };
}

describe('export', () => {
  test('export: service, slice and export in east -> import and slices in both clusters, conditions say so [002-18, 003-01, 003-48]', async () => {
    const { east, west, settle } = await twoClusters();
    await exportService(east, key, { endpoints: ['10.1.0.1', '!10.1.0.2'] });
    await settle();
    for (const client of [east, west]) {
      expect(await importLine(client, key)).toBe('ClusterSetIP http:80/TCP from east');
      expect(await sliceLines(client, key)).toEqual(['east: 10.1.0.1 10.1.0.2! on http>8080']);
      expect(await importedIps(client, key)).toEqual([expect.stringMatching(/^243\./)]);
    }
    expect(await importedIps(east, key)).toEqual(await importedIps(west, key));
    expect(await exportLine(east, key)).toBe(exported);
  });

  test('export: its slices are at the broker before its record -> an import that appears has endpoints', async () => {
    const created: string[] = [];
    const { east, settle } = await twoClusters({
      onRequest: (home, user, { verb, resource }) => {
        if (home === 'broker' && user === 'agent-east' && verb === 'create') created.push(resource);
      },
    });
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await settle();
    // A create may be tried again before the watch has brought the first.
    const kinds = new Set(created.filter((resource) => resource.endsWith('shards')));
    expect([...kinds]).toEqual(['endpointshards', 'serviceshards']);
  });

  test('export: made before its service -> NoService, exported once the service is there [003-32]', async () => {
    const { east, west, settle } = await twoClusters();
    await east.create(serviceExportType, serviceExport(key));
    await settle();
    expect(await exportLine(east, key)).toBe('Valid=False/NoService Ready=False/Pending Conflict=False/NoConflicts');
    expect(await importLine(west, key)).toBe('none');
    await east.create(serviceType, service(key));
    await east.create(endpointSliceType, slice(key, { endpoints: ['10.1.0.1'] }));
    await settle();
    expect(await exportLine(east, key)).toBe(exported);
    expect(await sliceLines(west, key)).toEqual(['east: 10.1.0.1 on http>8080']);
  });

  test('export: service deleted and made again -> withdrawn everywhere with an Event, then back [003-34]', async () => {
    const { east, west, settle } = await twoClusters();
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await settle();
    await east.delete(serviceType, { namespace: 'shop', name: 'checkout' });
    await settle();
    expect(await importLine(west, key)).toBe('none');
    expect(await sliceLines(west, key)).toEqual([]);
    expect(await eventLines(east, key)).toContain('Warning NoService');
    await east.create(serviceType, service(key));
    await settle();
    expect(await importLine(west, key)).toBe('ClusterSetIP http:80/TCP from east');
  });

  test('export: type becomes ExternalName -> refused and withdrawn; becomes ClusterIP again -> exported [003-53]', async () => {
    const { east, west, settle } = await twoClusters();
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await settle();
    expect(await importLine(west, key)).toBe('ClusterSetIP http:80/TCP from east');
    const ref = { namespace: 'shop', name: 'checkout' };
    const external = { type: 'ExternalName', externalName: 'example.org', clusterIP: null, clusterIPs: null };
    await east.patch(serviceType, ref, { kind: 'merge', body: { spec: external } });
    await settle();
    expect(await exportLine(east, key)).toBe(
      'Valid=False/InvalidServiceType Ready=False/Pending Conflict=False/NoConflicts',
    );
    expect(await eventLines(east, key)).toContain('Warning InvalidServiceType');
    expect(await importLine(west, key)).toBe('none');
    await east.patch(serviceType, ref, { kind: 'merge', body: { spec: { type: 'ClusterIP', externalName: null } } });
    await settle();
    expect(await exportLine(east, key)).toBe(exported);
    expect(await importLine(west, key)).toBe('ClusterSetIP http:80/TCP from east');
  });

  for (const type of ['NodePort', 'LoadBalancer'] as const) {
    test(`export: a ${type} service -> imported as ClusterSetIP`, async () => {
      const { east, west, settle } = await twoClusters();
      await exportService(east, key, { spec: { type }, endpoints: ['10.1.0.1'] });
      await settle();
      expect(await exportLine(east, key)).toBe(exported);
      expect(await importLine(west, key)).toBe('ClusterSetIP http:80/TCP from east');
    });
  }

  test('export: not a single pod is ready -> the import is there, and no endpoint of it is ready', async () => {
    const { east, west, settle } = await twoClusters();
    await exportService(east, key, { endpoints: ['!10.1.0.1'] });
    await settle();
    expect(await importLine(west, key)).toBe('ClusterSetIP http:80/TCP from east');
    expect(await sliceLines(west, key)).toEqual(['east: 10.1.0.1! on http>8080']);
  });

  test('export: ports, affinity, policies and exported metadata change -> the import follows [003-34, 003-77]', async () => {
    const { east, west, settle } = await twoClusters();
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await settle();
    await east.patch(
      serviceType,
      { namespace: 'shop', name: 'checkout' },
      {
        kind: 'merge',
        body: {
          spec: {
            ports: [{ name: 'http', port: 81, appProtocol: 'h2c' }],
            sessionAffinity: 'ClientIP',
            internalTrafficPolicy: 'Local',
            trafficDistribution: 'PreferClose',
          },
        },
      },
    );
    await east.patch(
      serviceExportType,
      { namespace: 'shop', name: 'checkout' },
      {
        kind: 'merge',
        body: { spec: { exportedLabels: { tier: 'gold' }, exportedAnnotations: { owner: 'team a' } } },
      },
    );
    await settle();
    const imported = await find<ServiceImport>(west, serviceImportType, key);
    expect(imported?.spec).toMatchObject({
      ports: [{ name: 'http', port: 81, protocol: 'TCP', appProtocol: 'h2c' }],
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } },
      internalTrafficPolicy: 'Local',
      trafficDistribution: 'PreferClose',
    });
    expect(imported?.metadata.labels).toMatchObject({ tier: 'gold' });
    expect(imported?.metadata.annotations).toEqual({
      owner: 'team a',
      [importableSinceAnnotation]: expect.any(String),
    });
  });

  test('export: a first cluster, then a second -> the first makes the merged import at the broker, the second joins that one [002-08]', async () => {
    const { set, east, west, settle } = await twoClusters();
    const merged = () => find<ServiceImport>(set.broker.admin, serviceImportType, `${setName}/checkout.shop`);
    expect(await merged()).toBeUndefined();
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await settle();
    const first = await merged();
    expect(first?.status?.clusters).toEqual([{ cluster: 'east' }]);
    await exportService(west, key, { endpoints: ['10.2.0.1'] });
    await settle();
    const both = await merged();
    expect(both?.status?.clusters).toEqual([{ cluster: 'east' }, { cluster: 'west' }]);
    expect(both?.metadata.uid).toBe(first?.metadata.uid);
  });

  test('export: the metadata of the Service itself -> never exported [002-19]', async () => {
    const { east, west, settle } = await twoClusters();
    const labelled = service(key);
    labelled.metadata.labels = { secret: 'yes' };
    await east.create(serviceType, labelled);
    await east.create(serviceExportType, serviceExport(key));
    await settle();
    const imported = await find<ServiceImport>(west, serviceImportType, key);
    expect(imported?.metadata.labels).not.toHaveProperty('secret');
  });

  test('export: the same name in two namespaces -> two imports with different addresses [003-10]', async () => {
    const { set, east, west, settle } = await twoClusters();
    for (const id of ['east', 'west']) await createNamespace(set.home(id), 'bank');
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await exportService(east, 'bank/checkout', { endpoints: ['10.1.0.9'] });
    await settle();
    expect(await sliceLines(west, key)).toEqual(['east: 10.1.0.1 on http>8080']);
    expect(await sliceLines(west, 'bank/checkout')).toEqual(['east: 10.1.0.9 on http>8080']);
    expect(await importedIps(west, key)).not.toEqual(await importedIps(west, 'bank/checkout'));
  });

  test('export: deleted -> import, slices, shard and published slices are gone everywhere [002-26, 002-28, 003-35, 003-44]', async () => {
    const { set, east, west, settle } = await twoClusters();
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await settle();
    await east.delete(serviceExportType, { namespace: 'shop', name: 'checkout' });
    await settle();
    for (const client of [east, west]) {
      expect(await importLine(client, key)).toBe('none');
      expect(await sliceLines(client, key)).toEqual([]);
    }
    const namespace = memberNamespace('east');
    expect((await set.broker.admin.list(serviceShardType, { namespace })).items).toEqual([]);
    expect((await set.broker.admin.list(endpointShardType, { namespace })).items).toEqual([]);
    expect((await set.broker.admin.list(serviceImportType)).items).toEqual([]);
    expect((await east.list(endpointSliceType, { namespace: 'shop' })).items).toHaveLength(1);
  });

  test('export: both clusters have the service, only east exports it -> only east is behind the import [003-18, 003-25, 003-33, 003-40]', async () => {
    const { east, west, settle } = await twoClusters();
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    const made = await west.create(serviceType, service(key));
    await west.create(endpointSliceType, slice(key, { endpoints: ['10.2.0.1'] }));
    await settle();
    expect(await sliceLines(west, key)).toEqual(['east: 10.1.0.1 on http>8080']);
    expect((await find(west, serviceType, key))?.metadata.resourceVersion).toBe(made.metadata.resourceVersion);
  });

  test('export: endpoints change -> one slice changes at the broker and in each importing cluster, nothing else [003-67]', async () => {
    const { set, east, west, settle } = await twoClusters();
    await exportService(east, key, { endpoints: ['10.1.0.1', '10.1.0.2'] });
    await east.create(endpointSliceType, slice(key, { endpoints: ['10.1.0.3', '10.1.0.4'], suffix: 'b' }));
    await settle();
    const before = new Map<string, string>();
    const namespace = memberNamespace('east');
    const list = async () => [
      ...(await west.list(endpointSliceType, { namespace: 'shop' })).items,
      ...(await set.broker.admin.list(endpointShardType, { namespace })).items,
    ];
    for (const { metadata } of await list()) before.set(metadata.uid!, metadata.resourceVersion!);
    const changed = slice(key, { endpoints: ['10.1.0.1', '!10.1.0.2'] });
    await east.patch(endpointSliceType, changed.metadata, { kind: 'merge', body: { endpoints: changed.endpoints } });
    await settle();
    const moved = (await list()).filter(({ metadata }) => before.get(metadata.uid!) !== metadata.resourceVersion);
    expect(moved).toHaveLength(2);
    expect(await sliceLines(west, key)).toEqual([
      'east: 10.1.0.1 10.1.0.2! on http>8080',
      'east: 10.1.0.3 10.1.0.4 on http>8080',
    ]);
  });

  test('export: published slices -> addresses, readiness, zone and hostname, and nothing that stays at home', async () => {
    const { set, east, settle } = await twoClusters();
    await exportService(east, key, { endpoints: ['web-0@10.1.0.1'] });
    await settle();
    const { items } = await set.broker.admin.list<EndpointSlice>(endpointShardType, {
      namespace: memberNamespace('east'),
    });
    expect(items[0]?.endpoints).toEqual([
      { addresses: ['10.1.0.1'], conditions: { ready: true, serving: true, terminating: false }, hostname: 'web-0' },
    ]);
  });

  test('export: endpoints that are loopback or virtual addresses of our own -> refused, Ready says so, the rest goes on', async () => {
    const { east, west, settle } = await twoClusters();
    await exportService(east, key, { endpoints: ['243.0.0.9', '127.0.0.1', '10.1.0.1'] });
    await settle();
    expect(await sliceLines(west, key)).toEqual(['east: 10.1.0.1 on http>8080']);
    const message = await conditionMessage(east, key, 'Ready');
    expect(message).toContain('endpoint 243.0.0.9 refused: it is a virtual address');
    expect(message).toContain('endpoint 127.0.0.1 refused: loopback addresses lead nowhere');
    expect(await exportLine(east, key)).toContain('Ready=True/EndpointsRefused');
  });

  test('export: a hostname whose clusterset name is too long for DNS -> Ready says so, everything else goes on [003-63]', async () => {
    const id = `${'c'.repeat(36)}.${'d'.repeat(12)}`;
    const { set } = await twoClusters({ clusters: [id] });
    const namespace = 'n'.repeat(63);
    const name = 's'.repeat(63);
    const client = set.home(id).admin;
    await createNamespace(set.home(id), namespace);
    await exportService(client, `${namespace}/${name}`, {
      spec: { clusterIP: 'None' },
      endpoints: [`${'h'.repeat(60)}@10.1.0.1`],
    });
    await set.time.advance(4_000);
    expect(await conditionMessage(client, `${namespace}/${name}`, 'Ready')).toContain('longer than 253 characters');
    expect(await exportLine(client, `${namespace}/${name}`)).toBe(exported);
  });

  test('export: annotated with export-to -> only the named clusters and the exporter itself import it [003-03]', async () => {
    const set = await new SimClusterSet({ clusters: ['east', 'west', 'north'] }).start({ namespaces: ['shop'] });
    const east = set.home('east').admin;
    await east.create(serviceType, service(key));
    await east.create(
      serviceExportType,
      serviceExport(key, { annotations: { 'portolan.dev/export-to': 'north, nobody' } }),
    );
    await set.time.advance(4_000);
    expect(await importLine(east, key)).toBe('ClusterSetIP http:80/TCP from east');
    expect(await importLine(set.home('north').admin, key)).toBe('ClusterSetIP http:80/TCP from east');
    expect(await importLine(set.home('west').admin, key)).toBe('none');
  });

  for (const [annotation, importers] of [
    ['west', ['east', 'west']],
    ['', ['east']],
    [null, ['east', 'west', 'north']],
  ] as const) {
    test(`export: export-to is changed to ${annotation === null ? 'nothing at all' : `"${annotation}"`} -> imported by ${importers.join(', ')}`, async () => {
      const set = await new SimClusterSet({ clusters: ['east', 'west', 'north'] }).start({ namespaces: ['shop'] });
      const east = set.home('east').admin;
      await east.create(serviceType, service(key));
      await east.create(serviceExportType, serviceExport(key, { annotations: { 'portolan.dev/export-to': 'north' } }));
      await set.time.advance(4_000);
      const body = { metadata: { annotations: { 'portolan.dev/export-to': annotation } } };
      await east.patch(serviceExportType, { namespace: 'shop', name: 'checkout' }, { kind: 'merge', body });
      await set.time.advance(4_000);
      for (const id of ['east', 'west', 'north'] as const) {
        const isImported = (importers as readonly string[]).includes(id);
        const line = await importLine(set.home(id).admin, key);
        expect(line).toBe(isImported ? 'ClusterSetIP http:80/TCP from east' : 'none');
      }
    });
  }

  test('export: a cluster id of two labels -> works from end to end [003-13]', async () => {
    const { east, west, settle } = await twoClusters({ clusters: ['east.prod', 'west.prod'] });
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await settle();
    expect(await sliceLines(west, key)).toEqual(['east.prod: 10.1.0.1 on http>8080']);
  });
});

describe('export: clusterset policies', () => {
  test('export: endpoints ClusterIP -> the slice holds the service address, and none while no pod is ready [002-24, 002-30, 002-32]', async () => {
    const { east, west, settle } = await twoClusters({ set: { endpoints: 'ClusterIP' } });
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await settle();
    const clusterIp = (await find<ReturnType<typeof service>>(east, serviceType, key))!.spec!.clusterIP;
    expect(await sliceLines(west, key)).toEqual([`east: ${clusterIp} on http>80`]);
    const down = slice(key, { endpoints: ['!10.1.0.1'] });
    await east.patch(endpointSliceType, down.metadata, { kind: 'merge', body: { endpoints: down.endpoints } });
    await settle();
    expect(await sliceLines(west, key)).toEqual(['east:  on http>80']);
  });

  test('export: endpoints ClusterIP and a headless service -> its pods [002-24, 002-30]', async () => {
    const { east, west, settle } = await twoClusters({ set: { endpoints: 'ClusterIP' } });
    await exportService(east, key, { spec: { clusterIP: 'None' }, endpoints: ['10.1.0.1'] });
    await settle();
    expect(await importLine(west, key)).toBe('Headless http:80/TCP from east');
    expect(await sliceLines(west, key)).toEqual(['east: 10.1.0.1 on http>8080']);
  });

  test('export: clusterSetIP none, or headless -> the import has no IP but says its families [002-04, 002-17, 003-49]', async () => {
    for (const [set, spec] of [
      [{ clusterSetIP: 'none' }, {}],
      [{}, { clusterIP: 'None' }],
    ] as const) {
      const { east, west, settle } = await twoClusters({ set });
      await exportService(east, key, { spec, endpoints: ['10.1.0.1'] });
      await settle();
      const imported = await find<ServiceImport>(west, serviceImportType, key);
      expect(imported?.spec.type).toBe('clusterIP' in spec ? 'Headless' : 'ClusterSetIP');
      expect(imported?.spec.ips).toBeUndefined();
      expect(imported?.spec.ipFamilies).toEqual(['IPv4']);
      expect(imported?.status?.clusters).toEqual([{ cluster: 'east' }]);
      expect(await exportLine(east, key)).toBe(exported);
    }
  });

  test('export: a dual-stack service -> an IPv4 and an IPv6 clusterset IP, in the order of the families [003-24]', async () => {
    const { east, west, settle } = await twoClusters();
    await exportService(east, key, {
      spec: { ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6', 'IPv4'] },
      endpoints: ['10.1.0.1'],
    });
    await settle();
    const imported = await find<ServiceImport>(west, serviceImportType, key);
    expect(imported?.spec.ips).toEqual([expect.stringMatching(/^fd70:6f72:74f3:/), expect.stringMatching(/^243\./)]);
  });

  test('export: endpoints outside the ranges the cluster joined with -> importers refuse them', async () => {
    const { east, west, settle } = await twoClusters({ member: () => ({ allowedRanges: ['10.1.0.0/16'] }) });
    await exportService(east, key, { endpoints: ['10.1.0.1', '10.2.0.1'] });
    await settle();
    expect(await sliceLines(west, key)).toEqual(['east: 10.1.0.1 on http>8080']);
  });

  test('export: the cluster publishes translated addresses -> others get those, it keeps its own; changed -> follows [002-31]', async () => {
    const translations = [{ from: '10.1.0.0/16', to: '100.64.0.0/24' }];
    const set = new SimClusterSet({
      clusters: ['east', 'west'],
      member: (id) => (id === 'east' ? { translations, allowedRanges: ['100.64.0.0/10'] } : {}),
    });
    await set.start({ namespaces: ['shop'] });
    const [east, west] = [set.home('east').admin, set.home('west').admin];
    await exportService(east, key, { endpoints: ['10.1.0.7', '10.1.8.8'] });
    await set.time.advance(4_000);
    expect(await sliceLines(west, key)).toEqual(['east: 100.64.0.7 on http>8080']);
    expect(await sliceLines(east, key)).toEqual(['east: 10.1.0.7 on http>8080']);
    expect(await conditionMessage(east, key, 'Ready')).toContain(
      'endpoint 10.1.8.8 refused: the range that its own is translated to has no such address',
    );
    const body = { spec: { translations: [{ from: '10.1.0.0/16', to: '100.64.0.0/16' }] } };
    await set.broker.admin.patch(clusterType, { namespace: setName, name: 'east' }, { kind: 'merge', body });
    await set.time.advance(4_000);
    expect(await sliceLines(west, key)).toEqual(['east: 100.64.0.7 100.64.8.8 on http>8080']);
    expect(await sliceLines(east, key)).toEqual(['east: 10.1.0.7 10.1.8.8 on http>8080']);
  });
});

import { describe, expect, test } from 'vitest';
import { type AddressClaim, addressClaimType } from '../../src/addresses/address-claim.ts';
import { clusterType } from '../../src/clusterset/kinds/cluster.ts';
import { clusterSetType } from '../../src/clusterset/kinds/cluster-set.ts';
import { endpointShardType } from '../../src/clusterset/kinds/endpoint-shard.ts';
import { heartbeatType } from '../../src/clusterset/kinds/heartbeat.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { serviceShardType } from '../../src/clusterset/kinds/service-shard.ts';
import { type EndpointSlice, endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { eventType, type KubernetesEvent } from '../../src/kube/objects/event.ts';
import { namespaceType } from '../../src/kube/objects/namespace.ts';
import { createNamespace, memberNamespace, SimClusterSet, setName } from '../clusterset.ts';
import { find, importedIps, importLine, sliceLines } from '../look.ts';
import { exportService, slice } from '../manifests.ts';

const key = 'shop/checkout';
const ref = { namespace: 'shop', name: 'checkout' };

async function exportedFromEast(
  options: ConstructorParameters<typeof SimClusterSet>[0] = { clusters: ['east', 'west'] },
) {
  const set = await new SimClusterSet(options).start({ namespaces: ['shop'] });
  const east = set.home('east').admin;
  const west = set.home('west').admin;
  await exportService(east, key, { endpoints: ['10.1.0.1'] });
  await set.time.advance(4_000);
  return { set, east, west, settle: () => set.time.advance(4_000) };
}

describe('import', () => {
  test('import: the namespace does not exist -> nothing; created later -> imported then; deleted -> gone [002-23, 003-39]', async () => {
    const set = await new SimClusterSet({ clusters: ['east', 'west'] }).start();
    await createNamespace(set.home('east'), 'shop');
    await exportService(set.home('east').admin, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(4_000);
    const west = set.home('west').admin;
    expect(await importLine(west, key)).toBe('none');
    expect((await west.list(addressClaimType)).items).toEqual([]);
    await createNamespace(set.home('west'), 'shop');
    await set.time.advance(4_000);
    expect(await importLine(west, key)).toBe('ClusterSetIP http:80/TCP from east');
    await west.delete(namespaceType, { name: 'shop' });
    await set.time.advance(4_000);
    expect(await find(west, namespaceType, '/shop')).toBeUndefined();
  });

  test('import: edited by hand -> put back, addresses included [003-43]', async () => {
    const { west, settle } = await exportedFromEast();
    const before = await find<ServiceImport>(west, serviceImportType, key);
    const spec = { ports: [{ port: 9999, protocol: 'UDP' }], ips: ['243.9.9.9'], sessionAffinity: 'ClientIP' };
    await west.patch(serviceImportType, ref, { kind: 'merge', body: { spec, metadata: { labels: { mine: 'yes' } } } });
    await settle();
    const after = await find<ServiceImport>(west, serviceImportType, key);
    expect(after?.spec).toEqual(before?.spec);
    expect(after?.metadata.labels).toEqual(before?.metadata.labels);
  });

  test('import: made by somebody else before the service was exported -> taken over, and an Event says so, once', async () => {
    const set = await new SimClusterSet({ clusters: ['east', 'west'] }).start({ namespaces: ['shop'] });
    const [east, west] = [set.home('east').admin, set.home('west').admin];
    const metadata = { name: 'checkout', namespace: 'shop', labels: { made: 'by-hand' } };
    const spec = { type: 'Headless', ports: [{ name: 'mine', port: 9, protocol: 'TCP' }] };
    await west.create(serviceImportType, {
      apiVersion: 'multicluster.x-k8s.io/v1beta1',
      kind: 'ServiceImport',
      metadata,
      spec,
    });
    await set.time.advance(4_000);
    expect((await find<ServiceImport>(west, serviceImportType, key))?.spec.type).toBe('Headless');
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(20_000);
    expect(await importLine(west, key)).toBe('ClusterSetIP http:80/TCP from east');
    const { items } = await west.list<KubernetesEvent>(eventType, { namespace: 'shop' });
    const about = items.filter(({ involvedObject }) => involvedObject.kind === 'ServiceImport');
    expect(about.map(({ type, reason }) => `${type} ${reason}`)).toEqual(['Warning ImportTakenOver']);
  });

  test('import: another program wants it otherwise all the time -> put back, but not in turns as fast as the network', async () => {
    const writes: string[] = [];
    const { set, west } = await exportedFromEast({
      clusters: ['east', 'west'],
      onRequest: (home, user, { verb, resource, subresource }) => {
        if (home === 'west' && verb === 'update' && resource === 'serviceimports' && !subresource) writes.push(user);
      },
    });
    writes.length = 0;
    const body = { spec: { sessionAffinity: 'ClientIP' } };
    for (let step = 0; step < 600; step += 1) {
      await west.patch(serviceImportType, ref, { kind: 'merge', body });
      await set.time.advance(50);
    }
    expect(writes.length).toBeGreaterThan(2);
    expect(writes.length).toBeLessThan(10);
    await set.time.advance(60_000);
    expect((await find<ServiceImport>(west, serviceImportType, key))?.spec.sessionAffinity).not.toBe('ClientIP');
  });

  test('import: deleted by hand -> made again with the same address', async () => {
    const { west, settle } = await exportedFromEast();
    const ips = await importedIps(west, key);
    await west.delete(serviceImportType, ref);
    await settle();
    expect(await importedIps(west, key)).toEqual(ips);
    expect(await sliceLines(west, key)).toEqual(['east: 10.1.0.1 on http>8080']);
  });

  test('import: an imported slice edited or deleted by hand -> put back', async () => {
    const { west, settle } = await exportedFromEast();
    const { items } = await west.list<EndpointSlice>(endpointSliceType, { namespace: 'shop' });
    await west.update(endpointSliceType, { ...items[0]!, endpoints: [{ addresses: ['10.66.6.6'] }] });
    await settle();
    expect(await sliceLines(west, key)).toEqual(['east: 10.1.0.1 on http>8080']);
    await west.delete(endpointSliceType, items[0]!.metadata);
    await settle();
    expect(await sliceLines(west, key)).toEqual(['east: 10.1.0.1 on http>8080']);
  });

  test('import: foreign slices, also with the label of the service -> left alone, also when the import goes [003-05, 003-45]', async () => {
    const { east, west, settle } = await exportedFromEast();
    const foreign = {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        name: 'foreign',
        namespace: 'shop',
        labels: {
          'multicluster.kubernetes.io/service-name': 'checkout',
          'endpointslice.kubernetes.io/managed-by': 'somebody.else',
        },
      },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.7.0.1'] }],
      ports: [],
    };
    await west.create(endpointSliceType, foreign);
    await settle();
    await east.delete(serviceExportType, ref);
    await settle();
    const { items } = await west.list(endpointSliceType, { namespace: 'shop' });
    expect(items.map(({ metadata }) => metadata.name)).toEqual(['foreign']);
  });

  test('import: slices -> owned by their import, one source cluster each, kept from kube-proxy [002-03, 002-09, 003-45, 003-66]', async () => {
    const { west } = await exportedFromEast();
    const owner = await find(west, serviceImportType, key);
    const { items } = await west.list<EndpointSlice>(endpointSliceType, { namespace: 'shop' });
    expect(items[0]?.metadata.ownerReferences).toEqual([
      {
        apiVersion: 'multicluster.x-k8s.io/v1beta1',
        kind: 'ServiceImport',
        name: 'checkout',
        uid: owner?.metadata.uid,
      },
    ]);
    expect(items[0]?.metadata.labels).toMatchObject({
      'multicluster.kubernetes.io/service-name': 'checkout',
      'multicluster.kubernetes.io/source-cluster': 'east',
      'endpointslice.kubernetes.io/managed-by': 'portolan.dev',
      'service.kubernetes.io/service-proxy-name': 'portolan',
    });
  });

  test('import: gone and back within the hold time -> the same address; a claim says who holds it [003-54]', async () => {
    const { east, west, settle } = await exportedFromEast();
    const ips = await importedIps(west, key);
    await east.delete(serviceExportType, ref);
    await settle();
    const { items } = await west.list<AddressClaim>(addressClaimType);
    expect(items.map(({ spec }) => [spec.address, typeof spec.releasedAt])).toEqual([[ips[0], 'string']]);
    await east.create(serviceExportType, {
      apiVersion: 'multicluster.x-k8s.io/v1beta1',
      kind: 'ServiceExport',
      metadata: ref,
    });
    await settle();
    expect(await importedIps(west, key)).toEqual(ips);
    const again = await west.list<AddressClaim>(addressClaimType);
    expect(again.items.map(({ spec }) => spec.releasedAt)).toEqual([undefined]);
  });

  test('import: range exhausted -> Exhausted on the one without, and an address once another is freed for good [003-55]', async () => {
    const addressRanges = { clusterSet: ['243.0.0.1/32'] };
    const { set, east, west, settle } = await exportedFromEast({
      clusters: ['east', 'west'],
      set: { addressRanges, addressHoldSeconds: 60 },
    });
    await exportService(east, 'shop/cart', { endpoints: ['10.1.0.2'] });
    await settle();
    expect(await importedIps(west, key)).toEqual(['243.0.0.1']);
    const starved = await find<ServiceImport>(west, serviceImportType, 'shop/cart');
    expect(starved?.spec.ips).toBeUndefined();
    expect(starved?.status?.conditions?.[0]).toMatchObject({ type: 'Ready', status: 'False', reason: 'Exhausted' });
    expect(await sliceLines(west, 'shop/cart')).toEqual(['east: 10.1.0.2 on http>8080']);
    await east.delete(serviceExportType, ref);
    await settle();
    expect(await importedIps(west, 'shop/cart')).toEqual([]);
    await set.time.advance(180_000);
    expect(await importedIps(west, 'shop/cart')).toEqual(['243.0.0.1']);
    const fed = await find<ServiceImport>(west, serviceImportType, 'shop/cart');
    expect(fed?.status?.conditions?.[0]).toMatchObject({ type: 'Ready', reason: 'NotCarried' });
  });

  test('import: records that lie about their cluster -> counted for the namespace they lie in [002-19]', async () => {
    const lines: string[] = [];
    const onLog = (line: string) => void lines.push(line);
    const { set, west, settle } = await exportedFromEast({ clusters: ['east', 'west'], onLog });
    const { items } = await set.broker.admin.list<EndpointSlice>(endpointShardType, {
      namespace: memberNamespace('east'),
    });
    const labels = { ...items[0]!.metadata.labels, 'multicluster.kubernetes.io/source-cluster': 'west' };
    const { resourceVersion: _rv, uid: _uid, ...metadata } = items[0]!.metadata;
    await set.broker.admin.create(endpointShardType, {
      ...items[0]!,
      metadata: { ...metadata, name: 'liar', labels },
      endpoints: [{ addresses: ['10.66.0.1'] }],
    });
    await set.time.advance(100);
    for (const line of await sliceLines(west, key)) expect(line).toMatch(/^east: /);
    await settle();
    expect(await sliceLines(west, key)).toEqual(['east: 10.1.0.1 on http>8080']);
    const said = lines
      .map((line) => JSON.parse(line))
      .filter(({ msg }) => msg.startsWith('record claims another cluster'));
    expect(said.find(({ cluster }) => cluster === 'west')).toMatchObject({
      member: 'east',
      name: 'liar',
      claims: 'west',
    });
  });

  test('import: records of no service -> refused, or ignored and said; of a namespace that is no member -> not read', async () => {
    const lines: string[] = [];
    const onLog = (line: string) => void lines.push(line);
    const { set, west, settle } = await exportedFromEast({ clusters: ['east', 'west'], onLog });
    const [shard] = (await set.broker.admin.list(serviceShardType, { namespace: memberNamespace('east') })).items;
    const made = (namespace: string, name: string) =>
      set.broker.admin.create(serviceShardType, { ...shard!, metadata: { namespace, name } });
    await expect(made(memberNamespace('east'), 'no-service-at-all')).rejects.toMatchObject({ code: 422 });
    const metadata = { namespace: memberNamespace('east'), name: 'of-nothing' };
    const { addressType, endpoints } = slice(key, { endpoints: ['10.66.0.1'] });
    const record = { apiVersion: 'portolan.dev/v1alpha1', kind: endpointShardType.kind, metadata };
    await set.broker.admin.create(endpointShardType, { ...record, addressType, endpoints });
    await createNamespace(set.broker, 'prod-m-stranger');
    await made('prod-m-stranger', 'stolen.shop');
    await settle();
    expect(await importLine(west, 'shop/stolen')).toBe('none');
    expect(await importLine(west, key)).toBe('ClusterSetIP http:80/TCP from east');
    expect(lines.join('')).toContain('record of no service, ignored');
  });

  test('import: a member writes where it may not -> refused; vandalises the merged view -> nothing follows, view put right [002-06]', async () => {
    const { set, west, settle } = await exportedFromEast();
    const rights = set.memberClient('west');
    const shard = (await set.broker.admin.list(serviceShardType, { namespace: memberNamespace('east') })).items[0]!;
    await expect(set.time.settle(rights.update(serviceShardType, shard))).rejects.toMatchObject({ code: 403 });
    for (const [type, namespace] of [
      [serviceShardType, memberNamespace('east')],
      [endpointShardType, memberNamespace('east')],
      [heartbeatType, memberNamespace('east')],
      [clusterType, setName],
      [clusterSetType, setName],
    ] as const) {
      const [theirs] = (await set.broker.admin.list(type, { namespace })).items;
      await expect(set.time.settle(rights.update(type, theirs!))).rejects.toMatchObject({ code: 403 });
      await expect(set.time.settle(rights.delete(type, theirs!.metadata))).rejects.toMatchObject({ code: 403 });
      const made = { ...theirs!, metadata: { name: 'forged.shop', namespace } };
      await expect(set.time.settle(rights.create(type, made))).rejects.toMatchObject({ code: 403 });
    }
    const view = await find<ServiceImport>(set.broker.admin, serviceImportType, `${setName}/checkout.shop`);
    await set.time.settle(rights.update(serviceImportType, { ...view!, spec: { type: 'Headless', ports: [] } }));
    await settle();
    expect(await importLine(west, key)).toBe('ClusterSetIP http:80/TCP from east');
    expect(await importLine(set.broker.admin, `${setName}/checkout.shop`)).toBe('ClusterSetIP http:80/TCP from east');
    await set.time.settle(rights.delete(serviceImportType, view!.metadata));
    await settle();
    expect(await importLine(set.broker.admin, `${setName}/checkout.shop`)).toBe('ClusterSetIP http:80/TCP from east');
  });

  test('import: a cluster is removed from the set -> all it exported is gone [003-21]', async () => {
    const { set, west, settle } = await exportedFromEast();
    await set.leave('east');
    await settle();
    expect(await importLine(west, key)).toBe('none');
    expect(await sliceLines(west, key)).toEqual([]);
  });
});

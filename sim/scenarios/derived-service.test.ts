// Clusters whose own data plane carries the traffic of imports: a Service without selector for each, its IP the import's.

import { describe, expect, test } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { type Cluster, clusterType } from '../../src/clusterset/kinds/cluster.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { serviceImportPolicyType } from '../../src/clusterset/kinds/service-import-policy.ts';
import { derivedFor, derivedServiceName } from '../../src/clusterset/rules/derived-service.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { keepPartLease } from '../../src/kube/controller/part-lease.ts';
import { conditionOf } from '../../src/kube/objects/conditions.ts';
import { type EndpointSlice, endpointSliceType, serviceNameLabel } from '../../src/kube/objects/endpoint-slice.ts';
import { leaseType } from '../../src/kube/objects/lease.ts';
import { carriesServicesAnnotation } from '../../src/kube/objects/reports/carried-services.ts';
import { type Service, serviceType } from '../../src/kube/objects/service.ts';
import { createNamespace, SimClusterSet, type SimClusterSetOptions, setName } from '../clusterset.ts';
import { type Fault, withFaults } from '../faults.ts';
import { find, importedIps } from '../look.ts';
import { exportService, proxyLease, service } from '../manifests.ts';

const key = 'shop/checkout';

async function start(options: Partial<SimClusterSetOptions> = {}) {
  const set = await new SimClusterSet({ clusters: ['east', 'west'], ...options }).start({ namespaces: ['shop'] });
  const [east, west] = [set.home('east').admin, set.home('west').admin];
  const spec = { sessionAffinity: 'ClientIP' as const };
  await exportService(east, key, { endpoints: ['10.1.0.1'], spec });
  await set.time.advance(4_000);
  return { set, east, west };
}

async function derivedIn(client: Client): Promise<Service | undefined> {
  const { items } = await client.list<Service>(serviceType, { namespace: 'shop' });
  return items.find((one) => derivedFor(one) === key);
}

async function derivedAnnotation(client: Client): Promise<string | undefined> {
  const found = await find<ServiceImport>(client, serviceImportType, key);
  return found?.metadata.annotations?.['multicluster.kubernetes.io/derived-service'];
}

async function slicesBehind(client: Client, name: string): Promise<string[]> {
  const labelSelector = `${serviceNameLabel}=${name},!service.kubernetes.io/service-proxy-name`;
  const { items } = await client.list<EndpointSlice>(endpointSliceType, { namespace: 'shop', labelSelector });
  return items.flatMap(({ endpoints }) => endpoints.flatMap(({ addresses }) => addresses ?? []));
}

async function ready(client: Client): Promise<string> {
  const found = await find<ServiceImport>(client, serviceImportType, key);
  const condition = conditionOf(found?.status?.conditions, 'Ready');
  return `${condition?.status}/${condition?.reason}`;
}

describe('derived services', () => {
  test("derived services: the set derives -> one without selector for each import, its IP the import's, slices behind it", async () => {
    const { set, west } = await start({ set: { clusterSetIP: 'derived' } });
    const derived = await derivedIn(west);
    expect(derived?.spec).toMatchObject({
      ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
      sessionAffinity: 'ClientIP',
    });
    expect(derived?.spec?.selector).toBeUndefined();
    expect(await derivedAnnotation(west)).toBe(derived!.metadata.name);
    expect(await importedIps(west, key)).toEqual(derived?.spec?.clusterIPs);
    expect(await slicesBehind(west, derived!.metadata.name)).toEqual(['10.1.0.1']);
    expect(await ready(west)).toBe('True/Ready');
    const before = set.home('west').revision;
    await set.time.advance(60_000);
    expect(set.home('west').revision).toBe(before);
  });

  test('derived services: a policy and localities -> slices behind it have only what the rule picks, before and after it', async () => {
    const { set, west } = await start({ set: { clusterSetIP: 'derived' } });
    await exportService(west, key, { endpoints: ['10.2.0.1'], spec: { sessionAffinity: 'ClientIP' } });
    await set.time.advance(4_000);
    const { name } = (await derivedIn(west))!.metadata;
    expect((await slicesBehind(west, name)).sort()).toEqual(['10.1.0.1', '10.2.0.1']);
    const spec = { clusters: [{ clusters: ['east'] }] };
    const policy = {
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'ServiceImportPolicy',
      metadata: { name: 'first' },
      spec,
    };
    await west.create(serviceImportPolicyType, policy);
    await set.time.advance(4_000);
    expect(await slicesBehind(west, name)).toEqual(['10.1.0.1']);
    const before = set.home('west').revision;
    await set.time.advance(60_000);
    expect(set.home('west').revision).toBe(before);
    await west.delete(serviceImportPolicyType, { name: 'first' });
    await set.time.advance(4_000);
    expect((await slicesBehind(west, name)).sort()).toEqual(['10.1.0.1', '10.2.0.1']);
  });

  test('derived services: lost while the address is free -> made again with the same one; nobody exports -> both gone', async () => {
    const { set, east, west } = await start({ set: { clusterSetIP: 'derived' } });
    const ips = await importedIps(west, key);
    await west.delete(serviceType, { namespace: 'shop', name: (await derivedIn(west))!.metadata.name });
    await set.time.advance(4_000);
    expect((await derivedIn(west))?.spec?.clusterIPs).toEqual(ips);
    expect(await importedIps(west, key)).toEqual(ips);
    await east.delete(serviceExportType, { namespace: 'shop', name: 'checkout' });
    await set.time.advance(4_000);
    expect(await derivedIn(west)).toBeUndefined();
    expect(await find(west, serviceImportType, key)).toBeUndefined();
  });

  test('derived services: lost and its address taken -> another address, which the import has too', async () => {
    const { set, west } = await start({ set: { clusterSetIP: 'derived' } });
    const ips = await importedIps(west, key);
    set.killAgent('west');
    await west.delete(serviceType, { namespace: 'shop', name: (await derivedIn(west))!.metadata.name });
    await west.create(serviceType, service('shop/thief', { clusterIP: ips[0], clusterIPs: [...ips] }));
    set.startAgent('west');
    await set.time.advance(20_000);
    const derived = await derivedIn(west);
    expect(derived?.spec?.clusterIPs).not.toEqual(ips);
    expect(await importedIps(west, key)).toEqual(derived?.spec?.clusterIPs);
  });

  test.each([
    ['none', undefined],
    ['another import', 'other'],
  ])(
    'derived services: a Service of that name which a tenant made, with a mark of another import or none -> left alone, and the import says so (%s)',
    async (_mark, marked) => {
      const set = await new SimClusterSet({ clusters: ['east', 'west'], set: { clusterSetIP: 'derived' } }).start({
        namespaces: ['shop'],
      });
      const [east, west] = [set.home('east').admin, set.home('west').admin];
      const [namespace, name] = key.split('/') as [string, string];
      const derived = derivedServiceName({ namespace, name });
      const mine = service(`shop/${derived}`, { selector: { app: 'mine' } });
      const labels: Record<string, string> = marked === undefined ? {} : { 'portolan.dev/derived-for': marked };
      await west.create(serviceType, { ...mine, metadata: { ...mine.metadata, labels } });
      await exportService(east, key, { endpoints: ['10.1.0.1'] });
      await set.time.advance(10_000);
      const kept = await west.get<Service>(serviceType, { namespace: 'shop', name: derived });
      expect(kept.spec?.selector).toEqual({ app: 'mine' });
      expect(await slicesBehind(west, derived)).toEqual([]);
      expect(await ready(west)).toBe('False/DerivedServiceFailed');
      expect(await importedIps(west, key)).not.toEqual(kept.spec?.clusterIPs);
    },
  );

  test('derived services: exporters have no port in common -> said; the address stays for when they have', async () => {
    const { set, west } = await start({ set: { clusterSetIP: 'derived', ports: 'intersection' } });
    const ips = await importedIps(west, key);
    await exportService(west, key, { endpoints: ['10.2.0.1'], spec: { ports: [{ name: 'other', port: 81 }] } });
    await set.time.advance(4_000);
    expect(await ready(west)).toBe('False/DerivedServiceFailed');
    expect([await importedIps(west, key), (await derivedIn(west))?.spec?.clusterIPs]).toEqual([ips, ips]);
  });

  test('derived services: one cluster derives, the others allocate; taken back -> an allocated address, and no Service is left', async () => {
    const { set, east, west } = await start({ member: (id) => (id === 'west' ? { clusterSetIP: 'derived' } : {}) });
    expect((await importedIps(east, key))[0]).toMatch(/^243\./);
    expect(await derivedIn(east)).toBeUndefined();
    expect([await derivedAnnotation(east), await derivedAnnotation(west)]).toEqual([
      undefined,
      (await derivedIn(west))?.metadata.name,
    ]);
    expect(await importedIps(west, key)).toEqual((await derivedIn(west))?.spec?.clusterIPs);
    const { admin } = set.broker;
    const present = await admin.get<Cluster>(clusterType, { namespace: setName, name: 'west' });
    await admin.update(clusterType, { ...present, spec: { ...present.spec, clusterSetIP: 'allocate' } } as Cluster);
    await set.time.advance(4_000);
    expect((await importedIps(west, key))[0]).toMatch(/^243\./);
    expect(await derivedIn(west)).toBeUndefined();
    expect(await derivedAnnotation(west)).toBeUndefined();
  });

  test('derived services: the right to write Services is not given -> the import says which manifest gives it', async () => {
    const faults: Fault[] = [
      {
        home: 'west',
        method: 'POST',
        path: '/services',
        code: 403,
        from: 'agent-west',
        times: Number.POSITIVE_INFINITY,
      },
    ];
    const { west } = await start({ set: { clusterSetIP: 'derived' }, wrap: withFaults(faults) });
    expect(await ready(west)).toBe('False/DerivedServiceFailed');
    const found = await find<ServiceImport>(west, serviceImportType, key);
    const { message = '' } = conditionOf(found?.status?.conditions, 'Ready') ?? {};
    expect(message).toMatch(/agent\.writeServices=true .* deploy\/manifests\/services\.yaml/);
  });

  test('derived services: asked for without the right -> the allocated address stays and is carried, said and logged once; the right is given -> derived, without a restart', async () => {
    const fault = { home: 'west', method: 'POST', path: '/services', code: 403, from: 'agent-west' };
    const faults: Fault[] = [{ ...fault, times: Number.POSITIVE_INFINITY }];
    const lines: string[] = [];
    const { set, west } = await start({ wrap: withFaults(faults), onLog: (line) => lines.push(line) });
    await createNamespace(set.home('west'), 'portolan-system').catch(() => {});
    await west.create(leaseType, proxyLease(set.time, 3600));
    await set.time.advance(4_000);
    const ips = await importedIps(west, key);
    expect([ips.length, await ready(west)]).toEqual([1, 'True/Ready']);
    const { admin } = set.broker;
    const body = { spec: { clusterSetIP: 'derived' } };
    await admin.patch(clusterType, { namespace: setName, name: 'west' }, { kind: 'merge', body });
    await set.time.advance(100_000);
    expect(await importedIps(west, key)).toEqual(ips);
    expect(await ready(west)).toBe('True/DerivedServiceFailed');
    const { items } = await west.list<EndpointSlice>(endpointSliceType, { namespace: 'shop' });
    expect(items.map(({ metadata }) => metadata.labels?.['service.kubernetes.io/service-proxy-name'])).toEqual([
      'portolan',
    ]);
    expect(lines.filter((line) => line.includes('no derived Service')).length).toBe(1);
    faults.splice(0);
    await set.time.advance(40_000);
    expect(await ready(west)).toBe('True/Ready');
    expect(await importedIps(west, key)).toEqual((await derivedIn(west))?.spec?.clusterIPs);
  });

  test('derived services: an embedded home -> not ready: nothing routes the address of a Service there', async () => {
    const { west, east } = await start({ set: { clusterSetIP: 'derived' }, embedded: ['west'] });
    expect([await ready(west), await ready(east)]).toEqual(['False/NotCarried', 'True/Ready']);
    const found = await find<ServiceImport>(west, serviceImportType, key);
    expect(conditionOf(found?.status?.conditions, 'Ready')?.message).toMatch(/nothing .* routes .* embedded/);
  });

  test('derived services: an embedded home whose proxies carry Services -> ready; one of them does not -> not ready', async () => {
    const { set, west } = await start({ set: { clusterSetIP: 'derived' }, embedded: ['west'] });
    await createNamespace(set.home('west'), 'portolan-system').catch(() => {});
    const lease = (node: string, annotations: Record<string, string>) => {
      const made = proxyLease(set.time, 3600);
      return { ...made, metadata: { ...made.metadata, name: `portolan-proxy-${node}`, annotations } };
    };
    await west.create(leaseType, lease('node-1', { [carriesServicesAnnotation]: 'true' }));
    await set.time.advance(4_000);
    expect(await ready(west)).toBe('True/Ready');
    await west.create(leaseType, lease('node-2', {}));
    await set.time.advance(4_000);
    expect(await ready(west)).toBe('False/NotCarried');
  });
});

/** With a proxy that keeps its Lease. */
async function startWithProxy() {
  const { set, west } = await start();
  await createNamespace(set.home('west'), 'portolan-system').catch(() => {});
  const proxy = set.simulation.world('proxy');
  const client = set.home('west').clientOf(proxy);
  keepPartLease({ client, world: proxy, log: silentLog, part: 'proxy', id: 'node-1' });
  return { set, west, proxy };
}

describe('import conditions', () => {
  test('import conditions: no proxy has reported -> not ready, though it has an address; one does -> ready; it falls silent -> not', async () => {
    const { set, west } = await start();
    expect((await importedIps(west, key)).length).toBe(1);
    expect(await ready(west)).toBe('False/NotCarried');
    await createNamespace(set.home('west'), 'portolan-system').catch(() => {});
    await west.create(leaseType, proxyLease(set.time, 30));
    await set.time.advance(4_000);
    expect(await ready(west)).toBe('True/Ready');
    await set.time.advance(60_000);
    expect(await ready(west)).toBe('False/NotCarried');
  });

  test('import conditions: the process of the proxy is gone -> not ready within 15 s', async () => {
    const { set, west, proxy } = await startWithProxy();
    await set.time.advance(10_000);
    expect(await ready(west)).toBe('True/Ready');
    proxy.revoke();
    await set.time.advance(15_000);
    expect(await ready(west)).toBe('False/NotCarried');
  });

  test('import conditions: the home is away for 20 s, from agent and proxy -> ready all the time, for no proxy could report', async () => {
    const { set, west } = await startWithProxy();
    await set.time.advance(10_000);
    const link = (state: 'silent' | 'up') => {
      for (const from of ['agent-west', 'proxy']) set.simulation.network.setLink(from, set.home('west').url, state);
    };
    const since = async () => {
      const found = await find<ServiceImport>(west, serviceImportType, key);
      return conditionOf(found?.status?.conditions, 'Ready');
    };
    const before = await since();
    link('silent');
    await set.time.advance(20_000);
    link('up');
    await set.time.advance(30_000);
    expect(await since()).toEqual(before);
    expect(before?.status).toBe('True');
  });

  test('import conditions: headless, or a set without clusterset IPs -> ready, for clients reach endpoints by name', async () => {
    const { west } = await start({ set: { clusterSetIP: 'none' } });
    expect(await ready(west)).toBe('True/Ready');
  });
});

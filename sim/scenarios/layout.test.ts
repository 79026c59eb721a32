import { describe, expect, test } from 'vitest';
import { clusterSetType, type RecordLayout } from '../../src/clusterset/kinds/cluster-set.ts';
import { endpointShardType } from '../../src/clusterset/kinds/endpoint-shard.ts';
import { heartbeatType } from '../../src/clusterset/kinds/heartbeat.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { type ServiceShard, serviceShardType } from '../../src/clusterset/kinds/service-shard.ts';
import { type EndpointSlice, endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { leaseType } from '../../src/kube/objects/lease.ts';
import type { ResourceType } from '../../src/kube/objects/object.ts';
import { memberNamespace, SimClusterSet, setName } from '../clusterset.ts';
import { importLine, sliceLines } from '../look.ts';
import { exportService, slice } from '../manifests.ts';
import { createOlderAgent } from '../older-agent.ts';

const clusters = ['a', 'b', 'c', 'd', 'e'];
const key = 'shop/checkout';
const ref = { namespace: 'shop', name: 'checkout' };

/** Every cluster exports the service with one endpoint; older agents run in all of them. */
async function olderSet(layout: RecordLayout = 'PerMember', seed = 1, latencyMs = { min: 1, max: 5 }) {
  const set = new SimClusterSet({ clusters, seed, set: { layout }, latencyMs });
  await set.start({ namespaces: ['shop'], agents: [] });
  for (const id of clusters) set.startAgent(id, createOlderAgent);
  for (const [at, id] of clusters.entries())
    await exportService(set.home(id).admin, key, { endpoints: [`10.${at + 1}.0.1`] });
  await set.time.advance(20_000);
  return set;
}

async function setLayout(set: SimClusterSet, layout: RecordLayout): Promise<void> {
  const body = { spec: { layout } };
  await set.broker.admin.patch(clusterSetType, { namespace: setName, name: setName }, { kind: 'merge', body });
}

/** Addresses of other clusters' endpoints that this cluster has. */
async function known(set: SimClusterSet, id: string): Promise<number> {
  return (await sliceLines(set.home(id).admin, key)).filter((line) => / 10\./.test(line)).length;
}

async function countAt(set: SimClusterSet, type: ResourceType): Promise<number> {
  const lists = clusters.map((id) => set.broker.admin.list(type, { namespace: memberNamespace(id) }));
  return (await Promise.all(lists)).flatMap(({ items }) => items).length;
}

/** Advances while endpoints come and go, and fails when a cluster misses one that was there all the time. */
async function underLoad(set: SimClusterSet, seconds: number): Promise<void> {
  for (let second = 0; second < seconds * 2; second += 1) {
    const at = second % clusters.length;
    const { metadata, endpoints } = slice(key, {
      endpoints: [`10.${at + 1}.0.1`, `10.${at + 1}.1.${1 + (second % 250)}`],
    });
    await set.home(clusters[at]!).admin.patch(endpointSliceType, metadata, { kind: 'merge', body: { endpoints } });
    await set.time.advance(500);
    for (const id of clusters) expect(await known(set, id), `${id} after ${second * 500} ms`).toBe(clusters.length);
  }
}

describe('layout', () => {
  for (const seed of [1, 2, 3])
    test(`layout: agents are replaced one by one while endpoints change, seed ${seed} -> nobody misses an endpoint, and the older records go`, async () => {
      const set = await olderSet('PerMember', seed);
      await setLayout(set, 'AllNamespaces');
      await underLoad(set, 2);
      expect(await countAt(set, endpointShardType)).toBe(0);
      for (const id of clusters) {
        set.killAgent(id);
        set.startAgent(id);
        await underLoad(set, 3);
        const isLast = id === clusters.at(-1);
        if (!isLast) expect(await countAt(set, endpointSliceType)).toBe(clusters.length);
      }
      await underLoad(set, 15);
      expect(await countAt(set, endpointSliceType)).toBe(0);
      expect(await countAt(set, leaseType)).toBe(0);
      expect(await countAt(set, endpointShardType)).toBe(clusters.length);
      expect(await countAt(set, heartbeatType)).toBe(clusters.length);
    });

  test('layout: the last older agent is replaced, watches lag behind each other -> its endpoints are not missed for a moment', async () => {
    const set = await olderSet('PerMember', 1, { min: 1, max: 50 });
    await setLayout(set, 'AllNamespaces');
    const last = clusters.at(-1)!;
    for (const id of clusters) {
      if (id === last) await set.time.advance(15_000);
      set.killAgent(id);
      set.startAgent(id);
    }
    for (let elapsedMs = 0; elapsedMs < 15_000; elapsedMs += 10) {
      await set.time.advance(10);
      for (const id of clusters) expect(await known(set, id), `${id} after ${elapsedMs} ms`).toBe(clusters.length);
    }
    await set.time.advance(15_000);
    expect(await countAt(set, endpointSliceType)).toBe(0);
  });

  test('layout: asked for while all agents are new, and taken back -> nobody misses an endpoint either way', async () => {
    const set = new SimClusterSet({ clusters, set: { layout: 'PerMember' } });
    await set.start({ namespaces: ['shop'] });
    for (const [at, id] of clusters.entries())
      await exportService(set.home(id).admin, key, { endpoints: [`10.${at + 1}.0.1`] });
    await set.time.advance(10_000);
    await setLayout(set, 'AllNamespaces');
    await underLoad(set, 20);
    expect(await countAt(set, endpointSliceType)).toBe(0);
    await setLayout(set, 'PerMember');
    await underLoad(set, 20);
    expect(await countAt(set, endpointShardType)).toBe(0);
    expect(await countAt(set, heartbeatType)).toBe(0);
    expect(await countAt(set, endpointSliceType)).toBe(clusters.length);
  });

  test('layout: a cluster goes back to an older agent -> it is served again and judged by its Lease, and nobody loses an endpoint', async () => {
    const set = new SimClusterSet({ clusters });
    await set.start({ namespaces: ['shop'] });
    for (const [at, id] of clusters.entries())
      await exportService(set.home(id).admin, key, { endpoints: [`10.${at + 1}.0.1`] });
    await set.time.advance(20_000);
    set.killAgent('c');
    set.startAgent('c', createOlderAgent);
    for (let second = 0; second < 180; second += 1) {
      await set.time.advance(1_000);
      for (const id of ['a', 'b', 'd', 'e'])
        expect(await known(set, id), `${id} after ${second} s`).toBe(clusters.length);
      if (second > 15) expect(await known(set, 'c'), `c after ${second} s`).toBe(clusters.length);
    }
  });

  test('layout: an older agent joins a set that has moved -> it gets all endpoints, and the others get its own; replaced, the older records go', async () => {
    const set = new SimClusterSet({ clusters });
    await set.start({ namespaces: ['shop'], agents: clusters.slice(0, 4) });
    for (const [at, id] of clusters.entries())
      await exportService(set.home(id).admin, key, { endpoints: [`10.${at + 1}.0.1`] });
    await set.time.advance(20_000);
    expect(await countAt(set, leaseType)).toBe(0);
    set.startAgent('e', createOlderAgent);
    await set.time.advance(20_000);
    for (const id of clusters) expect(await known(set, id), id).toBe(clusters.length);
    await set.time.advance(120_000);
    for (const id of clusters) expect(await known(set, id), id).toBe(clusters.length);
    set.killAgent('e');
    set.startAgent('e');
    await underLoad(set, 45);
    expect(await countAt(set, endpointSliceType)).toBe(0);
    expect(await countAt(set, leaseType)).toBe(0);
  });

  test('layout: an older agent dies during the move -> judged by its lease and withdrawn', async () => {
    const set = await olderSet();
    await setLayout(set, 'AllNamespaces');
    for (const id of ['a', 'b', 'd', 'e']) {
      set.killAgent(id);
      set.startAgent(id);
    }
    await set.time.advance(20_000);
    set.killAgent('c');
    await set.time.advance(70_000);
    for (const id of ['a', 'b', 'd', 'e']) expect(await importLine(set.home(id).admin, key)).toContain('from a,b,d,e');
    set.startAgent('c', createOlderAgent);
    await set.time.advance(20_000);
    for (const id of ['a', 'b', 'd', 'e']) expect(await known(set, id)).toBe(clusters.length);
  });

  test('layout: members may not read all namespaces -> read one by one after a while; granted -> as asked for', async () => {
    let isGranted = false;
    const set = new SimClusterSet({
      clusters: ['a', 'b'],
      wrap: (home, handler) => async (request) => {
        const isShared =
          home === 'broker' && /\/v1alpha1\/(serviceshards|endpointshards|heartbeats)/.test(request.path);
        if (isGranted || !isShared) return handler(request);
        const status = {
          kind: 'Status',
          apiVersion: 'v1',
          status: 'Failure',
          reason: 'Forbidden',
          message: 'forbidden',
          code: 403,
        };
        return { status: 403, headers: {}, body: Buffer.from(JSON.stringify(status)) };
      },
    });
    await set.start({ namespaces: ['shop'] });
    await exportService(set.home('a').admin, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(60_000);
    expect(await sliceLines(set.home('b').admin, key)).toEqual(['a: 10.1.0.1 on http>8080']);
    isGranted = true;
    for (let second = 0; second < 90; second += 1) {
      await set.time.advance(1_000);
      expect(await sliceLines(set.home('b').admin, key)).toEqual(['a: 10.1.0.1 on http>8080']);
    }
    const { items } = await set.broker.admin.list<EndpointSlice>(endpointSliceType);
    expect(items).toEqual([]);
  });

  test('layout: unexported, and exported again with two slices -> the shard says how many there are, nothing is left', async () => {
    const set = new SimClusterSet({ clusters });
    await set.start({ namespaces: ['shop'] });
    const a = set.home('a').admin;
    await exportService(a, key, { endpoints: ['10.1.0.1'] });
    await a.create(endpointSliceType, slice(key, { endpoints: ['10.1.0.2'], suffix: 'b' }));
    await set.time.advance(5_000);
    const [shard] = (await set.broker.admin.list<ServiceShard>(serviceShardType)).items;
    expect(shard?.spec.endpointShards).toBe(2);
    await a.delete(serviceExportType, ref);
    await set.time.advance(5_000);
    expect(await countAt(set, endpointShardType)).toBe(0);
    expect(await importLine(set.home('b').admin, key)).toBe('none');
  });
});

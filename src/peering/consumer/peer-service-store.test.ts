// A service that the home itself refuses, and its status.

import { afterEach, expect, test } from 'vitest';
import { type Log, silentLog } from '../../base/log.ts';
import { createRealWorld } from '../../base/real/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { ApiError } from '../../kube/objects/api-error.ts';
import { type PeerService, peerServiceType } from '../kinds/peer-service.ts';
import { memoryHome, namespace } from '../testing/edge/memory-home.ts';
import { serviceOf } from '../testing/services.ts';
import { v1alpha1 } from '../transport/wire.ts';
import { PeerServiceStore, type PutResult } from './peer-service-store.ts';
import { RefusalList } from './refusals.ts';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function storeOn(
  wrap: (client: Client) => Client = (client) => client,
  { log = silentLog, followAfterMs = 0 }: { readonly log?: Log; readonly followAfterMs?: number } = {},
) {
  const home = await memoryHome();
  const heard: unknown[] = [];
  const store = new PeerServiceStore({
    client: wrap(home.client),
    world: createRealWorld(),
    log,
    namespace,
    peer: 'east',
    followAfterMs,
    onStored: (_id, stored) => heard.push(stored?.spec.fqdn),
  });
  closing.push(home.stop, () => store.stop());
  const put = (id: string, changes: Parameters<typeof serviceOf>[1] = {}) => {
    const service = serviceOf(id, changes);
    return new Promise<PutResult>((resolve) => store.put(service, v1alpha1.encodeOffer(service).hash, resolve));
  };
  const objects = async () => (await home.client.list<PeerService>(peerServiceType, { namespace })).items;
  return { store, put, objects, heard, client: home.client };
}

/** The first so many creations of a service with a name are answered like this. */
function refusing(error: () => ApiError, times = Number.POSITIVE_INFINITY) {
  let left = times;
  return (client: Client): Client => {
    const create: Client['create'] = (type, object, write) => {
      const isWhole = (object as unknown as PeerService).spec?.fqdn !== undefined;
      if (isWhole && left-- > 0) return Promise.reject(error());
      return client.create(type, object, write);
    };
    return { ...client, create };
  };
}

const path = 'POST /apis/portolan.dev/v1alpha1/namespaces/portolan-system/peerservices';
const answer = (code: number, reason: string, message = 'no') => new ApiError(`${path}: ${message}`, { code, reason });

test.each<[string, () => ApiError, string]>([
  ['413', () => answer(413, 'RequestEntityTooLarge'), 'Too long: it is larger than what can be kept here'],
  ['400', () => answer(400, 'BadRequest'), 'Invalid value: it cannot be kept here'],
  ['403, again and again', () => answer(403, 'Forbidden'), 'Forbidden: it may not be kept here'],
  [
    '500 of an etcd that has no room',
    () => answer(500, 'InternalError', 'etcdserver: request is too large'),
    'Too long: it is larger than what can be kept here',
  ],
])('store: the home answers %s -> refused, in words that tell nothing of our home', async (_name, error, reason) => {
  const { put } = await storeOn(refusing(error));
  expect(await put('a')).toEqual({ kind: 'refused', reason: `the service: ${reason}` });
});

test('store: the home refuses fields -> refused with the fields as their owner knows them', async () => {
  const { put } = await storeOn();
  const result = await put('a', { description: 'x'.repeat(10_000) });
  expect(result).toMatchObject({ kind: 'refused', reason: expect.stringMatching(/^description: Too long/) });
  expect(JSON.stringify(result)).not.toContain('portolan-system');
});

test('store: the home forbids it for a moment -> stored, not refused', async () => {
  const { put, objects } = await storeOn(refusing(() => answer(403, 'Forbidden'), 2));
  expect(await put('a')).toEqual({ kind: 'stored' });
  expect(await objects()).toHaveLength(1);
});

test('store: refused by the home from the beginning -> there is an object that says so and why', async () => {
  const { store, objects } = await storeOn();
  const refusals = new RefusalList(store);
  const service = serviceOf('a', { description: 'x'.repeat(10_000) });
  store.put(service, v1alpha1.encodeOffer(service).hash, (result) => {
    if (result.kind === 'refused') refusals.add({ id: 'a', reason: result.reason }, 0);
  });
  await expect.poll(async () => (await objects())[0]?.status?.state).toBe('Refused');
  const [object] = await objects();
  expect(object).toMatchObject({
    spec: { peer: 'east', id: 'a' },
    status: { message: expect.stringContaining('description: Too long') },
  });
});

test('store: the same content twice while the first is being written -> written once, both told', async () => {
  let writes = 0;
  const { put } = await storeOn((client) => ({
    ...client,
    create: (type, object, write) => {
      writes += 1;
      return client.create(type, object, write);
    },
    update: (type, object, write) => {
      writes += 1;
      return client.update(type, object, write);
    },
  }));
  const first = put('a');
  await Promise.resolve();
  expect(await Promise.all([first, put('a')])).toEqual([{ kind: 'stored' }, { kind: 'stored' }]);
  expect(writes).toBe(1);
});

test('store: the home refuses a thousand services -> a few lines in the log, which say how many are left out', async () => {
  const lines: string[] = [];
  const log: Log = { ...silentLog, warn: (text) => void lines.push(text) };
  const { put } = await storeOn(
    refusing(() => answer(400, 'BadRequest')),
    { log },
  );
  await Promise.all(Array.from({ length: 1000 }, (_, n) => put(`s${n}`)));
  expect(lines).toHaveLength(20);
});

test('refusals: an id and a reason of any length -> what is shown fits into a status', async () => {
  const { store, objects } = await storeOn();
  const refusals = new RefusalList(store);
  refusals.add({ id: 'x'.repeat(300), reason: 'y'.repeat(100_000) }, 0);
  const [shown] = refusals.newest();
  expect(shown?.id).toHaveLength(255);
  expect(shown?.reason).toHaveLength(1024);
  refusals.mended('x'.repeat(300));
  expect(refusals.size).toBe(0);
  await store.whenIdle();
  expect(await objects()).toEqual([]);
});

const ref = (id: string) => ({ namespace, name: `east.${id}` });

test('store: a service is removed by hand -> put back as it was, with its age and what was said of it', async () => {
  const { store, put, objects, heard, client } = await storeOn();
  await store.load(() => true);
  await put('a');
  store.setStatus('a', { state: 'Stale', since: '2026-01-01T00:00:00Z', message: 'away' });
  await expect.poll(async () => (await objects())[0]?.status?.state).toBe('Stale');
  const [before] = await objects();
  await client.delete(peerServiceType, ref('a'));
  await expect.poll(async () => (await objects())[0]?.status?.state, { timeout: 5000 }).toBe('Stale');
  const [after] = await objects();
  expect(after?.metadata.uid).not.toBe(before?.metadata.uid);
  expect(after?.metadata.annotations).toEqual(before?.metadata.annotations);
  expect(after).toMatchObject({ spec: before?.spec, status: before?.status });
  expect(heard).not.toContain(undefined);
});

test('store: a service is removed by hand before the home is followed -> put back at the first look', async () => {
  const { store, put, objects, client } = await storeOn(undefined, { followAfterMs: 500 });
  await store.load(() => true);
  for (const id of ['a', 'b']) await put(id);
  await client.delete(peerServiceType, ref('a'));
  await expect.poll(async () => (await objects()).map(({ spec }) => spec.id), { timeout: 5000 }).toEqual(['a', 'b']);
});

test('store: something is said of a service that was removed by hand -> put back, with that too', async () => {
  const { store, put, objects, client } = await storeOn(undefined, { followAfterMs: 1_000_000 });
  await store.load(() => true);
  await put('a');
  await client.delete(peerServiceType, ref('a'));
  store.setStatus('a', { state: 'Stale', message: 'away' });
  await expect
    .poll(async () => (await objects())[0]?.status, { timeout: 5000 })
    .toEqual({ state: 'Stale', message: 'away' });
});

test('store: a service is edited by hand, its spec or its marks -> put back; a status of others stays', async () => {
  const { store, put, objects, client } = await storeOn();
  await store.load(() => true);
  await put('a');
  const [before] = await objects();
  const status = { kind: 'merge', body: { status: { ips: ['10.0.0.1'] } } } as const;
  await client.patch(peerServiceType, ref('a'), status, { subresource: 'status' });
  for (const body of [
    { spec: { endpoints: [{ address: '192.0.2.66', port: 1 }] } },
    { spec: { id: 'other', peer: 'west' } },
    { metadata: { labels: { 'portolan.dev/peer': null } } },
    { metadata: { annotations: { 'portolan.dev/first-seen': '1' } } },
  ]) {
    await client.patch(peerServiceType, ref('a'), { kind: 'merge', body });
    await expect
      .poll(async () => (await objects())[0], { timeout: 5000 })
      .toMatchObject({
        spec: before?.spec,
        metadata: { labels: before?.metadata.labels, annotations: before?.metadata.annotations },
        status: { ips: ['10.0.0.1'] },
      });
  }
});

test('store: something is said of a service that was edited by hand a moment ago -> put back, with that too', async () => {
  const { store, put, objects, client } = await storeOn(undefined, { followAfterMs: 1_000_000 });
  await store.load(() => true);
  await put('a');
  const [before] = await objects();
  await client.patch(peerServiceType, ref('a'), { kind: 'merge', body: { spec: { fqdn: 'evil.example' } } });
  store.setStatus('a', { state: 'Stale', message: 'away' });
  await expect
    .poll(async () => (await objects())[0], { timeout: 5000 })
    .toMatchObject({ spec: before?.spec, status: { state: 'Stale' } });
  expect(store.get('a')?.spec.fqdn).toBe(before?.spec.fqdn);
});

test('store: a service that the peer never shared is made by hand -> removed', async () => {
  const { store, put, objects, client } = await storeOn();
  await store.load(() => true);
  await put('a');
  const [one] = await objects();
  const { labels, annotations } = one!.metadata;
  const made = {
    ...one!,
    metadata: { name: 'east.b', namespace, labels, annotations },
    spec: { ...one!.spec, id: 'b' },
  };
  await client.create(peerServiceType, made);
  await expect.poll(async () => (await objects()).map(({ spec }) => spec.id), { timeout: 5000 }).toEqual(['a']);
});

test('store: the owner takes back what was removed by hand, and changes what was -> its word counts', async () => {
  const { store, put, objects, client } = await storeOn();
  await store.load(() => true);
  for (const id of ['a', 'b']) await put(id);
  for (const id of ['a', 'b']) await client.delete(peerServiceType, ref(id));
  await new Promise<void>((resolve) => store.remove(['a'], resolve));
  await put('b', { description: 'new' });
  await expect
    .poll(async () => (await objects()).map(({ spec }) => `${spec.id} ${spec.description}`), { timeout: 5000 })
    .toEqual(['b new']);
  expect(await put('b', { description: 'new' })).toEqual({ kind: 'stored' });
});

test('store: our own writes and the status of others -> nothing is asked or written again', async () => {
  const sent: string[] = [];
  const { store, put, client } = await storeOn((home) => ({
    ...home,
    get: (type, one, request) => {
      sent.push(`get ${one.name}`);
      return home.get(type, one, request);
    },
    update: (type, object, write) => {
      sent.push(`update ${object.metadata.name}`);
      return home.update(type, object, write);
    },
  }));
  await store.load(() => true);
  const ids = Array.from({ length: 50 }, (_, n) => `s${n}`);
  await Promise.all(ids.map((id) => put(id)));
  const status = { kind: 'merge', body: { status: { ips: ['10.0.0.1'] } } } as const;
  for (const id of ids) await client.patch(peerServiceType, ref(id), status, { subresource: 'status' });
  await expect.poll(() => ids.every((id) => store.get(id)?.status.ips?.length === 1), { timeout: 5000 }).toBe(true);
  await Promise.all(ids.map((id) => put(id, { description: 'new' })));
  expect(sent.sort()).toEqual(ids.map((id) => `update east.${id}`).sort());
});

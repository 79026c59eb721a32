// The rest of a catalog after an outage: under the virtual clock, with whole meshes.

import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import { createInformer } from '../kube/controller/informer.ts';
import { type PeerSpec, peerType } from './kinds/peer.ts';
import { type PeerExport, peerExportType } from './kinds/peer-export.ts';
import { type PeerService, peerServiceType } from './kinds/peer-service.ts';
import type { PeeringOptions } from './peering.ts';
import { namespace, type VirtualMesh, VirtualMeshes } from './testing/virtual-mesh.ts';

interface Pair {
  readonly all: VirtualMeshes;
  readonly owner: VirtualMesh;
  readonly consumer: VirtualMesh;
  /** Names that vanished from the consumer's home, in order. */
  readonly vanished: string[];
  until(condition: () => Promise<boolean>, withinMs?: number): Promise<void>;
  equal(withinMs?: number): Promise<void>;
}

type Mode = 'exact' | 'quiescence';

async function synced(mode: Mode, count = 20, spec: Partial<PeerSpec> = {}): Promise<Pair> {
  const all = new VirtualMeshes();
  const dial = all.network.dial({ withoutMarker: mode === 'quiescence' });
  const owner = await all.add('owner');
  const consumer = await all.add('consumer', { dial } as Partial<PeeringOptions>);
  for (let n = 0; n < count; n += 1) await owner.addService(`s${n}`, 'first');
  await owner.exportAll(['consumer']);
  await all.introduce(owner, consumer, spec);
  const vanished = watchVanishing(all, consumer);
  const until: Pair['until'] = async (condition, withinMs = 30_000) => {
    const endMs = all.time.nowMs + withinMs;
    while (!(await condition())) {
      if (all.time.nowMs > endMs) throw new Error(`did not happen in ${withinMs} virtual ms: ${condition}`);
      await all.time.advance(100);
    }
  };
  const equal = (withinMs = 30_000) =>
    until(async () => (await owner.offered()).join() === (await consumer.heldTexts()).join(), withinMs);
  await equal();
  await until(async () => (await consumer.peer('owner')).status?.consumer?.state === 'Synced');
  return { all, owner, consumer, vanished, until, equal };
}

function watchVanishing(all: VirtualMeshes, consumer: VirtualMesh): string[] {
  const vanished: string[] = [];
  const world = all.simulation.world('watcher');
  const informer = createInformer<PeerService>({ client: consumer.home.admin, world, type: peerServiceType });
  informer.on((_key, next, previous) => {
    if (next === undefined && previous !== undefined) vanished.push(previous.spec.name ?? '');
  });
  informer.start();
  return vanished;
}

async function changeDuringOutage({ owner }: Pair): Promise<void> {
  await owner.addService('new', 'added');
  await owner.describe('s1', 'changed');
  await owner.describe('s2', 'changed');
  await owner.removeService('s3');
  await owner.removeService('s4');
}

test.each<Mode>(['exact', 'quiescence'])(
  'outage, %s: adds, updates and deletes while the owner is away -> equal catalogs, not one valid entry gone on the way [000-21]',
  async (mode) => {
    const pair = await synced(mode);
    pair.all.network.setFault(pair.owner.address, 'refused');
    await changeDuringOutage(pair);
    await pair.all.time.advance(60_000);
    expect(pair.vanished).toEqual([]);
    expect(await pair.consumer.heldTexts()).toHaveLength(20);
    pair.all.network.setFault(pair.owner.address, 'up');
    await pair.equal(200_000);
    expect(pair.vanished.sort()).toEqual(['s3', 's4']);
    const { status } = await pair.consumer.peer('owner');
    await pair.until(async () => (await pair.consumer.peer('owner')).status?.consumer?.state === 'Synced');
    expect(status?.consumer?.reconciliation).toBe(mode === 'exact' ? 'Marker' : 'Quiescence');
  },
);

test('outage, quiescence: what the owner no longer names -> suspect first, gone after the grace', async () => {
  const pair = await synced('quiescence');
  pair.all.network.setFault(pair.owner.address, 'refused');
  await pair.owner.removeService('s3');
  pair.all.network.setFault(pair.owner.address, 'up');
  const suspects = async () =>
    (await pair.consumer.held()).filter(({ status }) => status?.state === 'Suspect').map(({ spec }) => spec.name);
  await pair.until(async () => (await suspects()).length > 0, 20_000);
  expect(await suspects()).toEqual(['s3']);
  await pair.all.time.advance(50_000);
  expect(pair.vanished).toEqual([]);
  await pair.equal(20_000);
  expect(pair.vanished).toEqual(['s3']);
});

test('outage: a silent owner -> noticed by keep-alive within 30 s, shown as away, never as healthy', async () => {
  const pair = await synced('exact');
  pair.all.network.setFault(pair.owner.address, 'silent');
  await pair.until(async () => (await pair.consumer.peer('owner')).status?.consumer?.state === 'Stale', 30_000);
  expect((await pair.owner.peer('consumer')).status?.owner?.state).toBe('Idle');
});

test('outage: the owner is away -> entries kept and marked stale since when; it comes back -> active again [000-23]', async () => {
  const pair = await synced('exact', 5);
  pair.all.network.setFault(pair.owner.address, 'refused');
  await pair.all.time.advance(45_000);
  for (const { status } of await pair.consumer.held())
    expect(status).toMatchObject({ state: 'Stale', since: expect.stringMatching(/^2026-01-01T00:0/) });
  pair.all.network.setFault(pair.owner.address, 'up');
  await pair.until(async () => (await pair.consumer.held()).every(({ status }) => status?.state === 'Active'), 90_000);
  expect((await pair.consumer.held())[0]?.status?.since).toBeUndefined();
  expect(pair.vanished).toEqual([]);
});

test('outage: longer than the retention time -> withdrawn; retention 0 -> kept for ever [000-22]', async () => {
  const bounded = await synced('exact', 3, { retentionSeconds: 600 });
  bounded.all.network.setFault(bounded.owner.address, 'refused');
  await bounded.all.time.advance(560_000);
  expect(await bounded.consumer.held()).toHaveLength(3);
  await bounded.all.time.advance(60_000);
  expect(await bounded.consumer.held()).toEqual([]);
  const forever = await synced('exact', 3, { retentionSeconds: 0 });
  forever.all.network.setFault(forever.owner.address, 'refused');
  await forever.all.time.advance(2 * 24 * 3_600_000);
  expect(await forever.consumer.held()).toHaveLength(3);
}, 60_000);

test.each<Mode>(['exact', 'quiescence'])(
  'outage, %s: the owner is restarted, its home slow to answer -> never an empty catalog',
  async (mode) => {
    const pair = await synced(mode);
    pair.owner.kill();
    pair.owner.home.kill();
    const starting = pair.owner.start();
    await pair.all.time.advance(20_000);
    expect(pair.vanished).toEqual([]);
    expect(await pair.consumer.held()).toHaveLength(20);
    await pair.owner.home.start();
    await starting;
    await pair.owner.describe('s1', 'after');
    await pair.equal(200_000);
    expect(pair.vanished).toEqual([]);
  },
);

test('outage: a foreign owner comes back with an empty catalog -> what it shared stays for the retention time', async () => {
  const pair = await synced('quiescence', 3, { retentionSeconds: 600 });
  pair.all.network.setFault(pair.owner.address, 'refused');
  for (const name of ['s0', 's1', 's2']) await pair.owner.removeService(name);
  pair.all.network.setFault(pair.owner.address, 'up');
  await pair.all.time.advance(300_000);
  expect(await pair.consumer.held()).toHaveLength(3);
  await pair.all.time.advance(330_000);
  expect(await pair.consumer.held()).toEqual([]);
});

test('outage: our own peer comes back with an empty catalog -> exactly that', async () => {
  const pair = await synced('exact', 3);
  pair.all.network.setFault(pair.owner.address, 'refused');
  for (const name of ['s0', 's1', 's2']) await pair.owner.removeService(name);
  pair.all.network.setFault(pair.owner.address, 'up');
  await pair.equal(30_000);
  expect(await pair.consumer.held()).toEqual([]);
});

test('outage, exact: the newest service goes while the owner is down -> its next snapshot counts as newer all the same', async () => {
  const pair = await synced('exact', 5);
  const reconnect = async () => {
    pair.all.network.setFault(pair.owner.address, 'refused');
    await pair.all.time.advance(100);
    pair.all.network.setFault(pair.owner.address, 'up');
  };
  await pair.all.time.advance(5000);
  await pair.owner.describe('s4', 'newest of all');
  await pair.equal();
  await reconnect();
  const report = () => pair.consumer.peering?.consumer()?.report('owner');
  await pair.until(async () => report()?.state.kind === 'waiting' && report()?.staleSinceMs === undefined);
  pair.owner.kill();
  await pair.owner.removeService('s4');
  await pair.owner.removeService('s1');
  await pair.owner.start();
  await pair.equal(40_000);
  expect(report()).toMatchObject({ mode: 'exact' });
  expect(pair.vanished.sort()).toEqual(['s1', 's4']);
});

test('outage, exact: the newest export goes while the owner is down, the consumer comes back at once -> gone as exactly', async () => {
  const pair = await synced('exact', 5);
  await pair.all.time.settle(
    pair.owner.home.admin.create<PeerExport>(peerExportType, {
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'PeerExport',
      metadata: { name: 'more', namespace: 'shop' },
      spec: { services: ['s1'], fqdn: 'more.example', peers: ['consumer'] },
    }),
  );
  await pair.until(async () => (await pair.consumer.held()).length === 6);
  // Its status was written, so that nothing in the home is newer than it.
  await pair.all.time.advance(5000);
  pair.consumer.peering?.consumer()?.retry('owner');
  pair.all.network.setFault(pair.owner.address, 'refused');
  await pair.all.time.advance(100);
  pair.all.network.setFault(pair.owner.address, 'up');
  const report = () => pair.consumer.peering?.consumer()?.report('owner');
  await pair.until(async () => report()?.state.kind === 'waiting' && report()?.staleSinceMs === undefined);
  pair.owner.kill();
  await pair.all.time.settle(pair.owner.home.admin.delete(peerExportType, { namespace: 'shop', name: 'more' }));
  await pair.all.time.settle(pair.owner.home.admin.delete(peerExportType, { namespace: 'shop', name: 'all' }));
  await pair.owner.start();
  await pair.until(async () => pair.owner.peering?.owner.report('consumer') !== undefined, 60_000);
  await pair.until(async () => (await pair.consumer.held()).length === 0, 1000);
  expect(report()).toMatchObject({ mode: 'exact' });
});

test('outage: the consumer is killed at any moment of a sync -> it serves what it acknowledged, and converges', async () => {
  for (const afterMs of [1, 7, 13, 29, 60, 120]) {
    const pair = await synced('exact', 30);
    pair.all.network.setFault(pair.owner.address, 'refused');
    for (let n = 0; n < 30; n += 1) await pair.owner.describe(`s${n}`, 'second');
    pair.all.network.setFault(pair.owner.address, 'up');
    await pair.until(
      async () => pair.consumer.peering?.consumer()?.report('owner')?.state.kind !== 'backingOff',
      60_000,
    );
    await pair.all.time.advance(afterMs);
    pair.consumer.kill();
    expect(await pair.consumer.held()).toHaveLength(30);
    await pair.consumer.start();
    await pair.equal(60_000);
    expect(pair.vanished).toEqual([]);
  }
}, 60_000);

test("outage: the consumer's home is away -> nothing is acknowledged that is not stored; it comes back -> all is [000-19]", async () => {
  const pair = await synced('exact', 5);
  pair.consumer.home.kill();
  await pair.owner.describe('s1', 'unseen');
  await pair.all.time.advance(20_000);
  expect(pair.owner.peering?.owner.report('consumer')).toMatchObject({ unacknowledged: 1, lag: 1 });
  await pair.consumer.home.start();
  await pair.equal(60_000);
  await pair.until(async () => pair.owner.peering?.owner.report('consumer')?.lag === 0, 10_000);
});

test('withdrawal: an export is taken back -> gone at the consumer within a second', async () => {
  const pair = await synced('exact', 20);
  await pair.all.time.settle(pair.owner.home.admin.delete(peerExportType, { namespace: 'shop', name: 'all' }));
  await pair.all.time.advance(1000);
  expect(await pair.consumer.held()).toEqual([]);
});

test('outage: a peer that comes back in a loop -> refused as Unavailable before it costs a catalog each time', async () => {
  const pair = await synced('exact', 3);
  let opened = 0;
  const flood = pair.all.network.dial();
  for (let n = 0; n < 100; n += 1) {
    const options = { address: pair.owner.address, path: path1, headers: {}, certificate: 'consumer' };
    flood(options as never, {
      onOpened: () => (opened += 1),
      onMessage() {},
      onOversized() {},
      onAlive() {},
      onClosed() {},
    });
    await pair.all.time.advance(20);
  }
  expect(opened).toBeLessThan(40);
});

test('outage: the consumer was off for longer than the retention time, the owner was there -> nothing goes', async () => {
  const pair = await synced('exact', 3, { retentionSeconds: 600 });
  pair.consumer.kill();
  await pair.all.time.advance(3_600_000);
  await pair.consumer.start();
  await pair.until(async () => pair.consumer.peering?.consumer()?.report('owner')?.state.kind === 'waiting');
  await pair.all.time.advance(120_000);
  expect(pair.vanished).toEqual([]);
});

test('outage: both were off for a day, the owner starts a little later -> nothing goes', async () => {
  const pair = await synced('exact', 3, { retentionSeconds: 600 });
  pair.consumer.kill();
  pair.owner.kill();
  await pair.all.time.advance(24 * 3_600_000);
  await pair.consumer.start();
  await pair.all.time.advance(400_000);
  await pair.owner.start();
  await pair.equal(120_000);
  await pair.all.time.advance(600_000);
  expect(pair.vanished).toEqual([]);
});

test('outage: the owner is gone for good, the consumer is restarted again and again -> the time it looked adds up', async () => {
  const pair = await synced('exact', 3, { retentionSeconds: 1200 });
  pair.owner.kill();
  for (let n = 0; n < 4; n += 1) {
    await pair.all.time.advance(250_000);
    expect(await pair.consumer.held()).toHaveLength(3);
    pair.consumer.kill();
    await pair.all.time.advance(10_000);
    await pair.consumer.start();
  }
  await pair.all.time.advance(330_000);
  expect(await pair.consumer.held()).toEqual([]);
});

test('outage: a retention time of seconds -> marked before it is over, withdrawn when it is', async () => {
  const pair = await synced('exact', 3, { retentionSeconds: 6 });
  pair.all.network.setFault(pair.owner.address, 'refused');
  const states = async () => (await pair.consumer.held()).map(({ status }) => status?.state);
  await pair.until(async () => (await states()).every((state) => state === 'Stale'), 5000);
  expect(await states()).toHaveLength(3);
  await pair.until(async () => (await states()).length === 0, 6000);
});

async function changePeer(pair: Pair, name: string, spec: Partial<PeerSpec>): Promise<void> {
  const { admin } = pair.consumer.home;
  const patch = { kind: 'merge' as const, body: { spec } };
  await pair.all.time.settle(admin.patch(peerType, { namespace, name }, patch));
}

test('suspended: for longer than the retention time -> marked stale, then withdrawn; shorter -> back with everything', async () => {
  const pair = await synced('exact', 3, { retentionSeconds: 600 });
  await changePeer(pair, 'owner', { suspended: true });
  await pair.all.time.advance(60_000);
  expect((await pair.consumer.held()).map(({ status }) => status?.state)).toEqual(['Stale', 'Stale', 'Stale']);
  expect((await pair.consumer.peer('owner')).status?.consumer).toMatchObject({ state: 'Idle', message: 'suspended' });
  await pair.all.time.advance(535_000);
  await changePeer(pair, 'owner', { suspended: false });
  await pair.until(async () => (await pair.consumer.held()).every(({ status }) => status?.state === 'Active'));
  await pair.all.time.advance(120_000);
  expect(pair.vanished).toEqual([]);
  await changePeer(pair, 'owner', { suspended: true });
  await pair.all.time.advance(610_000);
  expect(await pair.consumer.held()).toEqual([]);
});

test('misconfigured: a Peer whose roots are none -> said, marked stale, withdrawn; mended in time -> back with everything', async () => {
  const pair = await synced('exact', 3, { retentionSeconds: 600 });
  const trust = (bundle: string) => ({ trust: { domain: 'owner.example', bundle } });
  await changePeer(pair, 'owner', trust('nonsense'));
  await pair.all.time.advance(60_000);
  expect((await pair.consumer.peer('owner')).status?.consumer).toMatchObject({
    state: 'Refused',
    message: 'its trust bundle holds no certificate in PEM',
  });
  expect((await pair.consumer.held()).map(({ status }) => status?.state)).toEqual(['Stale', 'Stale', 'Stale']);
  await changePeer(pair, 'owner', trust(pair.all.root));
  await pair.until(async () => (await pair.consumer.held()).every(({ status }) => status?.state === 'Active'));
  expect(pair.vanished).toEqual([]);
  await changePeer(pair, 'owner', trust('nonsense'));
  await pair.all.time.advance(610_000);
  expect(await pair.consumer.held()).toEqual([]);
});

test('suspended: the older claimant of a name, across a restart -> the name stays with it', async () => {
  const pair = await synced('exact', 1);
  const second = await pair.all.add('second');
  await second.addService('s0', 'theirs');
  await pair.all.time.settle(
    second.home.admin.create<PeerExport>(peerExportType, {
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'PeerExport',
      metadata: { name: 'same', namespace: 'shop' },
      spec: { services: ['s0'], fqdn: 's0.shop.owner.example', peers: ['consumer'] },
    }),
  );
  await pair.all.introduce(second, pair.consumer);
  const names = async () =>
    Object.fromEntries((await pair.consumer.held()).map(({ spec, status }) => [spec.peer, status?.hostnames]));
  const wanted = {
    owner: ['s0.shop.owner.example', 's0.owner.svc.peers.local'],
    second: ['s0.second.svc.peers.local'],
  };
  await pair.until(async () => isDeepStrictEqual(await names(), wanted));
  await changePeer(pair, 'owner', { suspended: true });
  await pair.all.time.advance(1000);
  pair.consumer.kill();
  await pair.consumer.start();
  for (let n = 0; n < 50; n += 1) {
    await pair.all.time.advance(100);
    expect(await names()).toEqual(wanted);
  }
});

const path1 = '/federation.resourcediscovery.v1alpha1.DiscoveryService/EstablishStream';

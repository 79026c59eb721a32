// A Peer that is deleted, re-created, or deleted during a downtime: the fate of its services. Under the virtual
// clock, with a home that is slow at the worst moment.

import { expect, test } from 'vitest';
import type { Client } from '../kube/client/client.ts';
import { peerType } from './kinds/peer.ts';
import { peerLabel, peerServiceType } from './kinds/peer-service.ts';
import { namespace, type VirtualMesh, VirtualMeshes } from './testing/virtual-mesh.ts';

type Verb = 'create' | 'update' | 'deleteCollection';

/** Requests about PeerServices wait for as long as their verb is held. */
class SlowHome {
  readonly #held = new Set<Verb>();
  #waiting: (() => void)[] = [];
  /** So many removals fail. */
  failures = 0;

  hold(verb: Verb): void {
    this.#held.add(verb);
  }

  release(): void {
    this.#held.clear();
    for (const go of this.#waiting.splice(0)) go();
  }

  readonly wrap = (client: Client): Client => {
    const slow = (verb: Verb) =>
      ((type: unknown, ...rest: unknown[]) => {
        const run = () => (client[verb] as (...args: unknown[]) => Promise<unknown>)(type, ...rest);
        if (verb === 'deleteCollection' && this.failures-- > 0) return Promise.reject(new Error('home is away'));
        if (type !== peerServiceType || !this.#held.has(verb)) return run();
        return new Promise<void>((resolve) => this.#waiting.push(resolve)).then(run);
      }) as never;
    return { ...client, create: slow('create'), update: slow('update'), deleteCollection: slow('deleteCollection') };
  };
}

async function meshes(count: number) {
  const all = new VirtualMeshes();
  const slow = new SlowHome();
  const owner = await all.add('owner');
  const consumer = await all.add('consumer', { wrapClient: slow.wrap });
  for (let n = 0; n < count; n += 1) await owner.addService(`s${n}`, 'first');
  await owner.exportAll(['consumer']);
  return { all, slow, owner, consumer };
}

async function removePeer({ all, consumer }: { all: VirtualMeshes; consumer: VirtualMesh }): Promise<void> {
  await all.time.settle(consumer.home.admin.delete(peerType, { namespace, name: 'owner' }));
}

test('deregistering: the Peer is replaced while its services are still being removed -> taken again, all of them', async () => {
  const pair = await meshes(20);
  const { all, slow, owner, consumer } = pair;
  await all.introduce(owner, consumer);
  await all.time.advance(5000);
  expect(await consumer.held()).toHaveLength(20);
  slow.hold('deleteCollection');
  await removePeer(pair);
  await consumer.addPeer('owner', { address: owner.address, allowedDomains: ['*'] });
  await all.time.advance(10_000);
  slow.release();
  await all.time.advance(10_000);
  expect(await consumer.heldTexts()).toEqual(await owner.offered());
  expect((await consumer.peer('owner')).status?.consumer).toMatchObject({ state: 'Synced', services: 20 });
});

test('deregistering: the Peer is removed in the middle of a sync -> writes under way end first, nothing is left', async () => {
  const pair = await meshes(50);
  const { all, slow, owner, consumer } = pair;
  slow.hold('create');
  await all.introduce(owner, consumer);
  await all.time.advance(5000);
  await removePeer(pair);
  await all.time.advance(1000);
  slow.release();
  await all.time.advance(10_000);
  expect(await consumer.held()).toEqual([]);
});

test('deregistering: services of no Peer appear while we run -> swept; those of a Peer stay', async () => {
  const { all, owner, consumer } = await meshes(3);
  await all.introduce(owner, consumer);
  await all.time.advance(5000);
  const orphan = {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'PeerService',
    metadata: { name: 'gone.db', namespace, labels: { [peerLabel]: 'gone' } },
    spec: { peer: 'gone', id: 'db' },
  };
  await all.time.settle(consumer.home.admin.create(peerServiceType, orphan));
  await all.time.advance(300_000);
  expect((await consumer.held()).map(({ spec }) => spec.peer)).toEqual(['owner', 'owner', 'owner']);
});

test('deregistering: the home is away when the Peer goes -> tried again, its services go', async () => {
  const pair = await meshes(3);
  const { all, slow, owner, consumer } = pair;
  await all.introduce(owner, consumer);
  await all.time.advance(5000);
  slow.failures = 3;
  await removePeer(pair);
  await all.time.advance(10_000);
  expect(await consumer.held()).toEqual([]);
});

test('hands: every PeerService is deleted by hand while the owner is away -> all are put back, as old as they were', async () => {
  const { all, owner, consumer } = await meshes(20);
  await all.introduce(owner, consumer);
  await all.time.advance(20_000);
  const ages = async () => (await consumer.held()).map(({ metadata }) => metadata.annotations).sort();
  const before = await ages();
  expect(before).toHaveLength(20);
  all.network.setFault(owner.address, 'refused');
  await all.time.settle(consumer.home.admin.deleteCollection(peerServiceType, { namespace }));
  expect(await consumer.held()).toEqual([]);
  await all.time.advance(5000);
  expect(await consumer.heldTexts()).toEqual(await owner.offered());
  expect(await ages()).toEqual(before);
});

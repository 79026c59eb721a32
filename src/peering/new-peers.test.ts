// Two meshes that have just heard of each other, the one a moment later than the other.

import { expect, test } from 'vitest';
import { callPeer } from '../cli/peer/call.ts';
import type { Client, WatchOptions } from '../kube/client/client.ts';
import type { KubernetesObject, ResourceType } from '../kube/objects/object.ts';
import { type Secret, secretType } from '../kube/objects/secret.ts';
import { peerType } from './kinds/peer.ts';
import { hashOf } from './owner/introduction.ts';
import { catalogPath, introductionName, introductionPath } from './rules/peer-introduction.ts';
import { memoryHome, namespace, type TestMeshNode } from './testing/edge/memory-home.ts';
import { mesh } from './testing/edge/running-meshes.ts';

const trustOf = ({ mesh: { domain, certificate } }: TestMeshNode) => ({ domain, bundle: certificate });

test('new peer: the owner knows us a moment later than we dial -> refused, tried again, taken [000-34]', async () => {
  const [owner, consumer] = [await mesh('owner'), await mesh('consumer', { limits: { newPeerMs: 30_000 } })];
  await owner.addService('db');
  await owner.exportServices({ peers: ['consumer'] });
  const address = `https://127.0.0.1:${owner.peering.port}`;
  await consumer.addPeer('owner', { address, trust: trustOf(owner), allowedDomains: ['owner.example'] });
  const state = () => consumer.peering.consumer()?.report('owner')?.state;
  const refused = { kind: 'backingOff', reason: expect.stringContaining('no peer has the identity') };
  await expect.poll(state, { timeout: 10_000 }).toMatchObject(refused);
  await owner.addPeer('consumer', { trust: trustOf(consumer) });
  await expect.poll(() => consumer.peerServices(), { timeout: 20_000 }).toHaveLength(1);
});

test('new peer: an introduction, and a slow watch on Peers -> the call right after the answer is taken', async () => {
  const home = await memoryHome();
  const client: Client = {
    ...home.client,
    watch: async <T extends KubernetesObject>(type: ResourceType, options: WatchOptions) => {
      const events = await home.client.watch<T>(type, options);
      return type === peerType ? delayed(events) : events;
    },
  };
  const [owner, consumer] = [await mesh('owner', { home: { ...home, client } }), await mesh('consumer')];
  const terms = JSON.stringify({ peer: 'consumer', allowedDomains: [], expiresMs: Date.now() + 60_000 });
  await client.create<Secret>(secretType, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: introductionName(hashOf('sesame')), namespace },
    stringData: { terms },
  });
  const at = { address: `127.0.0.1:${owner.peering.port}`, ...trustOf(owner) };
  const body = { secret: 'sesame', address: '', ...trustOf(consumer) };
  expect((await callPeer({ ...at, path: introductionPath, body })).status).toBe(200);
  expect((await callPeer({ ...at, path: catalogPath, body: {}, credentials: consumer.mesh.issue() })).status).toBe(200);
});

async function* delayed<T>(events: AsyncIterable<T>): AsyncGenerator<T> {
  for await (const event of events) {
    await new Promise((resolve) => setTimeout(resolve, 300));
    yield event;
  }
}

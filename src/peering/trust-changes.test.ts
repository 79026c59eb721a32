// Trust that changes while meshes are connected: which streams end, which only wait, and who is notified.

import { expect, test } from 'vitest';
import { codes } from '../base/grpc/status.ts';
import { type Secret, secretType } from '../kube/objects/secret.ts';
import { peerType } from './kinds/peer.ts';
import { introduceTo, namespace, type TestMeshNode } from './testing/edge/memory-home.ts';
import { meshOf } from './testing/edge/mesh.ts';
import { eventually, mesh } from './testing/edge/running-meshes.ts';

const held = async (node: TestMeshNode) => (await node.peerServices()).map(({ spec }) => spec.name).sort();
const stateOf = (node: TestMeshNode) => node.peering.consumer()?.report('owner')?.state;
const change = (node: TestMeshNode, name: string, spec: object) =>
  node.client.patch(peerType, { namespace, name }, { kind: 'merge', body: { spec } });

/** In step, the roots of the consumer in a Secret of the owner. */
async function pair() {
  const owner = await mesh('owner');
  const consumer = await mesh('consumer');
  const metadata = { name: 'consumer-roots', namespace };
  const stringData = { 'ca.crt': consumer.mesh.certificate };
  const secret: Secret = { apiVersion: 'v1', kind: 'Secret', metadata, stringData };
  await owner.client.create(secretType, secret);
  const trust = { domain: 'consumer.example', bundleSecret: { name: 'consumer-roots' } };
  await introduceTo(owner, consumer, { asConsumer: { trust } });
  await owner.addService('a');
  await owner.exportServices({ peers: ['consumer'] });
  await eventually(() => held(consumer)).toEqual(['a']);
  return { owner, consumer, secret };
}

test('trust: the Secret with the roots of a peer is gone for a while -> its stream goes on, new ones too, and the Peer says so', async () => {
  const { owner, consumer, secret } = await pair();
  const sinceMs = owner.peering.owner.report('consumer')?.sinceMs;
  await owner.client.delete(secretType, { namespace, name: 'consumer-roots' });
  const message = async () => (await owner.peer('consumer')).status?.owner?.message;
  await eventually(message).toBe(
    'the Secret consumer-roots with its roots has no ca.crt; the roots that it held before still count',
  );
  await owner.addService('b');
  await eventually(() => held(consumer)).toEqual(['a', 'b']);
  expect(owner.peering.owner.report('consumer')?.sinceMs).toBe(sinceMs);
  await consumer.restart();
  await owner.addService('c');
  await eventually(() => held(consumer)).toEqual(['a', 'b', 'c']);
  await owner.client.create(secretType, secret);
  await eventually(message).toBe('');
});

test('trust: the owner starts without the Secret -> Unavailable, which is tried again by itself, not Unauthenticated', async () => {
  const { owner, consumer, secret } = await pair();
  await owner.client.delete(secretType, { namespace, name: 'consumer-roots' });
  await owner.restart();
  await eventually(() => stateOf(consumer)).toMatchObject({
    kind: 'backingOff',
    reason: 'the configuration of this peer cannot be used at present',
  });
  await owner.client.create(secretType, secret);
  await owner.addService('b');
  await eventually(() => held(consumer)).toEqual(['a', 'b']);
});

test('trust: a peer is suspended by the owner -> Unavailable; no longer suspended -> it comes back by itself', async () => {
  const { owner, consumer } = await pair();
  await change(owner, 'consumer', { suspended: true });
  await eventually(() => stateOf(consumer)).toMatchObject({
    kind: 'backingOff',
    reason: 'this peer is suspended here',
  });
  await eventually(async () => (await owner.peer('consumer')).status?.owner).toMatchObject({
    state: 'Idle',
    message: 'this peer is suspended here',
  });
  await owner.addService('b');
  await change(owner, 'consumer', { suspended: false });
  await eventually(() => held(consumer)).toEqual(['a', 'b']);
});

test("trust: the owner's Peer is deleted and made anew -> the consumer comes back by itself", async () => {
  const { owner, consumer } = await pair();
  const { metadata: _metadata, ...rest } = await owner.peer('consumer');
  await owner.client.delete(peerType, { namespace, name: 'consumer' });
  await owner.client.create(peerType, { ...rest, metadata: { name: 'consumer', namespace } });
  await owner.addService('b');
  await eventually(() => held(consumer)).toEqual(['a', 'b']);
});

test('trust: somebody comes in the name of a peer and is refused -> the Peer of the owner says so and why; let in -> no longer', async () => {
  const { owner, consumer } = await pair();
  const stranger = meshOf('consumer.example');
  consumer.rotate(stranger.issue());
  await consumer.restart();
  await eventually(() => stateOf(consumer)).toMatchObject({ kind: 'stopped', code: codes.unauthenticated });
  await eventually(async () => (await owner.peer('consumer')).status?.owner).toMatchObject({
    state: 'Refused',
    message: expect.stringMatching(
      /^refused as Unauthenticated, last at \S+: spiffe:\/\/consumer.example\/mesh: the certificate does not lead to/,
    ),
  });
  expect(await owner.metrics.text()).toContain('portolan_peering_unauthenticated_total{peer="consumer"} 1');
  consumer.rotate(consumer.mesh.issue());
  await eventually(async () => (await owner.peer('consumer')).status?.owner).toMatchObject({
    state: 'Synced',
    message: '',
  });
});

test('metrics: the consumer is gone -> the owner still has its lines, and its seconds grow', async () => {
  const { owner, consumer } = await pair();
  const line = (name: string) => `portolan_peering_${name}{peer="consumer",side="owner"}`;
  await eventually(() => owner.metrics.text()).toContain(`${line('connected')} 1`);
  await consumer.peering.stop();
  await eventually(() => owner.metrics.text()).toContain(`${line('connected')} 0`);
  const text = await owner.metrics.text();
  for (const name of ['lag_services', 'lag_seconds', 'last_contact_timestamp_seconds'])
    expect(text).toContain(line(name));
  expect(text).toContain(`${line('lag_services')} 1`);
  await eventually(() => owner.metrics.text()).not.toContain(`${line('lag_seconds')} 0`);
});

test('trust: the consumer replaces all roots of the owner -> its stream ends and nothing more is taken; back again -> it is', async () => {
  const { owner, consumer } = await pair();
  await change(consumer, 'owner', { trust: { bundle: meshOf('owner.example').certificate } });
  await eventually(() => stateOf(consumer)).toMatchObject({ kind: 'stopped', code: codes.unauthenticated });
  await owner.addService('b');
  await change(consumer, 'owner', { trust: { bundle: owner.mesh.certificate } });
  await eventually(() => held(consumer)).toEqual(['a', 'b']);
});

test('trust: the consumer adds a root of the owner -> the stream goes on', async () => {
  const { owner, consumer } = await pair();
  const sinceMs = owner.peering.owner.report('consumer')?.sinceMs;
  const bundle = owner.mesh.certificate + meshOf('owner.example').certificate;
  await change(consumer, 'owner', { trust: { bundle } });
  await owner.addService('b');
  await eventually(() => held(consumer)).toEqual(['a', 'b']);
  expect(owner.peering.owner.report('consumer')?.sinceMs).toBe(sinceMs);
});

test('peering: the address is taken off a Peer -> what it shared goes, and so does the status of taking from it', async () => {
  const { consumer } = await pair();
  await eventually(async () => (await consumer.peer('owner')).status?.consumer?.state).toBe('Synced');
  await change(consumer, 'owner', { address: null });
  await eventually(() => held(consumer)).toEqual([]);
  await eventually(async () => (await consumer.peer('owner')).status?.consumer).toBeUndefined();
});

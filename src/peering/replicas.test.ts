// Between two meshes: balancers, replicas, names in place of addresses, rotated trust.

import net from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { type Secret, secretType } from '../kube/objects/secret.ts';
import { peerType } from './kinds/peer.ts';
import { type PeerExport, peerExportType } from './kinds/peer-export.ts';
import { peerServiceType } from './kinds/peer-service.ts';
import { introduceTo, memoryHome, namespace, type TestMeshNode } from './testing/edge/memory-home.ts';
import { meshOf } from './testing/edge/mesh.ts';
import { eventually, mesh } from './testing/edge/running-meshes.ts';

const held = async (node: TestMeshNode) => (await node.peerServices()).map(({ spec }) => spec.name).sort();
const stateOf = (node: TestMeshNode) => node.peering.consumer()?.report('owner')?.state.kind;

/** An L4 balancer: each connection goes to the next of its targets that is there. */
async function balancer(targets: () => number[]): Promise<{ port: number; breakAll(): void }> {
  const sockets = new Set<net.Socket>();
  let turn = 0;
  const server = net.createServer((near) => {
    const ports = targets();
    const far = net.connect(ports[turn++ % ports.length] as number, '127.0.0.1');
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        near.destroy();
        far.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const breakAll = () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  onTestFinished(() => {
    breakAll();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return { port: (server.address() as net.AddressInfo).port, breakAll };
}

test('replicas: an owner with two replicas behind an L4 balancer -> either serves the catalog, nothing vanishes on the way', async () => {
  const home = await memoryHome();
  onTestFinished(() => home.stop());
  const one = await mesh('owner', { home });
  const two = await mesh('owner', { home });
  two.rotate(one.mesh.issue());
  await two.restart();
  const consumer = await mesh('consumer');
  const between = await balancer(() => [one.peering.port, two.peering.port]);
  await introduceTo(one, consumer, { asOwner: { address: `https://127.0.0.1:${between.port}` } });
  for (const name of ['a', 'b', 'c']) await one.addService(name);
  await one.exportServices({ peers: ['consumer'] });
  await eventually(() => held(consumer)).toEqual(['a', 'b', 'c']);
  const deleted: string[] = [];
  const watching = new AbortController();
  onTestFinished(() => watching.abort());
  const { metadata } = await consumer.client.list(peerServiceType, { namespace });
  const events = await consumer.client.watch(peerServiceType, {
    namespace,
    resourceVersion: metadata.resourceVersion,
    signal: watching.signal,
  });
  void (async () => {
    for await (const event of events) if (event.type === 'DELETED') deleted.push(event.object.metadata.name);
  })().catch(() => {});
  await eventually(() => (one.peering.owner.report('consumer') ?? two.peering.owner.report('consumer'))?.lag).toBe(0);
  const first = one.peering.owner.report('consumer') === undefined ? two : one;
  const other = first === one ? two : one;
  between.breakAll();
  await one.addService('d');
  await eventually(() => other.peering.owner.report('consumer')?.lag).toBe(0);
  await eventually(() => held(consumer)).toEqual(['a', 'b', 'c', 'd']);
  expect(deleted).toEqual([]);
});

test('replicas: the stream moves to another replica -> Peer and PeerExport say what that one knows, not that it is gone', async () => {
  const home = await memoryHome();
  onTestFinished(() => home.stop());
  const one = await mesh('owner', { home, isReplicated: true });
  const two = await mesh('owner', { home, isReplicated: true });
  two.rotate(one.mesh.issue());
  await two.restart();
  const consumer = await mesh('consumer');
  const ports = [one.peering.port];
  const between = await balancer(() => ports);
  await introduceTo(one, consumer, { asOwner: { address: `https://127.0.0.1:${between.port}` } });
  await one.addService('a');
  await one.exportServices({ peers: ['consumer'] });
  const statesShown = async () => {
    const { status } = await one.client.get<PeerExport>(peerExportType, { namespace: 'shop', name: 'all' });
    return `${(await one.peer('consumer')).status?.owner?.state} ${status?.peers?.[0]?.state}`;
  };
  await eventually(statesShown).toBe('Synced Acknowledged');
  ports[0] = two.peering.port;
  between.breakAll();
  await eventually(() => two.peering.owner.report('consumer')?.state).toBe('waiting');
  await one.addService('b');
  await eventually(async () => (await one.peer('consumer')).status?.owner?.services).toBe(2);
  await eventually(statesShown).toBe('Synced Acknowledged');
  // Longer than either replica waits before it writes what it found.
  await new Promise((resolve) => setTimeout(resolve, 2500));
  expect(await statesShown()).toBe('Synced Acknowledged');
}, 30_000);

test('replicas: two consumers of one home -> one of them takes, the other takes over', async () => {
  const owner = await mesh('owner');
  const home = await memoryHome();
  onTestFinished(() => home.stop());
  const one = await mesh('consumer', { home, isReplicated: true });
  await introduceTo(owner, one);
  await owner.addService('a');
  await owner.exportServices({ peers: ['consumer'] });
  await eventually(() => held(one)).toEqual(['a']);
  const two = await mesh('consumer', { home, isReplicated: true });
  two.rotate(one.mesh.issue());
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(two.peering.consumer()).toBeUndefined();
  await one.peering.stop();
  await owner.addService('b');
  await eventually(() => held(two)).toEqual(['a', 'b']);
}, 30_000);

test.each([
  ['an FQDN', 'https://localhost:PORT'],
  ['an address', '127.0.0.1:PORT'],
])('endpoint: %s with a port, as the seed prints it (%s) -> connected [000-26]', async (_name, form) => {
  const owner = await mesh('owner');
  const consumer = await mesh('consumer');
  const address = form.replace('PORT', String(owner.peering.port));
  await introduceTo(owner, consumer, { asOwner: { address } });
  await owner.addService('a');
  await owner.exportServices({ peers: ['consumer'] });
  await eventually(() => held(consumer)).toEqual(['a']);
});

test('owner: a second stream of the same peer -> replaces the first, which is told Unavailable', async () => {
  const owner = await mesh('owner');
  const one = await mesh('consumer');
  await introduceTo(owner, one);
  await owner.addService('a');
  await owner.exportServices({ peers: ['consumer'] });
  await eventually(() => stateOf(one)).toBe('waiting');
  const two = await mesh('consumer');
  two.rotate(one.mesh.issue());
  await two.addPeer('owner', {
    address: `127.0.0.1:${owner.peering.port}`,
    trust: { domain: owner.mesh.domain, bundle: owner.mesh.certificate },
    allowedDomains: ['*'],
  });
  await eventually(() => one.peering.consumer()?.report('owner')?.state).toMatchObject({
    kind: 'backingOff',
    reason: expect.stringContaining('replaced by a newer stream of the same peer'),
  });
  await eventually(() => held(two)).toEqual(['a']);
  expect(await held(one)).toEqual(['a']);
});

test('trust: roots from a Secret and both certificates are rotated -> not one stream is dropped, new ones use the new', async () => {
  const owner = await mesh('owner');
  const consumer = await mesh('consumer');
  await introduceTo(owner, consumer, {
    asConsumer: { trust: { domain: 'consumer.example', bundleSecret: { name: 'consumer-roots' } } },
  });
  const secret = (pem: string): Secret => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'consumer-roots', namespace },
    stringData: { 'ca.crt': pem },
  });
  await owner.client.create(secretType, secret(consumer.mesh.certificate));
  await consumer.client.patch(
    peerType,
    { namespace, name: 'owner' },
    { kind: 'merge', body: { metadata: { annotations: { 'portolan.dev/retry': '1' } } } },
  );
  await owner.addService('a');
  await owner.exportServices({ peers: ['consumer'] });
  await eventually(() => held(consumer)).toEqual(['a']);
  const sinceMs = owner.peering.owner.report('consumer')?.sinceMs;
  const next = meshOf('consumer.example');
  await owner.client.patch(
    secretType,
    { namespace, name: 'consumer-roots' },
    { kind: 'merge', body: { stringData: { 'ca.crt': consumer.mesh.certificate + next.certificate } } },
  );
  owner.rotate(owner.mesh.issue());
  consumer.rotate(next.issue());
  await owner.addService('b');
  await eventually(() => held(consumer)).toEqual(['a', 'b']);
  expect(owner.peering.owner.report('consumer')?.sinceMs).toBe(sinceMs);
  await consumer.restart();
  await owner.addService('c');
  await eventually(() => held(consumer)).toEqual(['a', 'b', 'c']);
}, 30_000);

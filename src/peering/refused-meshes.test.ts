// Meshes that do not trust each other, strangers, and one mesh under two names: refused with a reason, and taken once that
// is mended.

import http2 from 'node:http2';
import { expect, test } from 'vitest';
import { silentLog } from '../base/log.ts';
import { callPeer } from '../cli/peer/call.ts';
import { secretType } from '../kube/objects/secret.ts';
import { type Peer, peerType, retryAnnotation } from './kinds/peer.ts';
import { introductionPath } from './rules/peer-introduction.ts';
import { introduceTo, namespace } from './testing/edge/memory-home.ts';
import { meshOf } from './testing/edge/mesh.ts';
import { eventually, idsAt, mesh, pair } from './testing/edge/running-meshes.ts';

const strangerBundle = meshOf('x.example').certificate;

test('peering: the owner does not trust us -> Unauthenticated, no retry; retried when asked, and when our certificate changes [000-34]', async () => {
  const { owner, consumer } = await pair({ asConsumer: { trust: { domain: 'x.example', bundle: strangerBundle } } });
  await owner.addService('db');
  await owner.exportServices({ peers: ['consumer'] });
  const state = () => consumer.peering.consumer()?.report('owner')?.state;
  await eventually(() => state()?.kind).toBe('stopped');
  expect(state()).toMatchObject({ code: 16 });
  expect(await idsAt(consumer)).toEqual([]);
  const peer = await owner.peer('consumer');
  const trust = { domain: consumer.mesh.domain, bundle: consumer.mesh.certificate };
  await owner.client.update<Peer>(peerType, { ...peer, spec: { ...peer.spec, trust } });
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(state()?.kind).toBe('stopped');
  const ours = await consumer.peer('owner');
  const annotations = { [retryAnnotation]: 'now' };
  await consumer.client.update<Peer>(peerType, { ...ours, metadata: { ...ours.metadata, annotations } });
  await eventually(() => idsAt(consumer)).toEqual(['db.shop.owner.example']);
});

test('peering: the owner has another identity than the Peer expects -> Unauthenticated, nothing taken; the Peer is mended -> taken', async () => {
  const { owner, consumer } = await pair();
  const trust = { domain: owner.mesh.domain, bundle: owner.mesh.certificate };
  const expectIdentity = async (identity: string) => {
    const body = { spec: { trust: { ...trust, identities: [identity] } } };
    await consumer.client.patch(peerType, { namespace, name: 'owner' }, { kind: 'merge', body });
  };
  await expectIdentity('spiffe://owner.example/other');
  const state = () => consumer.peering.consumer()?.report('owner')?.state;
  await eventually(() => state()?.kind).toBe('stopped');
  expect(state()).toMatchObject({ code: 16, reason: expect.stringContaining('which is not expected') });
  await owner.addService('db');
  await owner.exportServices({ peers: ['consumer'] });
  await eventually(async () => (await consumer.peer('owner')).status?.consumer?.state).toBe('Refused');
  expect(await idsAt(consumer)).toEqual([]);
  await expectIdentity('spiffe://owner.example/mesh');
  await eventually(() => idsAt(consumer)).toEqual(['db.shop.owner.example']);
});

test('peering: our own certificate for one peer, from a Secret -> shown to it; replaced by a pair that is none -> the good one stays', async () => {
  const owner = await mesh('owner');
  const consumer = await mesh('consumer');
  const special = meshOf('special.example');
  const pairIn = ({ certificate, key }: { certificate: string; key: string }) => ({
    stringData: { 'tls.crt': certificate, 'tls.key': key },
  });
  const metadata = { name: 'for-owner', namespace };
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata, ...pairIn({ certificate: 'x', key: 'y' }) };
  await consumer.client.create(secretType, secret);
  const asConsumer = { trust: { domain: 'special.example', bundle: special.certificate } };
  await introduceTo(owner, consumer, { asConsumer, asOwner: { certificateSecret: { name: 'for-owner' } } });
  await eventually(async () => (await consumer.peer('owner')).status?.consumer).toMatchObject({
    state: 'Refused',
    message: 'the Secret for-owner: the certificate or the key is not PEM',
  });
  const put = (pair: { certificate: string; key: string }) =>
    consumer.client.patch(secretType, metadata, { kind: 'merge', body: pairIn(pair) });
  await put(special.issue());
  await owner.addService('a');
  await owner.exportServices({ peers: ['consumer'] });
  await eventually(() => idsAt(consumer)).toEqual(['a.shop.owner.example']);
  const sinceMs = owner.peering.owner.report('consumer')?.sinceMs;
  await put({ ...special.issue(), key: special.issue().key });
  await owner.addService('b');
  await eventually(() => idsAt(consumer)).toHaveLength(2);
  expect(owner.peering.owner.report('consumer')?.sinceMs).toBe(sinceMs);
});

test('peering: one mesh under two names -> the younger Peer is refused and says so, the older goes on; removed -> it works', async () => {
  const { owner, consumer } = await pair();
  await owner.addService('db');
  await owner.exportServices({ peers: ['consumer'] });
  await eventually(async () => (await owner.peer('consumer')).status?.owner?.state).toBe('Synced');
  const { spec } = await consumer.peer('owner');
  await consumer.addPeer('again', { address: spec.address as string, trust: spec.trust, allowedDomains: ['*'] });
  await eventually(async () => (await consumer.peer('again')).status?.consumer).toMatchObject({
    state: 'Refused',
    message: expect.stringContaining('Peer owner is the same mesh'),
  });
  const since = owner.peering.owner.report('consumer')?.sinceMs;
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(owner.peering.owner.report('consumer')?.sinceMs).toBe(since);
  await consumer.client.delete(peerType, { namespace, name: 'owner' });
  await eventually(async () => (await consumer.peerServices()).map(({ spec: held }) => held.peer)).toEqual(['again']);
});

test('peering: a stranger calls a hundred times -> refused each time, twenty lines are logged', async () => {
  const lines: string[] = [];
  const log = { ...silentLog, warn: (text: string) => void lines.push(text) };
  const owner = await mesh('owner', { log: { ...log, with: () => log } });
  const session = http2.connect(`https://127.0.0.1:${owner.peering.port}`, { rejectUnauthorized: false });
  session.on('error', () => {});
  const statuses = new Set<unknown>();
  for (let n = 0; n < 100; n += 1) {
    const stream = session.request({ ':method': 'POST', ':path': '/a/b', 'content-type': 'application/grpc' });
    stream.resume();
    await new Promise((resolve) => {
      stream.once('response', (headers) => resolve(statuses.add(headers['grpc-status'])));
    });
    stream.close();
  }
  session.destroy();
  expect([...statuses]).toEqual(['16']);
  expect(lines.filter((text) => text === 'peering call refused')).toHaveLength(20);
});

test('peering: somebody guesses introduction tokens -> five answers, then 429 without a look at the home', async () => {
  const owner = await mesh('owner');
  const call = () =>
    callPeer({
      ...{ address: `127.0.0.1:${owner.peering.port}`, domain: 'owner.example', bundle: owner.mesh.certificate },
      ...{ path: introductionPath, body: { secret: 'guess', address: '', domain: 'x.example', bundle: 'PEM' } },
    });
  const statuses: number[] = [];
  for (let n = 0; n < 7; n += 1) statuses.push((await call()).status);
  expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429]);
});

test('peering: our certificate was refused and is replaced -> tried again at once', async () => {
  const { owner, consumer } = await pair();
  consumer.rotate(owner.mesh.issue({ identities: ['spiffe://owner.example/x'] }));
  await owner.addService('db');
  await owner.exportServices({ peers: ['consumer'] });
  await consumer.restart();
  const state = () => consumer.peering.consumer()?.report('owner')?.state;
  await eventually(() => state()?.kind).toBe('stopped');
  consumer.rotate(consumer.mesh.issue());
  await eventually(() => state()?.kind).toBe('waiting');
});

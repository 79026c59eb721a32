// Two whole meshes on the loopback: their homes, their certificates, their streams.

import http2 from 'node:http2';
import { afterEach, expect, test } from 'vitest';
import { silentLog } from '../base/log.ts';
import { callPeer } from '../cli/peer/call.ts';
import { secretType } from '../kube/objects/secret.ts';
import { serviceType } from '../kube/objects/service.ts';
import { type Peer, peerType, retryAnnotation } from './kinds/peer.ts';
import { type PeerExport, peerExportType } from './kinds/peer-export.ts';
import { introductionPath } from './rules/peer-introduction.ts';
import {
  introduceTo,
  memoryHome,
  type NodeOptions,
  namespace,
  startMesh,
  type TestMeshNode,
} from './testing/edge/memory-home.ts';
import { meshOf } from './testing/edge/mesh.ts';
import { type KnownPeer, linkConfigOf } from './trust/peer-registry.ts';

const strangerBundle = meshOf('x.example').certificate;
const running: TestMeshNode[] = [];
afterEach(async () => {
  for (const node of running.splice(0)) await node.stop();
});

async function mesh(name: string, options: NodeOptions = {}): Promise<TestMeshNode> {
  const node = await startMesh(name, options);
  running.push(node);
  return node;
}

async function pair(changes: Parameters<typeof introduceTo>[2] = {}) {
  const owner = await mesh('owner');
  const consumer = await mesh('consumer');
  await introduceTo(owner, consumer, changes);
  return { owner, consumer };
}

const eventually = <T>(read: () => Promise<T> | T) => expect.poll(read, { timeout: 10_000, interval: 10 });
const idsAt = async (node: TestMeshNode) => (await node.peerServices()).map(({ spec }) => spec.id).sort();
const exportAt = (node: TestMeshNode, name = 'all') =>
  node.client.get<PeerExport>(peerExportType, { namespace: 'shop', name });

test('peering: services are exported -> the consumer has them, with everything a proxy needs [000-04]', async () => {
  const { owner, consumer } = await pair();
  await owner.addService('db', {
    labels: { tier: 'gold', internal: 'yes' },
    annotations: { 'portolan.dev/description': 'the database', 'portolan.dev/tags': 'sql, fast' },
  });
  await owner.exportServices({ peers: ['consumer'], exportedLabels: ['tier'], serviceAccount: 'db', tags: ['shared'] });
  await eventually(() => idsAt(consumer)).toEqual(['db.shop.owner.example']);
  const [service] = await consumer.peerServices();
  expect(service?.spec).toEqual({
    peer: 'owner',
    id: 'db.shop.owner.example',
    name: 'db',
    fqdn: 'db.shop.owner.example',
    description: 'the database',
    tags: ['shared', 'sql', 'fast'],
    labels: { tier: 'gold' },
    sans: ['spiffe://owner.example/ns/shop/sa/db'],
    protocols: ['http'],
    endpoints: [{ address: '192.0.2.1', port: 15443 }],
  });
});

test('peering: create, update, delete at the owner -> the same at the consumer, acknowledged and told [000-10, 000-25]', async () => {
  const { owner, consumer } = await pair();
  await owner.exportServices({ peers: ['consumer'] });
  await owner.addService('a');
  const b = await owner.addService('b');
  await eventually(() => idsAt(consumer)).toEqual(['a.shop.owner.example', 'b.shop.owner.example']);
  await owner.client.update(serviceType, {
    ...(await owner.client.get(serviceType, { namespace: 'shop', name: 'b' })),
    metadata: { ...b.metadata, annotations: { 'portolan.dev/description': 'changed' } },
  });
  await owner.client.delete(serviceType, { namespace: 'shop', name: 'a' });
  await eventually(() => idsAt(consumer)).toEqual(['b.shop.owner.example']);
  await eventually(async () => (await consumer.peerServices())[0]?.spec.description).toBe('changed');
  await eventually(async () => (await exportAt(owner)).status?.peers).toEqual([
    { peer: 'consumer', state: 'Acknowledged' },
  ]);
  await eventually(async () => (await owner.peer('consumer')).status?.owner).toMatchObject({
    state: 'Synced',
    services: 1,
    identity: 'spiffe://consumer.example/mesh',
    version: 'v1alpha1',
  });
  await eventually(async () => (await consumer.peer('owner')).status?.consumer).toMatchObject({
    state: 'Synced',
    services: 1,
    reconciliation: 'Marker',
    lastFullSync: expect.any(String),
  });
});

test.each([
  [
    'an ingress on the link',
    { ingress: [{ address: '169.254.169.254', port: 80 }] },
    '169.254.169.254 is a special address',
  ],
  ['an ingress on loopback', { ingress: [{ address: '127.0.0.1', port: 80 }] }, '127.0.0.1 is a special address'],
  [
    'a name of our cluster',
    { ingress: [{ address: 'a.b.svc.cluster.local', port: 80 }] },
    'our own zone cluster.local',
  ],
  ['a SAN of our own', { san: 'spiffe://consumer.example/ns/shop/sa/db' }, 'outside the trust domain of this peer'],
])(
  'peering: a peer claims %s -> refused, said on both sides; allowed by the Peer -> taken',
  async (_name, spec, why) => {
    const { owner, consumer } = await pair();
    await owner.addService('db');
    await owner.exportServices({ peers: ['consumer'], ...spec });
    await eventually(async () => (await consumer.peerServices())[0]?.status).toMatchObject({
      state: 'Refused',
      message: expect.stringContaining(why),
    });
    await eventually(async () => (await owner.peer('consumer')).status?.owner?.refusals?.[0]?.reason).toContain(why);
    const allowedIngress = ['169.254.0.0/16', '127.0.0.0/8', 'cluster.local'];
    const trust = { workloadDomains: ['consumer.example'] };
    const body = { spec: { allowedIngress, trust } };
    await consumer.client.patch(peerType, { namespace, name: 'owner' }, { kind: 'merge', body });
    await eventually(async () => (await consumer.peerServices())[0]?.spec.fqdn).toBe('db.shop.owner.example');
  },
);

test('peering: a peer sees exactly what is exported to it; taken back -> withdrawn', async () => {
  const { owner, consumer } = await pair();
  const other = await mesh('other');
  await introduceTo(owner, other);
  await owner.addService('a');
  await owner.addService('b');
  await owner.exportServices({ peers: ['consumer'], services: ['a'] }, 'one');
  await owner.exportServices({ peers: ['other'], services: ['b'] }, 'two');
  await eventually(() => idsAt(consumer)).toEqual(['a.shop.owner.example']);
  await eventually(() => idsAt(other)).toEqual(['b.shop.owner.example']);
  await owner.client.delete(peerExportType, { namespace: 'shop', name: 'one' });
  await eventually(() => idsAt(consumer)).toEqual([]);
  expect(await idsAt(other)).toEqual(['b.shop.owner.example']);
});

test('peering: a service the consumer refuses -> quarantined, the reason on both sides, the rest syncs; mended -> taken', async () => {
  const { owner, consumer } = await pair();
  await owner.addService('good');
  await owner.addService('bad');
  await owner.exportServices({ peers: ['consumer'], services: ['good'] }, 'good');
  await owner.exportServices({ peers: ['consumer'], services: ['bad'], fqdn: 'bad.elsewhere.example' }, 'bad');
  const reason = expect.stringContaining('fqdn: Forbidden: bad.elsewhere.example is outside the domains');
  await eventually(() => idsAt(consumer)).toEqual(['bad.elsewhere.example', 'good.shop.owner.example']);
  await eventually(async () => (await consumer.peerServices()).map(({ status }) => status?.state)).toEqual([
    'Refused',
    undefined,
  ]);
  const [refused] = await consumer.peerServices();
  expect(refused).toMatchObject({ spec: { peer: 'owner', id: 'bad.elsewhere.example' }, status: { message: reason } });
  expect(refused?.spec.fqdn).toBeUndefined();
  await eventually(async () => (await exportAt(owner, 'bad')).status?.peers?.[0]).toMatchObject({
    state: 'Refused',
    message: reason,
  });
  await eventually(async () => (await consumer.peer('owner')).status?.consumer?.refusals).toEqual([
    { id: 'bad.elsewhere.example', reason },
  ]);
  const bad = await exportAt(owner, 'bad');
  const mended = { ...bad.spec, fqdn: 'bad.shop.owner.example', serviceId: 'bad.elsewhere.example' };
  await owner.client.update(peerExportType, { ...bad, spec: mended });
  await eventually(async () => (await consumer.peerServices())[0]?.status?.state).toBe('Active');
  await eventually(async () => (await exportAt(owner, 'bad')).status?.peers?.[0]?.state).toBe('Acknowledged');
});

test('peering: a peer shares more services than its Peer allows -> the rest refused, told on both sides; allowed -> taken', async () => {
  const { owner, consumer } = await pair({ asOwner: { servicesMax: 2 } });
  for (const name of ['a', 'b', 'c']) await owner.addService(name);
  await owner.exportServices({ peers: ['consumer'] });
  const reason = 'services: Too many: 2 of this peer are kept here at most';
  await eventually(async () => (await consumer.peer('owner')).status?.consumer).toMatchObject({
    services: 2,
    refused: 1,
    refusals: [{ reason }],
  });
  await eventually(async () => (await exportAt(owner)).status?.peers?.[0]).toMatchObject({
    state: 'Refused',
    message: expect.stringContaining(reason),
  });
  expect(await idsAt(consumer)).toHaveLength(2);
  const body = { spec: { servicesMax: 3 } };
  await consumer.client.patch(peerType, { namespace, name: 'owner' }, { kind: 'merge', body });
  await eventually(() => idsAt(consumer)).toHaveLength(3);
});

test('peering: an export that cannot be offered -> its status says why, nothing is sent', async () => {
  const { owner, consumer } = await pair();
  await owner.addService('db');
  await owner.exportServices({ peers: ['consumer'], san: 'not a spiffe id' });
  await eventually(async () => (await exportAt(owner)).status?.conditions?.[0]).toMatchObject({
    status: 'False',
    message: expect.stringContaining('db: san: Invalid value'),
  });
  expect(await idsAt(consumer)).toEqual([]);
});

test('peering: the FQDN lies inside our own zones -> refused', async () => {
  const { owner, consumer } = await pair({ asOwner: { allowedDomains: ['*'] } });
  await owner.addService('db');
  await owner.exportServices({ peers: ['consumer'], fqdn: 'db.default.svc.cluster.local' });
  await eventually(async () => (await consumer.peerServices())[0]?.status?.message).toContain('inside our own zone');
});

test('peering: accepted tags and labels -> only those services are kept', async () => {
  const { owner, consumer } = await pair({ asOwner: { acceptedTags: ['public'], acceptedLabels: { tier: 'gold' } } });
  await owner.addService('a', { annotations: { 'portolan.dev/tags': 'public' }, labels: { tier: 'gold' } });
  await owner.addService('b', { annotations: { 'portolan.dev/tags': 'public' } });
  await owner.addService('c', { labels: { tier: 'gold' } });
  await owner.exportServices({ peers: ['consumer'], exportedLabels: ['tier'] });
  await eventually(() => idsAt(consumer)).toEqual(['a.shop.owner.example']);
  await eventually(async () => (await exportAt(owner)).status?.peers?.[0]?.state).toBe('Acknowledged');
});

test('peering: allowed domains shrink -> what may no longer be named goes', async () => {
  const { owner, consumer } = await pair();
  await owner.addService('db');
  await owner.exportServices({ peers: ['consumer'] });
  await eventually(() => idsAt(consumer)).toHaveLength(1);
  const peer = await consumer.peer('owner');
  await consumer.client.update<Peer>(peerType, { ...peer, spec: { ...peer.spec, allowedDomains: ['x.example'] } });
  await eventually(async () => (await consumer.peerServices())[0]?.status?.state).toBe('Refused');
  expect((await consumer.peerServices())[0]?.spec.fqdn).toBeUndefined();
});

test('peering: the Peer is deleted (deregisterConsumer) -> all its services go at once [000-24, 000-39]', async () => {
  const { owner, consumer } = await pair();
  for (const name of ['a', 'b', 'c']) await owner.addService(name);
  await owner.exportServices({ peers: ['consumer'] });
  await eventually(() => idsAt(consumer)).toHaveLength(3);
  await consumer.client.delete(peerType, { namespace, name: 'owner' });
  await eventually(() => idsAt(consumer)).toEqual([]);
  await eventually(() => owner.peering.owner.report('consumer')).toBeUndefined();
});

test('peering: the Peer was deleted while nobody looked -> its services go at the next start [000-24]', async () => {
  const { owner, consumer } = await pair();
  await owner.addService('a');
  await owner.exportServices({ peers: ['consumer'] });
  await eventually(() => idsAt(consumer)).toHaveLength(1);
  await consumer.peering.stop();
  await consumer.client.delete(peerType, { namespace, name: 'owner' });
  await consumer.restart();
  await eventually(() => idsAt(consumer)).toEqual([]);
});

test('peering: two owners claim one name -> the older keeps it, the other has its alias, both are told [000-03, 000-07]', async () => {
  const consumer = await mesh('consumer');
  const [one, two] = [await mesh('one'), await mesh('two')];
  for (const owner of [one, two]) {
    await introduceTo(owner, consumer, { asOwner: { allowedDomains: ['shared.example'] } });
    await owner.addService('db');
  }
  await one.exportServices({ peers: ['consumer'], fqdn: 'db.shared.example' });
  await eventually(() => idsAt(consumer)).toHaveLength(1);
  await two.exportServices({ peers: ['consumer'], fqdn: 'db.shared.example' });
  await eventually(async () => (await consumer.peerServices()).map(({ status }) => status?.hostnames)).toEqual([
    ['db.shared.example', 'db.one.svc.peers.local'],
    ['db.two.svc.peers.local'],
  ]);
  const [first, second] = await consumer.peerServices();
  expect(first?.status?.conditions?.[0]).toMatchObject({ type: 'NamesHeld', status: 'True', reason: 'Contested' });
  expect(second?.status?.conditions?.[0]).toMatchObject({
    status: 'False',
    message: expect.stringContaining('held by db.shared.example of peer one, which claimed it first'),
  });
  const told = async (owner: TestMeshNode) => (await exportAt(owner)).status?.peers?.[0];
  await eventually(() => told(one)).toEqual({
    peer: 'consumer',
    state: 'Acknowledged',
    message: 'db.shared.example: db.shared.example is also claimed by another peer; it stays with you',
  });
  const lost =
    'db.shared.example is held by another peer, which claimed it first; here it answers at db.two.svc.peers.local';
  await eventually(() => told(two)).toMatchObject({ state: 'Acknowledged', message: `db.shared.example: ${lost}` });
  await eventually(async () => (await two.peer('consumer')).status?.owner?.notes).toEqual([
    { id: 'db.shared.example', note: lost },
  ]);
  for (const owner of [one, two])
    expect(await owner.metrics.text()).toContain('portolan_peering_notes{peer="consumer",side="owner"} 1');
  await one.client.delete(peerExportType, { namespace: 'shop', name: 'all' });
  await eventually(async () => (await consumer.peerServices())[0]?.spec.peer).toBe('two');
  await eventually(async () => (await consumer.peerServices())[0]?.status?.hostnames).toBeUndefined();
  await eventually(() => told(two)).toEqual({ peer: 'consumer', state: 'Acknowledged' });
  await eventually(async () => (await two.peer('consumer')).status?.owner?.notes).toEqual([]);
});

test('peering: two services of one owner claim one name -> it is told which of its own has it', async () => {
  const { owner, consumer } = await pair();
  await owner.addService('a');
  await owner.addService('b');
  const fqdn = 'db.owner.example';
  await owner.exportServices({ peers: ['consumer'], services: ['a'], fqdn, serviceId: 'a.owner.example' }, 'a');
  await eventually(() => idsAt(consumer)).toHaveLength(1);
  await owner.exportServices({ peers: ['consumer'], services: ['b'], fqdn, serviceId: 'b.owner.example' }, 'b');
  await eventually(async () => (await exportAt(owner, 'b')).status?.peers?.[0]?.message).toContain(
    'held by your service a.owner.example',
  );
});

test('peering: the name is contested already when an owner connects -> told with its first answers', async () => {
  const consumer = await mesh('consumer');
  const [one, two] = [await mesh('one'), await mesh('two')];
  for (const owner of [one, two]) {
    await introduceTo(owner, consumer, { asOwner: { allowedDomains: ['shared.example'] } });
    await owner.addService('db');
    await owner.exportServices({ peers: ['consumer'], fqdn: 'db.shared.example' });
    await eventually(async () => (await consumer.peerServices()).some(({ spec }) => spec.peer === owner.name)).toBe(
      true,
    );
  }
  await eventually(() => one.peering.owner.report('consumer')?.notes.size).toBe(1);
  await consumer.restart();
  for (const owner of [one, two]) await eventually(() => owner.peering.owner.report('consumer')?.notes.size).toBe(1);
});

test('peering: aliases of the Peer -> further names of that service', async () => {
  const aliases = [{ id: 'db.shop.owner.example', hostname: 'db.internal' }];
  const { owner, consumer } = await pair({ asOwner: { aliases } });
  await owner.addService('db');
  await owner.exportServices({ peers: ['consumer'] });
  await eventually(async () => (await consumer.peerServices())[0]?.status?.hostnames).toEqual([
    'db.shop.owner.example',
    'db.owner.svc.peers.local',
    'db.internal',
  ]);
});

test('peering: versions are switched off for a peer or globally -> Unimplemented, and the other is used [000-27]', async () => {
  const { owner, consumer } = await pair({ asConsumer: { versions: ['v1alpha2'] } });
  await owner.addService('db');
  await owner.exportServices({ peers: ['consumer'] });
  await eventually(async () => (await consumer.peer('owner')).status?.consumer?.version).toBe('v1alpha2');
  await eventually(() => idsAt(consumer)).toEqual(['db.shop.owner.example']);
  await consumer.restart({ versions: ['v1alpha1'] });
  await eventually(async () => (await consumer.peer('owner')).status?.consumer).toMatchObject({
    state: 'Refused',
    message: expect.stringContaining('is not served here'),
  });
  expect(await idsAt(consumer)).toEqual(['db.shop.owner.example']);
});

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

test.each([
  ['https://150.214.141.1:8008', 'https://150.214.141.1:8008'],
  ['https://acme.example.com:8008', 'https://acme.example.com:8008'],
  ['acme.example.com:8008', 'https://acme.example.com:8008'],
  ['[2001:db8::1]:8008', 'https://[2001:db8::1]:8008'],
])('peering: the endpoint %s (seed 000, Accessibility) -> %s', async (address, url) => {
  const home = await memoryHome();
  const spec = { address, trust: { domain: 'acme.example', bundle: strangerBundle } };
  const object = { apiVersion: 'portolan.dev/v1alpha1', kind: 'Peer', metadata: { name: 'acme', namespace }, spec };
  const peer = await home.client.create<Peer>(peerType, object);
  expect(linkConfigOf({ spec: peer.spec, rootsPem: [] } as unknown as KnownPeer, noGround)?.address).toBe(url);
  await home.stop();
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

test('peering: the window of a Peer is changed -> it counts on the open stream', async () => {
  const { owner, consumer } = await pair({ asConsumer: { window: 1 } });
  await owner.exportServices({ peers: ['consumer'] });
  await eventually(() => owner.peering.owner.report('consumer')?.state).toBe('waiting');
  const since = owner.peering.owner.report('consumer')?.sinceMs;
  consumer.peering.consumer()?.store('owner')?.stop();
  for (let n = 0; n < 20; n += 1) await owner.addService(`s${n}`);
  await eventually(() => owner.peering.owner.report('consumer')?.unacknowledged).toBe(1);
  const body = { spec: { window: 8 } };
  await owner.client.patch(peerType, { namespace, name: 'consumer' }, { kind: 'merge', body });
  await eventually(() => owner.peering.owner.report('consumer')?.unacknowledged).toBe(8);
  expect(owner.peering.owner.report('consumer')?.sinceMs).toBe(since);
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

const noGround = { zones: [], ranges: [], hosts: [] };

test.each(['http://acme.example.com:8008', 'acme.example.com', 'https://acme.example.com', 'https://a b:1'])(
  'peering: the endpoint %s, in the clear, without a port or no address -> refused by the home',
  async (address) => {
    const home = await memoryHome();
    const spec = { address, trust: { domain: 'acme.example', bundle: strangerBundle } };
    const object = { apiVersion: 'portolan.dev/v1alpha1', kind: 'Peer', metadata: { name: 'acme', namespace }, spec };
    await expect(home.client.create(peerType, object)).rejects.toThrow('spec.address');
    await home.stop();
  },
);

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

test('peering: an edited ServiceID -> a delete and a create [000-45]', async () => {
  const { owner, consumer } = await pair();
  await owner.addService('db');
  await owner.exportServices({ peers: ['consumer'], serviceId: 'first.owner.example' });
  await eventually(() => idsAt(consumer)).toEqual(['first.owner.example']);
  const all = await exportAt(owner);
  await owner.client.update(peerExportType, { ...all, spec: { ...all.spec, serviceId: 'second.owner.example' } });
  await eventually(() => idsAt(consumer)).toEqual(['second.owner.example']);
});

test('peering: two exports offer one ServiceID -> the older keeps it, the other is told', async () => {
  const { owner, consumer } = await pair();
  await owner.addService('a');
  await owner.addService('b');
  await owner.exportServices({ peers: ['consumer'], services: ['a'], serviceId: 'same.owner.example' }, 'first');
  await owner.exportServices({ peers: ['consumer'], services: ['b'], serviceId: 'same.owner.example' }, 'second');
  await eventually(async () => (await exportAt(owner, 'second')).status?.peers?.[0]?.message).toContain(
    'same.owner.example: already offered by PeerExport shop/first',
  );
  await eventually(async () => (await consumer.peerServices()).map(({ spec }) => spec.name)).toEqual(['a']);
});

test('peering: metrics -> lag, un-acked, refusals by reason, time of the last full sync, for both sides', async () => {
  const { owner, consumer } = await pair();
  await owner.addService('db');
  await owner.addService('bad');
  await owner.exportServices({ peers: ['consumer'], services: ['db'] });
  await owner.exportServices({ peers: ['consumer'], services: ['bad'], fqdn: 'bad.other.example' }, 'bad');
  await eventually(() => idsAt(consumer)).toHaveLength(2);
  await eventually(() => owner.metrics.text()).toContain(
    'portolan_peering_refusals_total{peer="consumer",side="owner",reason="fqdn"} 1',
  );
  const text = `${await owner.metrics.text()}${await consumer.metrics.text()}`;
  for (const name of ['lag_services', 'lag_seconds', 'unacknowledged', 'last_full_sync_timestamp_seconds']) {
    expect(text).toContain(`portolan_peering_${name}{peer="consumer",side="owner"}`);
    expect(text).toContain(`portolan_peering_${name}{peer="owner",side="consumer"}`);
  }
});

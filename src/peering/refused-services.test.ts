// Services that a consumer does not take: claims outside its Peer's bounds, too many, or not wanted. The rest syncs, both
// sides are told, and a change of the Peer counts at once.

import { expect, test } from 'vitest';
import { type Peer, peerType } from './kinds/peer.ts';
import { peerExportType } from './kinds/peer-export.ts';
import { namespace } from './testing/edge/memory-home.ts';
import { eventually, exportAt, idsAt, pair } from './testing/edge/running-meshes.ts';

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

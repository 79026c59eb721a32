// Names that several services claim, and further names from a Peer: who holds them, and how the owners are told.

import { expect, test } from 'vitest';
import { peerExportType } from './kinds/peer-export.ts';
import { introduceTo, type TestMeshNode } from './testing/edge/memory-home.ts';
import { eventually, exportAt, idsAt, mesh, pair } from './testing/edge/running-meshes.ts';

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

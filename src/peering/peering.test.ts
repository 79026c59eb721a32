// Two whole meshes on the loopback: their homes, their certificates, their streams.

import { expect, test } from 'vitest';
import type { KubernetesObject } from '../kube/objects/object.ts';
import { serviceType } from '../kube/objects/service.ts';
import { importedServiceType } from './kinds/imported-service.ts';
import { peerType } from './kinds/peer.ts';
import { peerExportType } from './kinds/peer-export.ts';
import { introduceTo, namespace } from './testing/edge/memory-home.ts';
import { eventually, exportAt, idsAt, mesh, pair } from './testing/edge/running-meshes.ts';

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

test('peering: a service of other clusters, by its import alone -> shared; its import goes -> withdrawn', async () => {
  const { owner, consumer } = await pair();
  await owner.exportServices({ peers: ['consumer'] });
  const ref = { namespace: 'shop', name: 'db' };
  await owner.client.create(importedServiceType, {
    apiVersion: 'multicluster.x-k8s.io/v1beta1',
    kind: 'ServiceImport',
    metadata: { ...ref },
    spec: { type: 'ClusterSetIP', ports: [{ name: 'sql', port: 5432, protocol: 'TCP', appProtocol: 'mysql' }] },
  } as KubernetesObject);
  await eventually(() => idsAt(consumer)).toEqual(['db.shop.owner.example']);
  expect((await consumer.peerServices())[0]?.spec.protocols).toEqual(['mysql']);
  await owner.client.delete(importedServiceType, ref);
  await eventually(() => idsAt(consumer)).toEqual([]);
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

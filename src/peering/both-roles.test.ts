// Both sides publish and subscribe on one stream of the later draft, over real sockets: who cannot be dialed can be taken
// from all the same.

import { expect, test } from 'vitest';
import { peerType } from './kinds/peer.ts';
import { namespace, type TestMeshNode } from './testing/edge/memory-home.ts';
import { eventually, idsAt, mesh } from './testing/edge/running-meshes.ts';

/** `edge` dials `centre`; `edge` cannot be dialled. */
async function edgeAndCentre() {
  const [edge, centre] = await Promise.all(['edge', 'centre'].map((name) => mesh(name)));
  if (edge === undefined || centre === undefined) throw new Error('not started');
  const trustOf = ({ mesh }: TestMeshNode) => ({ domain: mesh.domain, bundle: mesh.certificate });
  await centre.addPeer('edge', {
    trust: trustOf(edge),
    ...{ takeOverItsStream: true, allowedDomains: ['edge.example'] },
  });
  await edge.addPeer('centre', {
    ...{ address: `127.0.0.1:${centre.peering.port}`, trust: trustOf(centre) },
    ...{ versions: ['v1alpha2'], allowedDomains: ['centre.example'] },
  });
  for (const [node, other] of [
    [edge, 'centre'],
    [centre, 'edge'],
  ] as const) {
    await node.addService('db');
    await node.exportServices({ peers: [other] });
  }
  return { edge, centre };
}

test('both roles: one stream, opened by one side -> each takes from the other, exactly; changes and deletions too [000-08]', async () => {
  const { edge, centre } = await edgeAndCentre();
  await eventually(() => idsAt(edge)).toEqual(['db.shop.centre.example']);
  await eventually(() => idsAt(centre)).toEqual(['db.shop.edge.example']);
  await edge.addService('web');
  await eventually(() => idsAt(centre)).toEqual(['db.shop.edge.example', 'web.shop.edge.example']);
  await edge.client.delete(
    { group: '', version: 'v1', plural: 'services', kind: 'Service', isNamespaced: true },
    { namespace: 'shop', name: 'db' },
  );
  await eventually(() => idsAt(centre)).toEqual(['web.shop.edge.example']);
  await eventually(async () => (await centre.peer('edge')).status?.consumer).toMatchObject({
    ...{ state: 'Synced', services: 1, version: 'v1alpha2', reconciliation: 'Marker' },
  });
  await eventually(async () => (await edge.peer('centre')).status?.owner).toMatchObject({
    ...{ state: 'Synced', services: 1, version: 'v1alpha2' },
  });
});

test('both roles: the stream breaks and comes back -> both directions again; the dialing side stops -> its services stay for now', async () => {
  const { edge, centre } = await edgeAndCentre();
  await eventually(() => idsAt(centre)).toEqual(['db.shop.edge.example']);
  await edge.restart();
  await edge.addService('after');
  await eventually(() => idsAt(centre)).toEqual(['after.shop.edge.example', 'db.shop.edge.example']);
  await edge.peering.stop();
  await eventually(async () => (await centre.peer('edge')).status?.consumer?.message).toContain('stream');
  expect(await idsAt(centre)).toHaveLength(2);
});

test('both roles: a peer publishes where nobody subscribed -> it is told so; taken over its stream from then on -> taken', async () => {
  const { edge, centre } = await edgeAndCentre();
  await eventually(() => idsAt(centre)).toEqual(['db.shop.edge.example']);
  const body = (takeOverItsStream: boolean) => ({ spec: { takeOverItsStream } });
  const patch = (is: boolean) =>
    centre.client.patch(peerType, { namespace, name: 'edge' }, { kind: 'merge', body: body(is) });
  await patch(false);
  await eventually(() => idsAt(centre)).toEqual([]);
  await edge.addService('late');
  await eventually(async () => (await edge.peer('centre')).status?.owner?.refusals?.[0]?.reason).toContain(
    'takeOverItsStream',
  );
  await patch(true);
  await eventually(() => idsAt(centre)).toEqual(['db.shop.edge.example', 'late.shop.edge.example']);
});

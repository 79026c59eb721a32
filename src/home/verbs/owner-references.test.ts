import { expect, test } from 'vitest';
import { binding, type Home, namespace, openHome, rbacPath, role } from '../security/testing/home.ts';

const writeMaps = { verbs: ['create', 'update', 'patch', 'get'], apiGroups: [''], resources: ['configmaps'] };
const maps = '/api/v1/namespaces/shop/configmaps';
const merge = { 'content-type': 'application/merge-patch+json' };

/** ann may write ConfigMaps in shop, and knows the uid of a ClusterRole. */
async function open(): Promise<Home & { ann: ReturnType<Home['user']>; owner: object }> {
  const home = await openHome();
  await home.given(
    ...[namespace('shop'), role('owner', writeMaps), role('shop/maps', writeMaps)],
    binding('shop/maps', 'Role/maps', 'User/ann'),
  );
  const { body } = await home.admin(`GET ${rbacPath}/clusterroles/owner`);
  const owner = {
    ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole' },
    ...{ name: 'owner', uid: body.metadata.uid },
  };
  return { ...home, ann: home.user('ann'), owner };
}

const map = (name: string, ...ownerReferences: object[]) => ({ metadata: { name, ownerReferences } });
const blocking = (owner: object) => ({ ...owner, blockOwnerDeletion: true });

test('owner references: one that blocks a cluster-scoped owner, without a right there -> 403 that says which', async () => {
  const { ann, owner } = await open();
  const { status, body } = await ann(`POST ${maps}`, map('a', blocking(owner)));
  expect([status, body.message]).toEqual([403, expect.stringContaining('resource "clusterroles/finalizers"')]);
  expect((await ann(`POST ${maps}`, map('a', owner))).status).toBe(201);
  const patch = { metadata: { ownerReferences: [blocking(owner)] } };
  expect((await ann(`PATCH ${maps}/a`, patch, merge)).status).toBe(403);
  expect((await ann(`PUT ${maps}/a`, map('a', blocking(owner)))).status).toBe(403);
});

test('owner references: the right to the finalizers of that owner -> taken; one that was there -> stays through a patch', async () => {
  const { ann, admin, owner, given } = await open();
  expect((await admin(`POST ${maps}`, map('a', blocking(owner)))).status).toBe(201);
  expect((await ann(`PATCH ${maps}/a`, { data: { a: 'b' } }, merge)).status).toBe(200);
  const finalizers = {
    verbs: ['update'],
    apiGroups: ['rbac.authorization.k8s.io'],
    resources: ['clusterroles/finalizers'],
  };
  await given(role('hold', finalizers), binding('hold', 'ClusterRole/hold', 'User/ann'));
  expect((await ann(`POST ${maps}`, map('b', blocking(owner)))).status).toBe(201);
});

test('owner references: the uid of a cluster-scoped owner under another kind or name -> taken, and its deletion does not wait', async () => {
  const { ann, admin, owner, simulation } = await open();
  const foreign = [
    { ...owner, apiVersion: 'v1', kind: 'ConfigMap' },
    { ...owner, name: 'other' },
    { ...owner, apiVersion: 'example.com/v1' },
  ];
  for (const [at, reference] of foreign.entries()) {
    const held = map(`m${at}`, blocking(reference));
    const { status } = await ann(`POST ${maps}`, { metadata: { ...held.metadata, finalizers: ['example.com/hold'] } });
    // Another name of the same kind is a cluster-scoped owner too.
    expect(status).toBe(at === 1 ? 403 : 201);
  }
  await admin(`DELETE ${rbacPath}/clusterroles/owner`, { propagationPolicy: 'Foreground' });
  await simulation.time.advance(1000);
  expect((await admin(`GET ${rbacPath}/clusterroles/owner`)).status).toBe(404);
});

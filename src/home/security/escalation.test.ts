import { describe, expect, test } from 'vitest';
import { binding, type Home, namespace, openHome, rbacPath, role, subjectOf } from './testing/home.ts';

const readPods = { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods'] };
const readSecrets = { verbs: ['get'], apiGroups: [''], resources: ['secrets'] };
const writeRbac = {
  verbs: ['get', 'create', 'update', 'patch', 'delete'],
  apiGroups: ['rbac.authorization.k8s.io'],
  resources: ['roles', 'rolebindings', 'clusterroles', 'clusterrolebindings'],
};

/** ann may write roles and bindings everywhere, and read pods; nothing else. */
async function openHomeOfAnn(): Promise<Home & { ann: ReturnType<Home['user']> }> {
  const home = await openHome();
  await home.given(
    namespace('shop'),
    role('writer', writeRbac, readPods),
    binding('writer', 'ClusterRole/writer', 'User/ann'),
  );
  return { ...home, ann: home.user('ann') };
}

describe('escalation: roles', () => {
  test('escalation: a role with what its writer has -> created', async () => {
    const { ann } = await openHomeOfAnn();
    expect((await ann(`POST ${rbacPath}/namespaces/shop/roles`, role('shop/r', readPods))).status).toBe(201);
    expect((await ann(`POST ${rbacPath}/clusterroles`, role('r', readPods))).status).toBe(201);
  });

  test('escalation: a role with more than its writer has -> 403 that says what is missing', async () => {
    const { ann } = await openHomeOfAnn();
    const { status, body } = await ann(`POST ${rbacPath}/namespaces/shop/roles`, role('shop/r', readPods, readSecrets));
    expect([status, body.reason]).toEqual([403, 'Forbidden']);
    expect(body.message).toBe(
      'roles.rbac.authorization.k8s.io "r" is forbidden: user "ann" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}',
    );
  });

  test('escalation: what is held in one namespace -> may be given there and nowhere else', async () => {
    const { ann, given } = await openHomeOfAnn();
    await given(namespace('bank'), role('shop/s', readSecrets), binding('shop/s', 'Role/s', 'User/ann'));
    expect((await ann(`POST ${rbacPath}/namespaces/shop/roles`, role('shop/r', readSecrets))).status).toBe(201);
    expect((await ann(`POST ${rbacPath}/namespaces/bank/roles`, role('bank/r', readSecrets))).status).toBe(403);
    expect((await ann(`POST ${rbacPath}/clusterroles`, role('r', readSecrets))).status).toBe(403);
  });

  test('escalation: an update or a patch that adds rules -> 403; one that adds a label -> done', async () => {
    const { ann, given } = await openHomeOfAnn();
    await given(role('r', readPods), role('strong', readSecrets));
    const path = `${rbacPath}/clusterroles`;
    expect((await ann(`PUT ${path}/r`, role('r', readPods, readSecrets))).status).toBe(403);
    const patch = { 'content-type': 'application/merge-patch+json' };
    expect((await ann(`PATCH ${path}/r`, { rules: [readSecrets] }, patch)).status).toBe(403);
    expect((await ann(`PATCH ${path}/strong`, { metadata: { labels: { a: 'b' } } }, patch)).status).toBe(200);
  });

  test('escalation: a stronger role is deleted -> done, for it grants nothing', async () => {
    const { ann, given } = await openHomeOfAnn();
    await given(role('strong', readSecrets), binding('b', 'ClusterRole/strong', 'User/boss'));
    expect((await ann(`DELETE ${rbacPath}/clusterrolebindings/b`)).status).toBe(200);
    expect((await ann(`DELETE ${rbacPath}/clusterroles/strong`)).status).toBe(200);
  });

  test('escalation: more grants are missing than can be read -> twenty of them, and how many more', async () => {
    const { ann } = await openHomeOfAnn();
    const manyResources = (count: number) => ({
      verbs: ['get'],
      apiGroups: [''],
      resources: Array.from({ length: count }, (_, index) => `things${index}`),
    });
    const message = async (count: number): Promise<string> =>
      (await ann(`POST ${rbacPath}/clusterroles`, role('r', manyResources(count)))).body.message;
    expect((await message(20)).split('\n').slice(-1)).toEqual([expect.stringContaining('"things19"')]);
    expect((await message(22)).split('\n').slice(-2)).toEqual([expect.stringContaining('"things19"'), 'and 2 more']);
  });

  test('escalation: the verb escalate on that role -> done', async () => {
    const { ann, given } = await openHomeOfAnn();
    const escalate = {
      verbs: ['escalate'],
      apiGroups: ['rbac.authorization.k8s.io'],
      resources: ['clusterroles'],
      resourceNames: ['r'],
    };
    await given(role('esc', escalate), binding('esc', 'ClusterRole/esc', 'User/ann'));
    expect((await ann(`POST ${rbacPath}/clusterroles`, role('r', readSecrets))).status).toBe(201);
    expect((await ann(`POST ${rbacPath}/clusterroles`, role('q', readSecrets))).status).toBe(403);
  });

  test('escalation: a role made of others by one who is not admin -> 403', async () => {
    const { ann, admin } = await openHomeOfAnn();
    const made = { ...role('made'), aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] } };
    const { status, body } = await ann(`POST ${rbacPath}/clusterroles`, made);
    expect([status, body.message]).toEqual([
      403,
      'clusterroles.rbac.authorization.k8s.io "made" is forbidden: must have cluster-admin privileges to use the aggregationRule',
    ]);
    expect((await admin(`POST ${rbacPath}/clusterroles`, made)).status).toBe(201);
  });

  test('escalation: a label that puts a role into a stronger one -> its rules are still held by the writer', async () => {
    const { ann } = await openHomeOfAnn();
    const labels = { 'rbac.authorization.k8s.io/aggregate-to-view': 'true' };
    const part = { ...role('part', readSecrets), metadata: { name: 'part', labels } };
    expect((await ann(`POST ${rbacPath}/clusterroles`, part)).status).toBe(403);
  });
});

describe('escalation: bindings', () => {
  test('escalation: a binding to a role its writer holds -> created', async () => {
    const { ann, given } = await openHomeOfAnn();
    await given(role('pods', readPods));
    expect(
      (await ann(`POST ${rbacPath}/namespaces/shop/rolebindings`, binding('shop/b', 'ClusterRole/pods', 'User/bob')))
        .status,
    ).toBe(201);
    expect(
      (await ann(`POST ${rbacPath}/clusterrolebindings`, binding('b', 'ClusterRole/pods', 'User/bob'))).status,
    ).toBe(201);
  });

  test('escalation: a binding to a stronger role, for oneself or others -> 403', async () => {
    const { ann } = await openHomeOfAnn();
    for (const subject of ['User/ann', 'User/bob', 'Group/system:unauthenticated']) {
      const { status, body } = await ann(
        `POST ${rbacPath}/clusterrolebindings`,
        binding('b', 'ClusterRole/cluster-admin', subject),
      );
      expect([status, body.message]).toEqual([
        403,
        expect.stringContaining('is attempting to grant RBAC permissions not currently held:\n{APIGroups:["*"]'),
      ]);
    }
  });

  test('escalation: more subjects for a stronger role -> 403', async () => {
    const { ann, given } = await openHomeOfAnn();
    await given(binding('b', 'ClusterRole/cluster-admin', 'User/boss'));
    const { status } = await ann(
      `PUT ${rbacPath}/clusterrolebindings/b`,
      binding('b', 'ClusterRole/cluster-admin', 'User/boss', 'User/ann'),
    );
    expect(status).toBe(403);
  });

  test('escalation: a label for a binding to a stronger role, with and without subjects -> done', async () => {
    const { ann, given } = await openHomeOfAnn();
    const empty = { ...binding('none', 'ClusterRole/cluster-admin'), subjects: undefined };
    await given(binding('b', 'ClusterRole/cluster-admin', 'User/boss'), empty);
    const patch = { 'content-type': 'application/merge-patch+json' };
    for (const name of ['b', 'none']) {
      const path = `PATCH ${rbacPath}/clusterrolebindings/${name}`;
      expect((await ann(path, { metadata: { labels: { a: 'b' } } }, patch)).status, name).toBe(200);
      expect((await ann(path, { subjects: [subjectOf('User/ann')] }, patch)).status, name).toBe(403);
    }
  });

  test('escalation: the verb bind on that role -> done', async () => {
    const { ann, given } = await openHomeOfAnn();
    const bind = {
      verbs: ['bind'],
      apiGroups: ['rbac.authorization.k8s.io'],
      resources: ['clusterroles'],
      resourceNames: ['view'],
    };
    await given(role('binder', bind), binding('binder', 'ClusterRole/binder', 'User/ann'));
    const path = `${rbacPath}/namespaces/shop/rolebindings`;
    expect((await ann(`POST ${path}`, binding('shop/v', 'ClusterRole/view', 'User/bob'))).status).toBe(201);
    expect((await ann(`POST ${path}`, binding('shop/e', 'ClusterRole/edit', 'User/bob'))).status).toBe(403);
  });

  test('escalation: a role that is not there -> 404, except for who may do anything', async () => {
    const { ann, admin } = await openHomeOfAnn();
    const missing = binding('b', 'ClusterRole/missing', 'User/bob');
    const { status, body } = await ann(`POST ${rbacPath}/clusterrolebindings`, missing);
    expect([status, body.message]).toEqual([404, 'clusterroles.rbac.authorization.k8s.io "missing" not found']);
    expect((await admin(`POST ${rbacPath}/clusterrolebindings`, missing)).status).toBe(201);
  });
});

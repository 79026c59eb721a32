import { describe, expect, test } from 'vitest';
import { account, binding, type Home, namespace, openHome, rbac, rbacPath, role } from './testing/home.ts';

const readPods = { verbs: ['get', 'list', 'watch'], apiGroups: [''], resources: ['pods'] };
const configMap = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });

async function statuses(home: Home, user: string, ...lines: string[]): Promise<number[]> {
  const ask = home.user(user);
  const replies = await Promise.all(
    lines.map((line) => ask(line, line.startsWith('POST') ? configMap('x') : undefined)),
  );
  return replies.map((reply) => reply.status);
}

describe('rbac: who is bound to what', () => {
  test('rbac: a ClusterRoleBinding -> in every namespace and in none', async () => {
    const home = await openHome();
    await home.given(namespace('shop'), role('reader', readPods), binding('b', 'ClusterRole/reader', 'User/ann'));
    const lines = ['GET /api/v1/pods', 'GET /api/v1/namespaces/shop/pods', 'GET /api/v1/namespaces/shop/secrets'];
    expect(await statuses(home, 'ann', ...lines)).toEqual([200, 200, 403]);
    expect(await statuses(home, 'bob', ...lines)).toEqual([403, 403, 403]);
  });

  test('rbac: a RoleBinding -> in its own namespace alone, to a Role or a ClusterRole', async () => {
    const home = await openHome();
    await home.given(namespace('shop'), namespace('bank'), role('reader', readPods), role('shop/own', readPods));
    await home.given(binding('shop/a', 'ClusterRole/reader', 'User/ann'), binding('shop/b', 'Role/own', 'User/bob'));
    const lines = ['GET /api/v1/pods', 'GET /api/v1/namespaces/shop/pods', 'GET /api/v1/namespaces/bank/pods'];
    expect(await statuses(home, 'ann', ...lines)).toEqual([403, 200, 403]);
    expect(await statuses(home, 'bob', ...lines)).toEqual([403, 200, 403]);
  });

  test('rbac: a RoleBinding -> reaches its own Namespace object, no other', async () => {
    const home = await openHome();
    const readNamespaces = { verbs: ['get'], apiGroups: [''], resources: ['namespaces'] };
    await home.given(namespace('shop'), role('ns', readNamespaces), binding('shop/a', 'ClusterRole/ns', 'User/ann'));
    expect(await statuses(home, 'ann', 'GET /api/v1/namespaces/shop', 'GET /api/v1/namespaces/default')).toEqual([
      200, 403,
    ]);
  });

  test('rbac: groups and service accounts -> bound like users', async () => {
    const home = await openHome();
    await home.given(namespace('shop'), account('shop/till'), account('shop/other'), role('reader', readPods));
    await home.given(binding('b', 'ClusterRole/reader', 'Group/dev', 'ServiceAccount/shop/till'));
    expect((await home.user('ann', 'dev')('GET /api/v1/pods')).status).toBe(200);
    expect((await home.user('ann', 'ops')('GET /api/v1/pods')).status).toBe(403);
    expect((await home.bearer(await home.token('shop/till'))('GET /api/v1/pods')).status).toBe(200);
    expect((await home.bearer(await home.token('shop/other'))('GET /api/v1/pods')).status).toBe(403);
    expect((await home.user('dev')('GET /api/v1/pods')).status).toBe(403);
  });

  test('rbac: all accounts of a namespace by their group -> those and no others', async () => {
    const home = await openHome();
    await home.given(namespace('shop'), namespace('bank'), account('shop/a'), account('bank/a'));
    await home.given(role('reader', readPods), binding('b', 'ClusterRole/reader', 'Group/system:serviceaccounts:shop'));
    expect((await home.bearer(await home.token('shop/a'))('GET /api/v1/pods')).status).toBe(200);
    expect((await home.bearer(await home.token('bank/a'))('GET /api/v1/pods')).status).toBe(403);
  });

  test('rbac: names -> those objects, never create or a list of everything', async () => {
    const home = await openHome();
    const named = { verbs: ['*'], apiGroups: [''], resources: ['configmaps'], resourceNames: ['one'] };
    await home.given(namespace('shop'), role('shop/named', named), binding('shop/b', 'Role/named', 'User/ann'));
    const path = '/api/v1/namespaces/shop/configmaps';
    expect(
      await statuses(
        home,
        'ann',
        `GET ${path}/one`,
        `GET ${path}/two`,
        `GET ${path}`,
        `GET ${path}?fieldSelector=metadata.name%3Done`,
        `POST ${path}`,
        `DELETE ${path}`,
      ),
    ).toEqual([404, 403, 403, 200, 403, 403]);
  });

  test('rbac: a refusal -> says who cannot do what and where, as Kubernetes does', async () => {
    const { user } = await openHome();
    const { body } = await user('ann')('GET /apis/apps/v1/namespaces/shop/deployments/web');
    expect(body).toMatchObject({
      kind: 'Status',
      status: 'Failure',
      reason: 'Forbidden',
      code: 403,
      message:
        'deployments.apps "web" is forbidden: User "ann" cannot get resource "deployments" in API group "apps" in the namespace "shop"',
      details: { name: 'web', group: 'apps', kind: 'deployments' },
    });
    expect((await user('ann')('GET /metrics')).body.message).toBe('forbidden: User "ann" cannot get path "/metrics"');
  });

  test('rbac: a kind nobody has heard of -> 403 before 404', async () => {
    const { user } = await openHome();
    expect((await user('ann')('GET /apis/no.such/v1/things')).status).toBe(403);
  });

  test('rbac: an update that creates a Lease -> needs the right to create that name; to update is not enough', async () => {
    const home = await openHome();
    const leases = { apiGroups: ['coordination.k8s.io'], resources: ['leases'] };
    await home.given(namespace('shop'), role('shop/updater', { ...leases, verbs: ['update'] }));
    await home.given(role('shop/maker', { ...leases, verbs: ['create'], resourceNames: ['own'] }));
    await home.given(binding('shop/a', 'Role/updater', 'User/ann', 'User/bob'));
    await home.given(binding('shop/b', 'Role/maker', 'User/bob'));
    const path = '/apis/coordination.k8s.io/v1/namespaces/shop/leases';
    const put = async (user: string, name: string) =>
      (await home.user(user)(`PUT ${path}/${name}`, { metadata: { name } })).status;
    expect([await put('ann', 'own'), await put('bob', 'other'), await put('bob', 'own')]).toEqual([403, 403, 201]);
    expect((await home.user('bob')(`POST ${path}`, { metadata: { name: 'own' } })).status).toBe(403);
  });
});

describe('rbac: changes', () => {
  test('rbac: a binding or a role is deleted, or a subject taken out -> no longer allowed', async () => {
    const home = await openHome();
    await home.given(namespace('shop'), role('shop/own', readPods), role('reader', readPods));
    await home.given(
      binding('shop/a', 'Role/own', 'User/ann'),
      binding('b', 'ClusterRole/reader', 'User/bob', 'User/eve'),
    );
    const may = async (user: string) => (await home.user(user)('GET /api/v1/namespaces/shop/pods')).status === 200;
    expect([await may('ann'), await may('bob'), await may('eve')]).toEqual([true, true, true]);
    await home.admin(`DELETE ${rbacPath}/namespaces/shop/roles/own`);
    await home.admin(`PUT ${rbacPath}/clusterrolebindings/b`, binding('b', 'ClusterRole/reader', 'User/eve'));
    await home.simulation.time.drain();
    expect([await may('ann'), await may('bob'), await may('eve')]).toEqual([false, false, true]);
    await home.admin(`DELETE ${rbacPath}/clusterrolebindings/b`);
    await home.given(role('shop/own', readPods));
    expect([await may('ann'), await may('bob'), await may('eve')]).toEqual([true, false, false]);
  });

  test('rbac: one of two bindings of a user in a namespace is deleted -> the other still holds', async () => {
    const home = await openHome();
    await home.given(namespace('shop'), role('reader', readPods));
    await home.given(
      binding('shop/a', 'ClusterRole/reader', 'User/ann'),
      binding('shop/b', 'ClusterRole/reader', 'User/ann'),
    );
    const may = async () => (await home.user('ann')('GET /api/v1/namespaces/shop/pods')).status === 200;
    await home.admin(`DELETE ${rbacPath}/namespaces/shop/rolebindings/a`);
    await home.simulation.time.drain();
    expect(await may()).toBe(true);
    await home.admin(`DELETE ${rbacPath}/namespaces/shop/rolebindings/b`);
    await home.simulation.time.drain();
    expect(await may()).toBe(false);
  });

  test('rbac: roles made of others by label -> grow and shrink with them', async () => {
    const home = await openHome();
    const selector = { matchLabels: { 'team/reader': 'true' } };
    const made = { ...role('made'), aggregationRule: { clusterRoleSelectors: [selector] } };
    const part = { ...role('part', readPods), metadata: { name: 'part', labels: { 'team/reader': 'true' } } };
    await home.given(made, binding('b', 'ClusterRole/made', 'User/ann'));
    const may = async () => (await home.user('ann')('GET /api/v1/pods')).status === 200;
    expect(await may()).toBe(false);
    await home.given(part);
    expect(await may()).toBe(true);
    await home.admin(`DELETE ${rbacPath}/clusterroles/part`);
    await home.simulation.time.drain();
    expect(await may()).toBe(false);
  });

  test('rbac: the server starts again -> knows all roles, bindings and accounts at once', async () => {
    const home = await openHome();
    await home.given(namespace('shop'), role('shop/own', readPods), binding('shop/a', 'Role/own', 'User/ann'));
    const { createAccess } = await import('./create-access.ts');
    const { generatePrivateKey } = await import('../../base/x509/edge/keys.ts');
    const { silentLog } = await import('../../base/log.ts');
    const world = home.simulation.world('again');
    const access = await createAccess({
      world,
      store: home.store,
      log: silentLog,
      serviceAccountKey: generatePrivateKey(),
    });
    const attributes = {
      verb: 'list',
      group: '',
      version: 'v1',
      resource: 'pods',
      subresource: '',
      namespace: 'shop',
      name: '',
    };
    expect(access.authorize({ name: 'ann', groups: [] }, attributes)).toEqual({
      isAllowed: true,
      reason: 'RBAC: allowed by RoleBinding "a/shop" of Role "own" to User "ann"',
    });
    access.close();
  });
});

describe('rbac: what roles and bindings must look like', () => {
  const causes = async (home: Home, path: string, object: object) => {
    const { status, body } = await home.admin(`POST ${rbacPath}/${path}`, object);
    return [
      status,
      ...(body.details?.causes ?? []).map(
        (cause: { field: string; message: string }) => `${cause.field}: ${cause.message}`,
      ),
    ];
  };

  test('rbac: rules without verbs, groups, resources, or with paths in a namespace -> 422, every one named', async () => {
    const home = await openHome();
    await home.given(namespace('shop'));
    expect(await causes(home, 'clusterroles', role('r', { verbs: [] }))).toEqual([
      422,
      'rules[0].verbs: Required value: at least one verb',
      'rules[0].apiGroups: Required value: at least one API group',
      'rules[0].resources: Required value: at least one resource',
    ]);
    expect(
      await causes(home, 'namespaces/shop/roles', role('shop/r', { verbs: ['get'], nonResourceURLs: ['/x'] })),
    ).toEqual([422, 'rules[0].nonResourceURLs: Invalid value: ["/x"]: a rule of a namespace cannot have URLs']);
    expect(await causes(home, 'clusterroles', role('r', { ...readPods, nonResourceURLs: ['/x'] }))).toEqual([
      422,
      'rules[0].nonResourceURLs: Invalid value: ["/x"]: a rule is about resources or about URLs, not both',
    ]);
  });

  test('rbac: bindings to the wrong kind or with wrong subjects -> 422, every one named', async () => {
    const home = await openHome();
    await home.given(namespace('shop'), role('reader', readPods));
    const found = await causes(home, 'clusterrolebindings', {
      ...binding('b', 'Role/reader'),
      subjects: [
        { kind: 'Robot', name: 'r' },
        { kind: 'ServiceAccount', name: 'till' },
        { kind: 'User', name: 'ann', apiGroup: 'other' },
        { kind: 'Group', name: '' },
        { kind: 'ServiceAccount', namespace: 'shop', name: 'till', apiGroup: 'other' },
      ],
    });
    expect(found).toEqual([
      422,
      'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
      'subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
      'subjects[1].namespace: Required value',
      'subjects[2].apiGroup: Unsupported value: "other": supported values: "rbac.authorization.k8s.io"',
      'subjects[3].name: Required value',
      'subjects[4].apiGroup: Unsupported value: "other": supported values: ""',
    ]);
    const other = { apiGroup: 'other', kind: 'ClusterRole', name: 'reader' };
    expect(
      await causes(home, 'clusterrolebindings', { ...binding('b', 'ClusterRole/reader'), roleRef: other }),
    ).toEqual([422, 'roleRef.apiGroup: Unsupported value: "other": supported values: "rbac.authorization.k8s.io"']);
  });

  test('rbac: groups left out -> filled in', async () => {
    const home = await openHome();
    await home.given(role('reader', readPods));
    const { body } = await home.admin(`POST ${rbacPath}/clusterrolebindings`, {
      apiVersion: rbac,
      kind: 'ClusterRoleBinding',
      metadata: { name: 'with:colons' },
      roleRef: { kind: 'ClusterRole', name: 'reader' },
      subjects: [
        { kind: 'User', name: 'ann' },
        { kind: 'ServiceAccount', namespace: 'shop', name: 'till' },
      ],
    });
    expect(body.roleRef.apiGroup).toBe('rbac.authorization.k8s.io');
    expect(body.subjects.map((subject: { apiGroup?: string }) => subject.apiGroup ?? '')).toEqual([
      'rbac.authorization.k8s.io',
      '',
    ]);
  });

  test('rbac: another roleRef in a binding that is there -> 422', async () => {
    const home = await openHome();
    await home.given(role('reader', readPods), role('other', readPods), binding('b', 'ClusterRole/reader', 'User/ann'));
    const { status, body } = await home.admin(
      `PUT ${rbacPath}/clusterrolebindings/b`,
      binding('b', 'ClusterRole/other', 'User/ann'),
    );
    expect([status, body.details.causes[0].field, body.message]).toEqual([
      422,
      'roleRef',
      expect.stringContaining('cannot change roleRef'),
    ]);
  });
});

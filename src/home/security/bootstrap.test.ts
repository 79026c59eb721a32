import { describe, expect, test } from 'vitest';
import type { Attributes } from '../model/access.ts';
import { ensureBootstrap } from './bootstrap.ts';
import { binding, type Home, namespace, openHome, rbacPath } from './testing/home.ts';

const may = (home: Home, user: string, verb: string, what: string) => {
  const [group = '', resource = ''] = what.split('/');
  const attributes: Attributes = {
    verb,
    group: group === 'core' ? '' : group,
    version: 'v1',
    resource,
    subresource: '',
    namespace: 'shop',
    name: '',
  };
  return home.access.authorize({ name: user, groups: ['system:authenticated'] }, attributes).isAllowed;
};

async function openStaffedHome(): Promise<Home> {
  const home = await openHome();
  await home.given(namespace('shop'));
  for (const role of ['admin', 'edit', 'view']) {
    await home.given(binding(`shop/${role}`, `ClusterRole/${role}`, `User/${role}`));
  }
  return home;
}

describe('bootstrap: roles every home has', () => {
  const table: [string, string, boolean, boolean, boolean][] = [
    // verb, resource: admin, edit, view
    ['get', 'core/services', true, true, true],
    ['create', 'core/services', true, true, false],
    ['get', 'core/secrets', true, true, false],
    ['create', 'rbac.authorization.k8s.io/roles', true, false, false],
    ['create', 'multicluster.x-k8s.io/serviceexports', true, true, false],
    ['get', 'multicluster.x-k8s.io/serviceexports', true, true, true],
    ['get', 'multicluster.x-k8s.io/serviceimports', true, true, true],
    ['create', 'multicluster.x-k8s.io/serviceimports', false, false, false],
    ['update', 'multicluster.x-k8s.io/serviceimports', false, false, false],
    ['patch', 'multicluster.x-k8s.io/serviceimports', false, false, false],
    ['delete', 'multicluster.x-k8s.io/serviceimports', false, false, false],
    ['create', 'discovery.k8s.io/endpointslices', false, false, false],
    ['escalate', 'rbac.authorization.k8s.io/roles', false, false, false],
  ];
  test.each(table)('bootstrap: %s %s -> admin %s, edit %s, view %s [003-36]', async (verb, what, ...expected) => {
    const home = await openStaffedHome();
    expect(['admin', 'edit', 'view'].map((user) => may(home, user, verb, what))).toEqual(expected);
  });

  test.each(['admin', 'edit', 'view'])('bootstrap: %s -> no right to write AddressClaims', async (role) => {
    const home = await openHome();
    await home.given(namespace('shop'));
    await home.given(binding(`shop/${role}`, `ClusterRole/${role}`, 'User/ann'));
    await home.given(binding(role, `ClusterRole/${role}`, 'User/ann'));
    const verbs = ['create', 'update', 'patch', 'delete', 'deletecollection'];
    expect(verbs.filter((verb) => may(home, 'ann', verb, 'portolan.dev/addressclaims'))).toEqual([]);
  });

  test('bootstrap: everybody with credentials -> discovery and questions about themselves', async () => {
    const { user } = await openHome();
    const ann = user('ann');
    for (const path of ['/api', '/apis', '/api/v1', '/apis/apps/v1', '/version']) {
      expect([path, (await ann(`GET ${path}`)).status]).toEqual([path, 200]);
    }
    const review = { spec: { resourceAttributes: { verb: 'get', resource: 'pods' } } };
    expect((await ann('POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews', review)).status).toBe(201);
    expect((await ann('POST /apis/authorization.k8s.io/v1/subjectaccessreviews', review)).status).toBe(403);
    expect((await ann('GET /metrics')).status).toBe(403);
    expect((await user('prometheus', 'system:monitoring')('GET /metrics')).status).not.toBe(403);
  });

  test('bootstrap: nothing is bound to those without credentials', async () => {
    const { admin } = await openHome();
    const { body } = await admin(`GET ${rbacPath}/clusterrolebindings`);
    expect(JSON.stringify(body)).not.toContain('system:unauthenticated');
    expect(JSON.stringify(body)).not.toContain('system:anonymous');
  });
});

describe('bootstrap: at every start', () => {
  test('bootstrap: nothing is missing -> nothing is written, no revision spent', async () => {
    const { store, handle } = await openHome();
    const revision = store.revision();
    expect(await ensureBootstrap({ handle })).toBe(0);
    expect(store.revision()).toBe(revision);
  });

  test('bootstrap: something was taken away -> comes back; what was added stays', async () => {
    const { admin, handle } = await openHome();
    await admin(`DELETE ${rbacPath}/clusterroles/view`);
    const extra = { verbs: ['get'], nonResourceURLs: ['/extra'] };
    const patch = { 'content-type': 'application/merge-patch+json' };
    await admin(`PATCH ${rbacPath}/clusterroles/system:discovery`, { rules: [extra] }, patch);
    await admin(`PATCH ${rbacPath}/clusterrolebindings/system:discovery`, { subjects: [] }, patch);
    expect(await ensureBootstrap({ handle })).toBe(3);
    const { rules } = (await admin(`GET ${rbacPath}/clusterroles/system:discovery`)).body;
    expect(rules[0]).toEqual(extra);
    expect(rules.length).toBe(2);
    const { subjects } = (await admin(`GET ${rbacPath}/clusterrolebindings/system:discovery`)).body;
    expect(subjects[0].name).toBe('system:authenticated');
    expect((await admin(`GET ${rbacPath}/clusterroles/view`)).status).toBe(200);
    expect(await ensureBootstrap({ handle })).toBe(0);
  });

  test('bootstrap: somebody wants an object left alone -> it is', async () => {
    const { admin, handle } = await openHome();
    const annotations = { 'rbac.authorization.kubernetes.io/autoupdate': 'false' };
    const patch = { 'content-type': 'application/merge-patch+json' };
    await admin(`PATCH ${rbacPath}/clusterroles/system:discovery`, { metadata: { annotations }, rules: [] }, patch);
    expect(await ensureBootstrap({ handle })).toBe(0);
  });
});

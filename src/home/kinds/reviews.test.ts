import { describe, expect, test } from 'vitest';
import { binding, namespace, openHome, role } from '../security/testing/home.ts';

const readPods = { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods'], resourceNames: ['one'] };
const readPaths = { verbs: ['get'], nonResourceURLs: ['/logs/*'] };
const authorization = '/apis/authorization.k8s.io/v1';

async function openHomeOfAnn() {
  const home = await openHome();
  await home.given(namespace('shop'), role('shop/reader', readPods), binding('shop/b', 'Role/reader', 'User/ann'));
  await home.given(role('paths', readPaths), binding('paths', 'ClusterRole/paths', 'Group/dev'));
  return { ...home, ann: home.user('ann', 'dev') };
}

describe('reviews: may I', () => {
  test('self subject access review: allowed -> says by what; not allowed -> says no', async () => {
    const { ann } = await openHomeOfAnn();
    const ask = async (spec: object) => (await ann(`POST ${authorization}/selfsubjectaccessreviews`, { spec })).body;
    const allowed = await ask({
      resourceAttributes: { namespace: 'shop', verb: 'get', resource: 'pods', name: 'one' },
    });
    expect(allowed).toMatchObject({
      kind: 'SelfSubjectAccessReview',
      apiVersion: 'authorization.k8s.io/v1',
      status: { allowed: true, reason: 'RBAC: allowed by RoleBinding "b/shop" of Role "reader" to User "ann"' },
    });
    expect((await ask({ resourceAttributes: { namespace: 'shop', verb: 'list', resource: 'pods' } })).status).toEqual({
      allowed: false,
    });
    expect((await ask({ nonResourceAttributes: { verb: 'get', path: '/logs/x' } })).status.allowed).toBe(true);
    expect((await ask({ nonResourceAttributes: { verb: 'get', path: '/other' } })).status.allowed).toBe(false);
  });

  test('self subject access review: neither or both questions, wrong types -> refused', async () => {
    const { ann } = await openHomeOfAnn();
    const ask = async (spec: unknown) => (await ann(`POST ${authorization}/selfsubjectaccessreviews`, { spec })).status;
    const [resource, path] = [{ resourceAttributes: { verb: 'get' } }, { nonResourceAttributes: { verb: 'get' } }];
    expect([await ask({}), await ask({ ...resource, ...path })]).toEqual([400, 400]);
    expect(await ask({ resourceAttributes: { verb: 7 } })).toBe(422);
    expect(await ask('text')).toBe(422);
  });

  test('self subject rules review: a namespace -> everything that may be done there', async () => {
    const { ann } = await openHomeOfAnn();
    const { body } = await ann(`POST ${authorization}/selfsubjectrulesreviews`, { spec: { namespace: 'shop' } });
    expect(body.status.incomplete).toBe(false);
    expect(body.status.resourceRules).toContainEqual(readPods);
    expect(body.status.nonResourceRules).toContainEqual(readPaths);
    const without = await ann(`POST ${authorization}/selfsubjectrulesreviews`, { spec: {} });
    expect(without.status).toBe(400);
  });

  test('self subject rules review: the admin -> everything', async () => {
    const { admin } = await openHomeOfAnn();
    const { body } = await admin(`POST ${authorization}/selfsubjectrulesreviews`, { spec: { namespace: 'shop' } });
    expect(body.status.resourceRules).toEqual([{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }]);
  });
});

describe('reviews: may somebody', () => {
  const pods = { namespace: 'shop', verb: 'get', resource: 'pods', name: 'one' };

  test('subject access review: by those who may ask -> answered for the user and groups named', async () => {
    const { admin, ann } = await openHomeOfAnn();
    const ask = async (spec: object) => (await admin(`POST ${authorization}/subjectaccessreviews`, { spec })).body;
    expect((await ask({ user: 'ann', resourceAttributes: pods })).status.allowed).toBe(true);
    expect((await ask({ user: 'bob', resourceAttributes: pods })).status.allowed).toBe(false);
    const path = { verb: 'get', path: '/logs/x' };
    expect((await ask({ user: 'bob', groups: ['dev'], nonResourceAttributes: path })).status.allowed).toBe(true);
    expect((await ask({ resourceAttributes: pods })).code).toBe(400);
    expect((await ann(`POST ${authorization}/subjectaccessreviews`, { spec: {} })).status).toBe(403);
  });

  test('local subject access review: its own namespace -> answered; another -> 400', async () => {
    const { admin } = await openHomeOfAnn();
    const path = `POST ${authorization}/namespaces/shop/localsubjectaccessreviews`;
    const { body } = await admin(path, { spec: { user: 'ann', resourceAttributes: pods } });
    expect(body.status.allowed).toBe(true);
    const other = { user: 'ann', resourceAttributes: { ...pods, namespace: 'bank' } };
    expect((await admin(path, { spec: other })).status).toBe(400);
  });
});

describe('reviews: as resources', () => {
  test('reviews: discovery -> create and nothing else', async () => {
    const { ann } = await openHomeOfAnn();
    const { body } = await ann(`GET ${authorization}`);
    const names = body.resources.map((resource: { name: string }) => resource.name).sort();
    expect(names).toEqual([
      'localsubjectaccessreviews',
      'selfsubjectaccessreviews',
      'selfsubjectrulesreviews',
      'subjectaccessreviews',
    ]);
    expect(body.resources.every((resource: { verbs: string[] }) => resource.verbs.join() === 'create')).toBe(true);
  });

  test('reviews: get and list -> 405', async () => {
    const { admin } = await openHomeOfAnn();
    expect((await admin(`GET ${authorization}/subjectaccessreviews`)).status).toBe(405);
  });

  test('reviews: as a Table -> 406, nothing is evaluated; with JSON beside it -> answered', async () => {
    const { admin } = await openHomeOfAnn();
    const table = 'application/json;as=Table;v=v1;g=meta.k8s.io';
    const path = 'POST /apis/authentication.k8s.io/v1/selfsubjectreviews';
    const refused = await admin(path, {}, { accept: table });
    expect([refused.status, refused.body.reason]).toEqual([406, 'NotAcceptable']);
    expect((await admin(path, {}, { accept: `${table},application/json` })).status).toBe(201);
  });

  test('reviews: asked -> nothing is stored', async () => {
    const { admin, store } = await openHomeOfAnn();
    const revision = store.revision();
    await admin('POST /apis/authentication.k8s.io/v1/selfsubjectreviews', {});
    expect(store.revision()).toBe(revision);
  });
});

import { describe, expect, test } from 'vitest';
import { account, binding, namespace, openHome, role } from './testing/home.ts';

const podReader = role('pod-reader', { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods'] });
const minuteMs = 60_000;
const whoAmI = 'POST /apis/authentication.k8s.io/v1/selfsubjectreviews';
const issuer = 'https://kubernetes.default.svc';

describe('authentication: client certificates', () => {
  test('authentication: a certificate -> user from CN, groups from O, authenticated', async () => {
    const { user } = await openHome();
    const { body } = await user('ann', 'dev', 'ops')(whoAmI, {});
    expect(body.status.userInfo).toEqual({ username: 'ann', groups: ['dev', 'ops', 'system:authenticated'] });
  });

  test('authentication: a certificate that the edge refused -> 401 everywhere, even for health checks', async () => {
    const { handle } = await openHome();
    for (const path of ['/api/v1/pods', '/livez']) {
      const response = await handle({ method: 'GET', path, headers: {}, clientCertificateError: 'CERT_HAS_EXPIRED' });
      expect(response.status).toBe(401);
      expect(JSON.parse(Buffer.from(response.body as Uint8Array).toString())).toMatchObject({
        kind: 'Status',
        reason: 'Unauthorized',
        message: 'Unauthorized',
        code: 401,
      });
    }
  });

  test('authentication: a good token beside a bad certificate -> the token counts', async () => {
    const { handle, given, token } = await openHome();
    await given(namespace('shop'), account('shop/till'));
    const authorization = `Bearer ${await token('shop/till')}`;
    const path = '/version';
    const response = await handle({ method: 'GET', path, headers: { authorization }, clientCertificateError: 'x' });
    expect(response.status).toBe(200);
  });
});

describe('authentication: nobody', () => {
  test('authentication: no credentials -> health checks and nothing else', async () => {
    const { nobody } = await openHome();
    for (const path of ['/livez', '/readyz', '/healthz', '/livez?verbose']) {
      expect([path, (await nobody(`GET ${path}`)).status]).toEqual([path, 200]);
    }
    const closed = ['/', '/api', '/apis', '/version', '/metrics', '/openapi/v3', '/livezz', '/api/v1/pods', '/nowhere'];
    for (const path of closed) {
      const { status, body } = await nobody(`GET ${path}`);
      expect([path, status, body.reason]).toEqual([path, 403, 'Forbidden']);
      expect(body.message).toContain('User "system:anonymous" cannot');
    }
    expect((await nobody('POST /livez', {})).status).toBe(403);
    expect((await nobody(whoAmI, {})).status).toBe(403);
  });
});

describe('authentication: tokens of service accounts', () => {
  test('authentication: a token -> the account, its groups and its uid', async () => {
    const { given, token, bearer, admin } = await openHome();
    await given(namespace('shop'), account('shop/till'));
    const { body } = await bearer(await token('shop/till'))(whoAmI, {});
    const { metadata } = (await admin('GET /api/v1/namespaces/shop/serviceaccounts/till')).body;
    expect(body.status.userInfo).toMatchObject({
      username: 'system:serviceaccount:shop:till',
      uid: metadata.uid,
      groups: ['system:serviceaccounts', 'system:serviceaccounts:shop', 'system:authenticated'],
    });
  });

  test('authentication: wrong tokens and other schemes -> 401', async () => {
    const { nobody, bearer, given, token } = await openHome();
    await given(namespace('shop'), account('shop/till'));
    const good = await token('shop/till');
    const flipped = `${good.slice(0, -10)}${good.at(-10) === 'A' ? 'B' : 'A'}${good.slice(-9)}`;
    for (const bad of ['x', 'a.b.c', `${good}x.y`, flipped, '']) {
      expect((await bearer(bad)('GET /livez')).status).toBe(401);
    }
    for (const authorization of ['Basic YTpi', 'Bearer', `Token ${good}`]) {
      expect((await nobody('GET /livez', undefined, { authorization })).status).toBe(401);
    }
    expect((await nobody('GET /version', undefined, { authorization: `bearer  ${good} ` })).status).toBe(200);
  });

  test('authentication: a token past its time -> 401, also when it was good a moment ago', async () => {
    const { simulation, given, token, bearer } = await openHome();
    await given(namespace('shop'), account('shop/till'));
    const ask = bearer(await token('shop/till', { expirationSeconds: 600 }));
    expect((await ask('GET /version')).status).toBe(200);
    await simulation.time.advance(10 * minuteMs - 1000);
    expect((await ask('GET /version')).status).toBe(200);
    await simulation.time.advance(1000);
    expect((await ask('GET /version')).status).toBe(401);
  });

  test('authentication: the account is deleted -> its tokens are worth nothing, made anew or not', async () => {
    const { admin, given, token, bearer, simulation } = await openHome();
    await given(namespace('shop'), account('shop/till'));
    const ask = bearer(await token('shop/till'));
    expect((await ask('GET /version')).status).toBe(200);
    await admin('DELETE /api/v1/namespaces/shop/serviceaccounts/till');
    await simulation.time.drain();
    expect((await ask('GET /version')).status).toBe(401);
    await given(account('shop/till'));
    expect((await ask('GET /version')).status).toBe(401);
    expect((await bearer(await token('shop/till'))('GET /version')).status).toBe(200);
  });

  test('authentication: a token for somebody else -> 401 here, good there', async () => {
    const { given, token, bearer, admin } = await openHome();
    await given(namespace('shop'), account('shop/till'));
    const vaultToken = await token('shop/till', { audiences: ['vault'] });
    expect((await bearer(vaultToken)('GET /version')).status).toBe(401);
    const review = async (spec: object) =>
      (await admin('POST /apis/authentication.k8s.io/v1/tokenreviews', { spec })).body.status;
    expect(await review({ token: vaultToken, audiences: ['vault', 'other'] })).toMatchObject({
      authenticated: true,
      audiences: ['vault'],
      user: { username: 'system:serviceaccount:shop:till' },
    });
    expect(await review({ token: vaultToken })).toMatchObject({ authenticated: false });
    expect(await review({ token: 'nonsense' })).toEqual({ authenticated: false, error: 'token is no JWT' });
  });

  test('authentication: a token of another home with the same account -> 401', async () => {
    const [here, there] = [await openHome(), await openHome()];
    for (const home of [here, there]) await home.given(namespace('shop'), account('shop/till'));
    expect((await here.bearer(await there.token('shop/till'))('GET /version')).status).toBe(401);
  });

  test('authentication: tokens of another making -> asked for in order, after our own', async () => {
    const once = new Set(['join-abc']);
    const { bearer } = await openHome({
      extraTokenAuthenticators: [
        async () => undefined,
        async (text) => (once.delete(text) ? { name: 'joiner', groups: ['system:authenticated'] } : undefined),
      ],
    });
    expect((await bearer('join-abc')(whoAmI, {})).body.status.userInfo.username).toBe('joiner');
    expect((await bearer('join-abc')(whoAmI, {})).status).toBe(401);
  });

  test('authentication: tokens of another making cannot be checked -> an error of the server, and no 401', async () => {
    const failing = async () => {
      throw new Error('the directory does not answer');
    };
    const { bearer } = await openHome({ extraTokenAuthenticators: [failing] });
    expect((await bearer('join-abc')('GET /version')).status).toBe(500);
  });

  test('authentication: somebody who listened for changes of access stops -> is no longer called', async () => {
    const { access, given, admin, simulation } = await openHome();
    const calls: string[] = [];
    const stopChanges = access.onChange!(() => calls.push('changed'));
    const stopGone = access.onGone!((key) => calls.push(key));
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'shop', name: 's' } };
    await given(namespace('shop'), secret, podReader);
    await admin('DELETE /api/v1/namespaces/shop/secrets/s');
    await simulation.time.drain();
    expect(calls).toEqual(expect.arrayContaining(['changed', expect.stringContaining('secrets/shop/s')]));
    stopChanges();
    stopGone();
    calls.length = 0;
    await given(secret, account('shop/till'));
    await admin('DELETE /api/v1/namespaces/shop/secrets/s');
    await simulation.time.drain();
    expect(calls).toEqual([]);
  });
});

describe('authentication: acting as somebody else', () => {
  const impersonate = (name: string, more: Record<string, string> = {}) => ({ 'impersonate-user': name, ...more });

  test('authentication: without the permission -> 403 that names it', async () => {
    const { user } = await openHome();
    const { status, body } = await user('ann')(whoAmI, {}, impersonate('bob'));
    expect(status).toBe(403);
    expect(body.message).toBe(
      'users "bob" is forbidden: User "ann" cannot impersonate resource "users" in API group "" at the cluster scope',
    );
  });

  test('authentication: allowed one user -> that one and no group', async () => {
    const { user, given } = await openHome();
    const rule = { verbs: ['impersonate'], apiGroups: [''], resources: ['users'], resourceNames: ['bob'] };
    await given(role('be-bob', rule), binding('be-bob', 'ClusterRole/be-bob', 'User/ann'));
    const ann = user('ann');
    expect((await ann(whoAmI, {}, impersonate('bob'))).body.status.userInfo).toMatchObject({
      username: 'bob',
      groups: ['system:authenticated'],
    });
    expect((await ann(whoAmI, {}, impersonate('eve'))).status).toBe(403);
    const asMaster = impersonate('bob', { 'impersonate-group': 'system:masters' });
    const { status, body } = await ann(whoAmI, {}, asMaster);
    expect([status, body.message]).toEqual([403, expect.stringContaining('groups "system:masters" is forbidden')]);
  });

  test('authentication: allowed one service account -> that one, with its groups unless others are named', async () => {
    const { user, given } = await openHome();
    const be = (resource: string, name: string) => ({
      verbs: ['impersonate'],
      apiGroups: [''],
      resources: [resource],
      resourceNames: [name],
    });
    await given(namespace('shop'), namespace('bank'), role('shop/till', be('serviceaccounts', 'till')));
    await given(binding('shop/till', 'Role/till', 'User/ann'));
    await given(role('dev', be('groups', 'dev')), binding('dev', 'ClusterRole/dev', 'User/ann'));
    const ann = user('ann');
    const till = 'system:serviceaccount:shop:till';
    const groupsOf = async (more = {}) => (await ann(whoAmI, {}, impersonate(till, more))).body.status.userInfo.groups;
    expect(await groupsOf()).toEqual(['system:serviceaccounts', 'system:serviceaccounts:shop', 'system:authenticated']);
    expect(await groupsOf({ 'impersonate-group': 'dev' })).toEqual(['dev', 'system:authenticated']);
    for (const other of ['system:serviceaccount:bank:till', 'system:serviceaccount:shop:other', 'till'])
      expect((await ann(whoAmI, {}, impersonate(other))).status, other).toBe(403);
  });

  test('authentication: groups without a user -> 400', async () => {
    const { admin } = await openHome();
    const { status, body } = await admin(whoAmI, {}, { 'impersonate-group': 'dev' });
    expect([status, body.message]).toEqual([400, expect.stringContaining('send Impersonate-User too')]);
  });

  test('authentication: the admin as a service account, a group, an extra -> all of it, and only that', async () => {
    const { admin, given } = await openHome();
    await given(podReader, binding('sa', 'ClusterRole/pod-reader', 'ServiceAccount/shop/till'));
    const till = impersonate('system:serviceaccount:shop:till');
    expect((await admin('GET /api/v1/pods', undefined, till)).status).toBe(200);
    expect((await admin('GET /api/v1/secrets', undefined, till)).status).toBe(403);
    const dressed = impersonate('bob', {
      'impersonate-group': 'dev, ops',
      'impersonate-uid': '7',
      'impersonate-extra-scope': 'x',
    });
    expect((await admin(whoAmI, {}, dressed)).body.status.userInfo).toEqual({
      username: 'bob',
      uid: '7',
      groups: ['dev', 'ops', 'system:authenticated'],
      extra: { scope: ['x'] },
    });
  });

  test('authentication: what happened -> both the user and who acted as them are on the trail', async () => {
    const { handle } = await openHome();
    const trail: { user?: { name: string }; impersonator?: { name: string } } = {};
    const clientCertificate = { commonName: 'admin', organizations: ['system:masters'] };
    await handle({
      method: 'GET',
      path: '/version',
      headers: impersonate('bob'),
      clientCertificate,
      trail: trail as never,
    });
    expect([trail.user?.name, trail.impersonator?.name]).toEqual(['bob', 'admin']);
    const plain: typeof trail = {};
    await handle({ method: 'GET', path: '/version', headers: {}, clientCertificate, trail: plain as never });
    expect([plain.user?.name, plain.impersonator?.name]).toEqual(['admin', undefined]);
  });
});

describe('authentication: tokens on request', () => {
  const path = 'POST /api/v1/namespaces/shop/serviceaccounts/till/token';

  test('token request: nothing asked for -> an hour, for this server', async () => {
    const { admin, given, simulation } = await openHome();
    await given(namespace('shop'), account('shop/till'));
    const { status, body } = await admin(path, { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest' });
    expect(status).toBe(201);
    expect(body).toMatchObject({ kind: 'TokenRequest', spec: { audiences: [issuer], expirationSeconds: 3600 } });
    const now = simulation.world('clock').clock.wallMs();
    expect(Math.abs(Date.parse(body.status.expirationTimestamp) - now - 3_600_000)).toBeLessThan(1001);
  });

  test('token request: null for everything, as kubectl sends it -> as if nothing was asked for', async () => {
    const { admin, given } = await openHome();
    await given(namespace('shop'), account('shop/till'));
    const { status, body } = await admin(path, {
      kind: 'TokenRequest',
      apiVersion: 'authentication.k8s.io/v1',
      metadata: { creationTimestamp: null },
      spec: { audiences: null, expirationSeconds: null, boundObjectRef: null },
      status: { token: '', expirationTimestamp: null },
    });
    expect([status, body.spec]).toEqual([201, { audiences: [issuer], expirationSeconds: 3600 }]);
  });

  test('token request: too short, wrong types, unheard of bindings -> 422 with the field', async () => {
    const { admin, given } = await openHome();
    await given(namespace('shop'), account('shop/till'));
    const field = async (spec: object) => {
      const { status, body } = await admin(path, { spec });
      return [status, body.details?.causes?.[0]?.field];
    };
    expect(await field({ expirationSeconds: 599 })).toEqual([422, 'spec.expirationSeconds']);
    expect(await field({ expirationSeconds: 'long' })).toEqual([422, 'spec.expirationSeconds']);
    expect(await field({ audiences: [1] })).toEqual([422, 'spec.audiences[0]']);
    expect(await field({ boundObjectRef: { kind: 'Node', name: 'x' } })).toEqual([422, 'spec.boundObjectRef.kind']);
  });

  test('token request: longer than is given -> as long as is given', async () => {
    const { admin, given } = await openHome({ tokenLifetimeMsMax: 2 * 3_600_000 });
    await given(namespace('shop'), account('shop/till'));
    expect((await admin(path, { spec: { expirationSeconds: 1e9 } })).body.spec.expirationSeconds).toBe(7200);
    const byDefault = await openHome();
    await byDefault.given(namespace('shop'), account('shop/till'));
    const { body } = await byDefault.admin(path, { spec: { expirationSeconds: 1e9 } });
    expect(body.spec.expirationSeconds).toBe(366 * 24 * 3600);
  });

  test('token request: bound to a Secret -> dies with it', async () => {
    const { admin, given, token, bearer } = await openHome();
    await given(namespace('shop'), account('shop/till'));
    const missing = await admin(path, { spec: { boundObjectRef: { kind: 'Secret', apiVersion: 'v1', name: 's' } } });
    expect(missing.status).toBe(404);
    await given({ apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'shop', name: 's' } });
    const wrongUid = { boundObjectRef: { kind: 'Secret', apiVersion: 'v1', name: 's', uid: 'other' } };
    expect((await admin(path, { spec: wrongUid })).status).toBe(409);
    const ask = bearer(await token('shop/till', { boundObjectRef: { kind: 'Secret', apiVersion: 'v1', name: 's' } }));
    expect((await ask('GET /version')).status).toBe(200);
    await admin('DELETE /api/v1/namespaces/shop/secrets/s');
    expect((await ask('GET /version')).status).toBe(401);
  });

  test('token request: for an account that is not there, or by somebody who may not -> 404, 403', async () => {
    const { admin, given, user } = await openHome();
    await given(namespace('shop'));
    expect((await admin(path, {})).status).toBe(404);
    await given(account('shop/till'), podReader, binding('r', 'ClusterRole/pod-reader', 'User/ann'));
    expect((await user('ann')(path, {})).status).toBe(403);
    const asker = { verbs: ['create'], apiGroups: [''], resources: ['serviceaccounts/token'], resourceNames: ['till'] };
    await given(role('shop/asker', asker), binding('shop/asker', 'Role/asker', 'User/ann'));
    expect((await user('ann')(path, {})).status).toBe(201);
  });
});

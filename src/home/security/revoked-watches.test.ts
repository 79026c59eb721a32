import { describe, expect, test } from 'vitest';
import { TestWatch } from '../testing/test-api.ts';
import { account, binding, type Home, namespace, openHome, rbacPath, role } from './testing/home.ts';

const maps = '/api/v1/namespaces/shop/configmaps';
const readMaps = { verbs: ['list', 'watch'], apiGroups: [''], resources: ['configmaps'] };

async function homeWithReader(): Promise<Home> {
  const home = await openHome();
  await home.given(
    namespace('shop'),
    account('shop/till'),
    role('shop/reader', readMaps),
    binding('shop/readers', 'Role/reader', 'ServiceAccount/shop/till', 'User/ann'),
  );
  return home;
}

async function watchWith(home: Home, headers: Record<string, string>, user?: string): Promise<TestWatch> {
  const identity = user === undefined ? {} : { clientCertificate: { commonName: user, organizations: [] } };
  const response = await home.handle({ method: 'GET', path: `${maps}?watch=1`, headers, ...identity });
  if (response.body instanceof Uint8Array) throw new Error(Buffer.from(response.body).toString());
  return new TestWatch(response.body).read();
}

async function watchAsTill(home: Home): Promise<TestWatch> {
  return watchWith(home, { authorization: `Bearer ${await home.token('shop/till')}` });
}

async function deleteAndSettle(home: Home, path: string): Promise<void> {
  expect((await home.admin(`DELETE ${path}`)).status).toBe(200);
  await home.simulation.time.advance(100);
}

describe('a watch ends when', () => {
  test.each([
    ['its RoleBinding goes', `${rbacPath}/namespaces/shop/rolebindings/readers`],
    ['its Role goes', `${rbacPath}/namespaces/shop/roles/reader`],
    ['its ServiceAccount goes', '/api/v1/namespaces/shop/serviceaccounts/till'],
  ])('%s -> told 403, and sees nothing that happens afterwards', async (_what, path) => {
    const home = await homeWithReader();
    const watch = await watchAsTill(home);
    await deleteAndSettle(home, path);
    await home.admin(`POST ${maps}`, { metadata: { name: 'secret' } });
    await home.simulation.time.advance(100);
    expect(watch.isEnded).toBe(true);
    expect(watch.names).toEqual(['ERROR 403']);
  });

  test('its rule is taken out of the role -> ended; a rule that stays -> goes on', async () => {
    const home = await homeWithReader();
    const watch = await watchAsTill(home);
    const put = (rules: object[]) =>
      home.admin(`PUT ${rbacPath}/namespaces/shop/roles/reader`, { metadata: { name: 'reader' }, rules });
    await put([readMaps, { ...readMaps, resources: ['secrets'] }]);
    await home.simulation.time.advance(100);
    expect(watch.isEnded).toBe(false);
    await put([{ ...readMaps, verbs: ['list'] }]);
    await home.simulation.time.advance(100);
    expect(watch.isEnded).toBe(true);
  });

  test('who acts as the reader may no longer -> ended', async () => {
    const home = await homeWithReader();
    await home.given(
      role('acting', { verbs: ['impersonate'], apiGroups: [''], resources: ['users'], resourceNames: ['ann'] }),
      binding('actors', 'ClusterRole/acting', 'User/bob'),
    );
    const watch = await watchWith(home, { 'impersonate-user': 'ann' }, 'bob');
    await deleteAndSettle(home, `${rbacPath}/clusterrolebindings/actors`);
    expect(watch.isEnded).toBe(true);
  });

  test('something else changes -> the watch goes on', async () => {
    const home = await homeWithReader();
    const watch = await watchAsTill(home);
    await home.given(account('shop/other'), role('shop/empty'));
    await deleteAndSettle(home, '/api/v1/namespaces/shop/serviceaccounts/other');
    await home.admin(`POST ${maps}`, { metadata: { name: 'map' } });
    await home.simulation.time.advance(100);
    expect(watch.names).toEqual(['ADDED map']);
  });
});

import { describe, expect, test } from 'vitest';
import type { ClientSubject } from '../model/access.ts';
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

async function watchWith(home: Home, headers: Record<string, string>, client?: ClientSubject): Promise<TestWatch> {
  const identity = client === undefined ? {} : { clientCertificate: client };
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

  const bound = [
    ['Pod', '/api/v1/namespaces/shop/pods', { spec: { containers: [{ name: 'c', image: 'i' }] } }],
    ['Secret', '/api/v1/namespaces/shop/secrets', {}],
  ] as const;

  test.each(bound)(
    'the %s that its token is bound to goes -> ended; another one goes -> goes on',
    async (kind, path, rest) => {
      const home = await homeWithReader();
      for (const name of ['own', 'other']) await home.admin(`POST ${path}`, { metadata: { name }, ...rest });
      const { body } = await home.admin(`GET ${path}/own`);
      const boundObjectRef = { apiVersion: 'v1', kind, name: 'own', uid: body.metadata.uid };
      const authorization = `Bearer ${await home.token('shop/till', { boundObjectRef })}`;
      const watch = await watchWith(home, { authorization });
      await deleteAndSettle(home, `${path}/other?gracePeriodSeconds=0`);
      expect(watch.isEnded).toBe(false);
      await deleteAndSettle(home, `${path}/own?gracePeriodSeconds=0`);
      await home.admin(`POST ${maps}`, { metadata: { name: 'secret' } });
      await home.simulation.time.advance(100);
      expect(watch.names).toEqual(['ERROR 403']);
    },
  );

  test('its token expires -> ended then, and not before', async () => {
    const home = await homeWithReader();
    const authorization = `Bearer ${await home.token('shop/till', { expirationSeconds: 600 })}`;
    const watch = await watchWith(home, { authorization });
    await home.simulation.time.advance(599_000);
    await home.admin(`POST ${maps}`, { metadata: { name: 'map' } });
    await home.simulation.time.advance(100);
    expect([watch.isEnded, watch.names]).toEqual([false, ['ADDED map']]);
    await home.simulation.time.advance(1_000);
    await home.admin(`POST ${maps}`, { metadata: { name: 'secret' } });
    await home.simulation.time.advance(100);
    expect(watch.names).toEqual(['ADDED map', 'ERROR 403']);
  });

  test('its client certificate ends -> ended then; one that acts as somebody else too', async () => {
    const home = await homeWithReader();
    await home.given(
      role('acting', { verbs: ['impersonate'], apiGroups: [''], resources: ['users'], resourceNames: ['ann'] }),
      binding('actors', 'ClusterRole/acting', 'User/bob'),
    );
    const endsMs = home.simulation.world('edge').clock.wallMs() + 60_000;
    const watches = [
      await watchWith(home, {}, { commonName: 'ann', organizations: [], endsMs }),
      await watchWith(home, { 'impersonate-user': 'ann' }, { commonName: 'bob', organizations: [], endsMs }),
    ];
    await home.simulation.time.advance(59_000);
    expect(watches.map(({ isEnded }) => isEnded)).toEqual([false, false]);
    await home.simulation.time.advance(1_100);
    expect(watches.map(({ names }) => names)).toEqual([['ERROR 403'], ['ERROR 403']]);
  });

  test('its right goes between the request and the watch -> ended at once', async () => {
    const home = await homeWithReader();
    const headers = { authorization: `Bearer ${await home.token('shop/till')}` };
    // Waits for a revision that has not happened: by then the request was let in.
    const path = `${maps}?watch=1&resourceVersion=${home.store.revision() + 2}`;
    const opening = home.handle({ method: 'GET', path, headers });
    await home.simulation.time.drain();
    await home.admin(`DELETE ${rbacPath}/namespaces/shop/rolebindings/readers`);
    await home.simulation.time.advance(100);
    await home.admin(`POST ${maps}`, { metadata: { name: 'map' } });
    await home.simulation.time.advance(100);
    const response = await opening;
    if (response.body instanceof Uint8Array) throw new Error(Buffer.from(response.body).toString());
    const watch = new TestWatch(response.body).read();
    await home.admin(`POST ${maps}`, { metadata: { name: 'secret' } });
    await home.simulation.time.advance(100);
    expect(watch.names).toEqual(['ERROR 403']);
  });

  test('who acts as the reader may no longer -> ended', async () => {
    const home = await homeWithReader();
    await home.given(
      role('acting', { verbs: ['impersonate'], apiGroups: [''], resources: ['users'], resourceNames: ['ann'] }),
      binding('actors', 'ClusterRole/acting', 'User/bob'),
    );
    const watch = await watchWith(home, { 'impersonate-user': 'ann' }, { commonName: 'bob', organizations: [] });
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

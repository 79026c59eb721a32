import { expect, test } from 'vitest';
import { silentLog } from '../base/log.ts';
import { account, openHome } from '../home/security/testing/home.ts';
import { createClient } from '../kube/client/client.ts';
import { keepAuthorityToken } from './authority-token.ts';

const name = 'portolan-federation.world';
const dayMs = 86_400_000;

/** A broker with the account of an authority that may renew its own token, and another without any right. */
async function start(of = name) {
  const home = await openHome();
  const rule = { apiGroups: [''], resources: ['serviceaccounts/token'], resourceNames: [name], verbs: ['create'] };
  const metadata = { name: 'renews', namespace: 'prod' };
  const rbac = 'rbac.authorization.k8s.io';
  const role = { apiVersion: `${rbac}/v1`, kind: 'Role', metadata, rules: [rule] };
  const subjects = [{ kind: 'ServiceAccount', name, namespace: 'prod' }];
  const roleRef = { kind: 'Role', name: 'renews', apiGroup: rbac };
  const binding = { apiVersion: `${rbac}/v1`, kind: 'RoleBinding', metadata, subjects, roleRef };
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'prod' } };
  await home.given(namespace, account(`prod/${name}`), account('prod/admin'), role, binding);
  const time = home.simulation.time;
  const world = home.simulation.world('authority');
  let stored: string | undefined = await home.token(`prod/${of}`, { expirationSeconds: (30 * dayMs) / 1000 });
  let isStoreAway = false;
  const token = await keepAuthorityToken({
    ...{ world, log: silentLog, account: { namespace: 'prod', name } },
    read: async () => stored,
    store: async (renewed) => {
      if (isStoreAway) throw new Error('no answer');
      stored = renewed;
    },
  });
  let requests = 0;
  const send = async (request: Parameters<typeof home.handle>[0]) => {
    requests += 1;
    const authorization = `Bearer ${await token.current()}`;
    return home.handle({ ...request, headers: { ...request.headers, authorization } });
  };
  token.renewWith(createClient({ send, close: () => {} }, { world, userAgent: 'test' }));
  await time.advance(0);
  return {
    token,
    time,
    stored: () => stored,
    requests: () => requests,
    setStored: (text: string | undefined) => (stored = text),
    setStoreAway: (isAway: boolean) => (isStoreAway = isAway),
    newToken: (days: number) => home.token(`prod/${name}`, { expirationSeconds: (days * dayMs) / 1000 }),
    isAccepted: async () => (await home.bearer((await token.current())!)(`GET /version`)).status === 200,
  };
}

test('authority token: its start, and a third of its life later -> a new one is used and stored', async () => {
  const { token, time, stored, isAccepted } = await start();
  const seen = new Set([await token.current()]);
  expect(stored()).toBe(await token.current());
  for (let day = 0; day < 45; day += 1) {
    await time.advance(dayMs);
    seen.add(await token.current());
    expect([day, await isAccepted(), stored() === (await token.current())]).toEqual([day, true, true]);
  }
  // Every ten days, and not every minute.
  expect(seen.size).toBeGreaterThan(3);
  expect(seen.size).toBeLessThan(8);
  token.stop();
});

test('authority token: the store does not answer -> the new one is used, and stored later', async () => {
  const { token, time, stored, setStoreAway } = await start();
  setStoreAway(true);
  await time.advance(11 * dayMs);
  expect(stored()).not.toBe(await token.current());
  setStoreAway(false);
  await time.advance(60_000);
  expect(stored()).toBe(await token.current());
  token.stop();
});

test('authority token: an admin or another authority stores a later one -> used without a restart; its file is gone -> no matter', async () => {
  const { token, time, setStored, newToken } = await start();
  await time.advance(dayMs);
  const later = await newToken(60);
  setStored(later);
  await time.advance(60_000);
  expect(await token.current()).toBe(later);
  setStored(undefined);
  await time.advance(60_000);
  expect(await token.current()).toBe(later);
  token.stop();
});

test('authority token: of another account, such as an admin -> used as it is', async () => {
  const { token, time, stored, requests } = await start('admin');
  const first = await token.current();
  await time.advance(11 * dayMs);
  expect([await token.current(), stored(), requests()]).toEqual([first, first, 0]);
  token.stop();
});

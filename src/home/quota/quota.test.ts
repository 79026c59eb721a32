import { describe, expect, test } from 'vitest';
import { configMap, createTestApi, type TestApi } from '../testing/test-api.ts';

const maps = '/api/v1/namespaces/default/configmaps';
const quotas = '/api/v1/namespaces/default/resourcequotas';
const merge = { 'content-type': 'application/merge-patch+json' };

function quota(hard: Record<string, string>): object {
  return { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'q' }, spec: { hard } };
}

async function withQuota(hard: Record<string, string>): Promise<TestApi> {
  const api = await createTestApi();
  await api.ok(`POST ${quotas}`, quota(hard));
  return api;
}

describe('quota', () => {
  test.each(['configmaps', 'count/configmaps'])(
    '%s -> the one too many is refused in the words of Kubernetes',
    async (name) => {
      const { send, ok } = await withQuota({ [name]: '2' });
      await ok(`POST ${maps}`, configMap('a'));
      await ok(`POST ${maps}`, configMap('b'));
      const { status, body } = await send(`POST ${maps}`, configMap('c'));
      expect([status, body.message]).toEqual([
        403,
        `configmaps "c" is forbidden: exceeded quota: q, requested: ${name}=1, used: ${name}=2, limited: ${name}=2`,
      ]);
      await ok(`PATCH ${maps}/a`, { data: { k: 'v' } }, merge);
      await ok(`DELETE ${maps}/a`);
      await ok(`POST ${maps}`, configMap('c'));
      await ok('POST /api/v1/namespaces', { metadata: { name: 'other' } });
      await ok('POST /api/v1/namespaces/other/configmaps', configMap('free'));
    },
  );

  test('a kind with a group -> counted by plural and group', async () => {
    const { send, ok } = await withQuota({ 'count/leases.coordination.k8s.io': '1' });
    const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
    await ok(`POST ${leases}`, { metadata: { name: 'a' } });
    expect((await send(`POST ${leases}`, { metadata: { name: 'b' } })).status).toBe(403);
  });

  test('scopes -> stored, said not to be enforced, and no limit of what has none; of other kinds than Pods -> 422', async () => {
    const { send, ok } = await createTestApi();
    const scopeSelector = { matchExpressions: [{ scopeName: 'PriorityClass', operator: 'In', values: ['high'] }] };
    const scoped = (hard: Record<string, string>) => ({ metadata: { name: 'q' }, spec: { hard, scopeSelector } });
    const refused = await send(`POST ${quotas}`, scoped({ 'count/configmaps': '1', pods: '1' }));
    expect([refused.status, refused.body.message]).toEqual([
      422,
      expect.stringContaining('limits Pods, and nothing else'),
    ]);
    const stored = await send(`POST ${quotas}`, scoped({ pods: '0' }));
    expect([stored.status, String(stored.headers['warning'])]).toEqual([
      201,
      expect.stringContaining('does not enforce'),
    ]);
    const containers = [{ name: 'a', image: 'a' }];
    await ok('POST /api/v1/namespaces/default/pods', { metadata: { name: 'a' }, spec: { containers } });
    await ok(`DELETE ${quotas}/q`);
  });

  test('2,000 creates at once -> exactly as many as fit, not those that all saw the last free place', async () => {
    const { send } = await withQuota({ 'count/configmaps': '50' });
    const replies = await Promise.all(
      Array.from({ length: 2_000 }, (_, at) => send(`POST ${maps}`, configMap(`m${at}`))),
    );
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(50);
    expect(replies.filter(({ status }) => status === 403)).toHaveLength(1_950);
  });

  test('bytes -> creates and updates that would go beyond are refused, smaller ones and deletes are not', async () => {
    const { send, ok } = await withQuota({ 'portolan.dev/bytes': '10Ki' });
    await ok(`POST ${maps}`, configMap('a', { k: 'x'.repeat(6_000) }));
    expect((await send(`POST ${maps}`, configMap('b', { k: 'x'.repeat(6_000) }))).status).toBe(403);
    const grown = await send(`PATCH ${maps}/a`, { data: { more: 'x'.repeat(6_000) } }, merge);
    expect([grown.status, grown.body.message]).toEqual([403, expect.stringContaining('portolan.dev/bytes=')]);
    await ok(`PATCH ${maps}/a`, { data: { k: 'x' } }, merge);
    await ok(`POST ${maps}`, configMap('b', { k: 'x'.repeat(6_000) }));
  });

  test('status -> what is used, a second later, and no further writes when nothing changes', async () => {
    const { ok, time, store } = await withQuota({ configmaps: '5', 'portolan.dev/bytes': '1Mi' });
    await ok(`POST ${maps}`, configMap('a'));
    await time.advance(2_000);
    const { status } = await ok(`GET ${quotas}/q`);
    expect(status.hard).toEqual({ configmaps: '5', 'portolan.dev/bytes': '1Mi' });
    expect(status.used).toMatchObject({ configmaps: '1' });
    expect(status.used['portolan.dev/bytes']).toBe('1Ki');
    const before = store.revision();
    await time.advance(10_000);
    expect(store.revision()).toBe(before);
  });

  test('a quota made when there is already more, or made smaller -> nothing goes, nothing comes', async () => {
    const { ok, send } = await createTestApi();
    for (const name of ['a', 'b', 'c']) await ok(`POST ${maps}`, configMap(name));
    await ok(`POST ${quotas}`, quota({ configmaps: '2' }));
    expect((await send(`POST ${maps}`, configMap('d'))).status).toBe(403);
    await ok(`DELETE ${quotas}/q`);
    await ok(`POST ${maps}`, configMap('d'));
  });

  test('a dry run -> refused as the real one would be, and takes no place', async () => {
    const { ok, send } = await withQuota({ configmaps: '1' });
    await ok(`POST ${maps}?dryRun=All`, configMap('a'));
    await ok(`POST ${maps}`, configMap('a'));
    expect((await send(`POST ${maps}?dryRun=All`, configMap('b'))).status).toBe(403);
  });

  test('what is not enforced -> taken with a warning; what is no number -> refused', async () => {
    const { send } = await createTestApi();
    const taken = await send(`POST ${quotas}?dryRun=All`, quota({ 'requests.cpu': '1' }));
    expect([taken.status, taken.headers['warning']]).toEqual([201, expect.stringContaining('does not enforce this')]);
    expect((await send(`POST ${quotas}`, quota({ pods: '100m' }))).status).toBe(422);
  });
});

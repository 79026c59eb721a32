import { describe, expect, test } from 'vitest';
import { configMap, createTestApi } from '../testing/test-api.ts';

const maps = '/api/v1/namespaces/default/configmaps';

describe('delete', () => {
  test('an object -> gone, answered with a Status that names it', async () => {
    const { ok, send } = await createTestApi();
    const made = await ok(`POST ${maps}`, configMap('a'));
    const { status, body } = await send(`DELETE ${maps}/a`);
    expect(status).toBe(200);
    expect(body).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      details: { name: 'a', kind: 'configmaps', uid: made.metadata.uid },
    });
    expect((await send(`DELETE ${maps}/a`)).status).toBe(404);
  });

  test.each([
    ['another uid', { uid: 'other' }, 409, 'Precondition failed: UID in precondition: other, UID in object meta: '],
    [
      'another resourceVersion',
      { resourceVersion: '1' },
      409,
      'Precondition failed: ResourceVersion in precondition: 1, ResourceVersion in object meta: ',
    ],
  ])('preconditions: %s -> 409 and nothing happens', async (_what, preconditions, status, message) => {
    const { ok, send } = await createTestApi();
    await ok(`POST ${maps}`, configMap('a'));
    const reply = await send(`DELETE ${maps}/a`, { kind: 'DeleteOptions', apiVersion: 'v1', preconditions });
    expect(reply.status).toBe(status);
    expect(reply.body.message).toContain(message);
    expect((await send(`GET ${maps}/a`)).status).toBe(200);
  });

  test('preconditions that hold, a grace period -> deleted', async () => {
    const { ok, send } = await createTestApi();
    const { uid, resourceVersion } = (await ok(`POST ${maps}`, configMap('a'))).metadata;
    const options = {
      gracePeriodSeconds: 30,
      propagationPolicy: 'Background',
      preconditions: { uid, resourceVersion },
    };
    await ok(`DELETE ${maps}/a?gracePeriodSeconds=0`, options);
    expect((await send(`GET ${maps}/a`)).status).toBe(404);
  });

  test.each([
    ['{"propagationPolicy":"Sometimes"}', 422, 'propagationPolicy: Invalid value: "Sometimes"'],
    ['{"kind":"ConfigMap"}', 400, 'ConfigMap cannot be handled as a DeleteOptions'],
    ['{"dryRun":5}', 422, 'dryRun: Invalid value: "integer"'],
    ['{"preconditions":{"uid":5}}', 422, 'preconditions.uid: Invalid value: "integer"'],
    ['{', 400, 'not valid JSON'],
  ])('options %s -> refused', async (options, status, message) => {
    const { ok, send } = await createTestApi();
    await ok(`POST ${maps}`, configMap('a'));
    const reply = await send(`DELETE ${maps}/a`, options);
    expect([reply.status, reply.body.message]).toEqual([status, expect.stringContaining(message)]);
  });

  test('dry run, from the query or the options -> still there', async () => {
    const { ok, send } = await createTestApi();
    await ok(`POST ${maps}`, configMap('a'));
    await ok(`DELETE ${maps}/a?dryRun=All`);
    await ok(`DELETE ${maps}/a`, { dryRun: ['All'] });
    expect((await send(`GET ${maps}/a`)).status).toBe(200);
  });

  test('a Service -> its cluster IP is free again', async () => {
    const { ok } = await createTestApi();
    const services = '/api/v1/namespaces/default/services';
    const made = await ok(`POST ${services}`, { metadata: { name: 'a' }, spec: { ports: [{ port: 80 }] } });
    await ok(`DELETE ${services}/a`);
    const { clusterIP } = made.spec;
    const next = await ok(`POST ${services}`, { metadata: { name: 'b' }, spec: { clusterIP, ports: [{ port: 80 }] } });
    expect(next.spec.clusterIP).toBe(clusterIP);
  });
});

describe('deletecollection', () => {
  test('with a label selector -> those go, the others and other namespaces stay', async () => {
    const { ok } = await createTestApi();
    await ok(`POST ${maps}`, configMap('a', {}, { labels: { app: 'x' } }));
    await ok(`POST ${maps}`, configMap('b', {}, { labels: { app: 'x' }, finalizers: ['example.com/hold'] }));
    await ok(`POST ${maps}`, configMap('c'));
    await ok('POST /api/v1/namespaces/kube-system/configmaps', configMap('d', {}, { labels: { app: 'x' } }));
    const deleted = await ok(`DELETE ${maps}?labelSelector=app%3Dx`);
    expect(deleted.items.map((item: { metadata: { name: string } }) => item.metadata.name)).toEqual(['a', 'b']);
    const left = (await ok('GET /api/v1/configmaps')).items as {
      metadata: { name: string; deletionTimestamp?: string };
    }[];
    expect(left.map(({ metadata }) => [metadata.name, metadata.deletionTimestamp !== undefined])).toEqual([
      ['b', true],
      ['c', false],
      ['d', false],
    ]);
  });

  test('of all namespaces at once -> not a thing, as in Kubernetes', async () => {
    const { send } = await createTestApi();
    expect((await send('DELETE /api/v1/configmaps')).status).toBe(405);
  });
});

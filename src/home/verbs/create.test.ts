import { describe, expect, test } from 'vitest';
import { configMap, createTestApi, widgetDefinition } from '../testing/test-api.ts';

const maps = '/api/v1/namespaces/default/configmaps';

describe('create', () => {
  test('a new object -> 201, with uid, creation time and resourceVersion of the server', async () => {
    const { send } = await createTestApi();
    const wrong = { uid: 'mine', creationTimestamp: '2001-01-01T00:00:00Z', generation: 7, deletionTimestamp: null };
    const { status, body } = await send(`POST ${maps}`, configMap('a', { k: 'v' }, wrong));
    expect(status).toBe(201);
    expect(body).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap', data: { k: 'v' } });
    expect(body.metadata).toMatchObject({ name: 'a', namespace: 'default', creationTimestamp: '2026-01-01T00:00:00Z' });
    expect(body.metadata).not.toHaveProperty('generation');
    expect(body.metadata.uid).toMatch(/^00000000-/);
    expect(Number(body.metadata.resourceVersion)).toBeGreaterThan(0);
  });

  test('the same name again -> 409 AlreadyExists', async () => {
    const { send, ok } = await createTestApi();
    await ok(`POST ${maps}`, configMap('a'));
    const { status, body } = await send(`POST ${maps}`, configMap('a'));
    expect(status).toBe(409);
    expect(body).toMatchObject({
      kind: 'Status',
      reason: 'AlreadyExists',
      message: 'configmaps "a" already exists',
      details: { name: 'a', kind: 'configmaps' },
    });
  });

  test('generateName -> the name gets a random suffix, another one if that is taken', async () => {
    const { ok, time } = await createTestApi();
    const names = new Set<string>();
    // Each suffix comes twice: every second attempt finds its name taken.
    let turn = 0;
    time.world.random.bytes = (count) => new Uint8Array(count).fill(Math.floor(turn++ / 2));
    for (let count = 0; count < 5; count++) {
      const body = configMap('', {}, { name: undefined, generateName: 'job-' });
      names.add((await ok(`POST ${maps}`, body)).metadata.name);
    }
    expect(names.size).toBe(5);
    for (const name of names) expect(name).toMatch(/^job-[a-z0-9]{5}$/);
  });

  test('wrong in thirty thousand places -> 422 with the first of them, and how many more', async () => {
    const { send } = await createTestApi();
    const labels = Object.fromEntries(Array.from({ length: 30_000 }, (_, at) => [`!${at}`, '']));
    const { status, body } = await send(`POST ${maps}`, configMap('a', {}, { labels }));
    expect([status, body.details.causes.length]).toEqual([422, 500]);
    expect(body.message).toMatch(/, and \d{4,} more\]$/);
  });

  test.each([
    ['no name', configMap(''), 422, 'metadata.name: Required value: name or generateName is required'],
    [
      'another namespace',
      configMap('a', {}, { namespace: 'other' }),
      400,
      'metadata.namespace is "other", the URL has "default"',
    ],
    [
      'another kind',
      { ...configMap('a'), kind: 'Secret' },
      400,
      'Secret in version "v1" cannot be handled as a ConfigMap',
    ],
    ['another version', { ...configMap('a'), apiVersion: 'v2' }, 400, 'apiVersion is "v2", this path serves "v1"'],
    [
      'a resourceVersion',
      configMap('a', {}, { resourceVersion: '4' }),
      400,
      'metadata.resourceVersion must be empty on create',
    ],
    ['an invalid name', configMap('A_b'), 422, "must be lower case letters, digits, '-' or '.'"],
    ['an invalid label', configMap('a', {}, { labels: { 'x y': 'ok' } }), 422, 'metadata.labels: Invalid value: "x y"'],
    [
      'an invalid finalizer',
      configMap('a', {}, { finalizers: ['a b'] }),
      422,
      'metadata.finalizers[0]: Invalid value: "a b"',
    ],
    [
      'an owner without uid',
      configMap('a', {}, { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p' }] }),
      422,
      'metadata.ownerReferences[0].uid: Required value',
    ],
    ['labels of numbers', configMap('a', {}, { labels: { a: 1 } }), 400, 'metadata.labels.a: must be a string'],
    ['a list', [], 400, 'the object provided is not an object'],
    ['no JSON', '{"a":', 400, 'the object provided is not valid JSON'],
    ['nothing', '', 400, 'the object provided is not valid JSON'],
  ])('%s -> refused in the words of Kubernetes', async (_what, body, status, message) => {
    const { send } = await createTestApi();
    const reply = await send(`POST ${maps}`, body);
    expect(reply.body.message).toContain(message);
    expect(reply.status).toBe(status);
    expect(reply.body).toMatchObject({ kind: 'Status', status: 'Failure', code: status });
  });

  test('several things wrong -> all of them at once, each with its field', async () => {
    const { send } = await createTestApi({ definitions: [widgetDefinition()] });
    const { status, body } = await send('POST /apis/example.com/v1/namespaces/default/widgets', {
      metadata: { name: 'W', labels: { ok: '-' } },
      spec: { size: 99, color: 'green' },
    });
    expect(status).toBe(422);
    expect(body.reason).toBe('Invalid');
    expect(body.details).toMatchObject({ name: 'W', group: 'example.com', kind: 'Widget' });
    expect(body.details.causes.map((cause: { field: string }) => cause.field)).toEqual([
      'metadata.name',
      'metadata.labels',
      'spec.size',
      'spec.color',
    ]);
  });

  test('defaults of the schema -> set before validation and stored', async () => {
    const { ok } = await createTestApi({ definitions: [widgetDefinition()] });
    const widgets = '/apis/example.com/v1/namespaces/default/widgets';
    await ok(`POST ${widgets}`, { metadata: { name: 'w' }, spec: { size: 1 } });
    expect((await ok(`GET ${widgets}/w`)).spec).toEqual({ size: 1, color: 'blue' });
  });

  test('in a namespace that is not there -> 404 of the namespace', async () => {
    const { send } = await createTestApi();
    const { status, body } = await send('POST /api/v1/namespaces/nowhere/configmaps', configMap('a'));
    expect([status, body.message]).toEqual([404, 'namespaces "nowhere" not found']);
    expect(body.details).toEqual({ name: 'nowhere', kind: 'namespaces' });
  });

  test('dryRun=All -> everything but storing: defaults, checks, an answer without resourceVersion', async () => {
    const { send, store } = await createTestApi();
    const before = store.revision();
    const { status, body } = await send(`POST ${maps}?dryRun=All`, configMap('a'));
    expect(status).toBe(201);
    expect(body.metadata.uid).toBeDefined();
    expect(body.metadata.resourceVersion).toBeUndefined();
    expect(store.revision()).toBe(before);
    expect((await send(`GET ${maps}/a`)).status).toBe(404);
    expect((await send(`POST ${maps}?dryRun=All`, configMap('B'))).status).toBe(422);
    expect((await send(`POST ${maps}?dryRun=Some`, configMap('b'))).status).toBe(422);
  });

  test('a Service -> its cluster IP is taken in the same commit, and two do not get the same', async () => {
    const { ok, send } = await createTestApi();
    const service = (name: string) => ({ metadata: { name }, spec: { ports: [{ port: 80 }] } });
    const made = await Promise.all(
      ['a', 'b', 'c'].map((name) => ok('POST /api/v1/namespaces/default/services', service(name))),
    );
    const addresses = new Set(made.map(({ spec }) => spec.clusterIP));
    expect(addresses.size).toBe(3);
    const clash = { metadata: { name: 'd' }, spec: { ...service('d').spec, clusterIP: made[0].spec.clusterIP } };
    expect((await send('POST /api/v1/namespaces/default/services', clash)).status).toBe(422);
  });

  test('status in the body of a kind that keeps it apart -> not taken', async () => {
    const { ok } = await createTestApi({ definitions: [widgetDefinition()] });
    const body = { metadata: { name: 'w' }, spec: { size: 1 }, status: { ready: true } };
    expect((await ok('POST /apis/example.com/v1/namespaces/default/widgets', body)).status).toBeUndefined();
  });
});

describe('bounds of what is stored', () => {
  test('a body of more members and items than are taken -> 413', async () => {
    const { send } = await createTestApi({ limits: { valuesMax: 100 } });
    const data = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, '']));
    expect((await send(`POST ${maps}`, configMap('few', data(90)))).status).toBe(201);
    const { status, body } = await send(`POST ${maps}`, configMap('many', data(110)));
    expect([status, body.message]).toEqual([413, expect.stringContaining('more than 100 members and items')]);
  });

  test('patches that add members again and again -> 413 at the limit; what takes some away is taken', async () => {
    const { send } = await createTestApi({ limits: { valuesMax: 1_000 } });
    const merge = { 'content-type': 'application/merge-patch+json' };
    const members = (from: number, value: string | null) =>
      Object.fromEntries(Array.from({ length: 900 }, (_, at) => [`k${from + at}`, value]));
    await send(`POST ${maps}`, configMap('a'));
    const statuses: number[] = [];
    for (const from of [0, 900, 1800]) {
      statuses.push((await send(`PATCH ${maps}/a`, { data: members(from, '') }, merge)).status);
    }
    // The server's own marks find room beyond the limit, and nothing else does.
    expect(statuses).toEqual([200, 200, 413]);
    expect((await send(`PATCH ${maps}/a`, { data: members(0, null) }, merge)).status).toBe(200);
  });

  test('labels of more than 64 KiB together -> 422', async () => {
    const { send } = await createTestApi();
    const labels = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`l${at}`, 'x'.repeat(60)]));
    expect((await send(`POST ${maps}`, configMap('few', {}, { labels: labels(900) }))).status).toBe(201);
    const { status, body } = await send(`POST ${maps}`, configMap('many', {}, { labels: labels(1100) }));
    expect([status, body.message]).toEqual([422, expect.stringContaining('metadata.labels: Too long')]);
  });

  test('patches that let an object grow again and again -> 413 at the limit; what makes it smaller is taken', async () => {
    const { send } = await createTestApi({ limits: { bodyBytesMax: 100_000 } });
    const merge = { 'content-type': 'application/merge-patch+json' };
    await send(`POST ${maps}`, configMap('a'));
    const statuses: number[] = [];
    for (let at = 0; at < 4; at++) {
      const patch = { data: { [`k${at}`]: 'x'.repeat(60_000) } };
      statuses.push((await send(`PATCH ${maps}/a`, patch, merge)).status);
    }
    expect(statuses).toEqual([200, 200, 413, 413]);
    expect((await send(`PATCH ${maps}/a`, { data: { k0: null } }, merge)).status).toBe(200);
  });
});

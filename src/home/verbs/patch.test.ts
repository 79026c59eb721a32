import { describe, expect, test } from 'vitest';
import { messageOfKind } from '../messages/messages.ts';
import { applyMergePatch } from '../patches/merge-patch.ts';
import { applyStrategicPatch } from '../patches/strategic-patch.ts';
import { configMap, createTestApi, type Reply, settle, type TestApi, widgetDefinition } from '../testing/test-api.ts';

const maps = '/api/v1/namespaces/default/configmaps';
const services = '/api/v1/namespaces/default/services';
const widgets = '/apis/example.com/v1/namespaces/default/widgets';
const merge = { 'content-type': 'application/merge-patch+json' };
const jsonPatch = { 'content-type': 'application/json-patch+json' };
const strategic = { 'content-type': 'application/strategic-merge-patch+json' };

const manyFinalizers = Array.from({ length: 100_000 }, (_, at) => `example.com/f${at}`);

async function withMap(): Promise<TestApi> {
  const api = await createTestApi();
  await api.ok(`POST ${maps}`, configMap('a', { x: '1', y: '2' }, { labels: { l: '1', m: '2' } }));
  return api;
}

describe('merge patch', () => {
  test('RFC 7386: values are set, nulls remove, the rest stays', async () => {
    const { ok } = await withMap();
    const patched = await ok(`PATCH ${maps}/a`, { metadata: { labels: { l: null, n: '3' } }, data: { x: '9' } }, merge);
    expect(patched.metadata.labels).toEqual({ m: '2', n: '3' });
    expect(patched.data).toEqual({ x: '9', y: '2' });
  });

  test('that changes nothing -> the revision stays', async () => {
    const { ok, store } = await withMap();
    const before = store.revision();
    await ok(`PATCH ${maps}/a`, { data: { x: '1' } }, merge);
    expect(store.revision()).toBe(before);
  });

  test('with an old resourceVersion -> 409; without one, races are run again until all are in', async () => {
    const { ok, send } = await withMap();
    const old = { metadata: { resourceVersion: '1' }, data: { x: '9' } };
    expect((await send(`PATCH ${maps}/a`, old, merge)).status).toBe(409);
    await Promise.all(
      Array.from({ length: 20 }, (_, at) => ok(`PATCH ${maps}/a`, { data: { [`k${at}`]: '1' } }, merge)),
    );
    expect(Object.keys((await ok(`GET ${maps}/a`)).data)).toHaveLength(22);
  });

  test('a key called __proto__ -> a key like any other, and nobody else is touched', () => {
    const patched = applyMergePatch({ a: 1 }, JSON.parse('{"__proto__":{"p":1}}')) as object;
    expect(JSON.stringify(patched)).toBe('{"a":1,"__proto__":{"p":1}}');
    expect(({} as Record<string, unknown>)['p']).toBeUndefined();
  });

  test('of status -> the rest stays', async () => {
    const { ok } = await createTestApi({ definitions: [widgetDefinition()] });
    await ok(`POST ${widgets}`, { metadata: { name: 'w' }, spec: { size: 1 } });
    const patched = await ok(`PATCH ${widgets}/w/status`, { spec: { size: 5 }, status: { ready: true } }, merge);
    expect(patched).toMatchObject({ spec: { size: 1 }, status: { ready: true } });
  });

  test.each([
    ['another name', { metadata: { name: 'b' } }, 400, 'metadata.name is "b", the URL has "a"'],
    ['another kind', { kind: 'Secret' }, 400, 'Secret in version "v1" cannot be handled as a ConfigMap'],
    ['an invalid label', { metadata: { labels: { l: '-' } } }, 422, 'metadata.labels: Invalid value: "-"'],
    ['a list', [], 400, 'a merge patch must be an object'],
    ['no JSON', '{', 400, 'not valid JSON'],
  ])('%s -> refused', async (_what, patch, status, message) => {
    const { send } = await withMap();
    const reply = await send(`PATCH ${maps}/a`, patch, merge);
    expect([reply.status, reply.body.message]).toEqual([status, expect.stringContaining(message)]);
  });
});

describe('JSON patch', () => {
  // RFC 6902 section 4 and appendix A, on the data of a ConfigMap and the list of its finalizers.
  test.each([
    ['add', [{ op: 'add', path: '/data/z', value: '3' }], { x: '1', y: '2', z: '3' }],
    ['remove', [{ op: 'remove', path: '/data/x' }], { y: '2' }],
    ['replace', [{ op: 'replace', path: '/data/x', value: '9' }], { x: '9', y: '2' }],
    ['move', [{ op: 'move', from: '/data/x', path: '/data/z' }], { y: '2', z: '1' }],
    ['copy', [{ op: 'copy', from: '/data/x', path: '/data/z' }], { x: '1', y: '2', z: '1' }],
    [
      'test, then add',
      [
        { op: 'test', path: '/data/x', value: '1' },
        { op: 'add', path: '/data/z', value: '3' },
      ],
      { x: '1', y: '2', z: '3' },
    ],
    [
      'escaped keys',
      [
        { op: 'add', path: '/metadata/annotations', value: {} },
        { op: 'add', path: '/metadata/annotations/a.b~1c', value: 'v' },
      ],
      { x: '1', y: '2' },
    ],
  ])('%s', async (_op, patch, data) => {
    const { ok } = await withMap();
    expect((await ok(`PATCH ${maps}/a`, patch, jsonPatch)).data).toEqual(data);
  });

  test('lists: an index inserts, "-" appends, remove closes the gap', async () => {
    const { ok } = await createTestApi();
    await ok(`POST ${maps}`, configMap('a', {}, { finalizers: ['e.com/1', 'e.com/3'] }));
    const patch = [
      { op: 'add', path: '/metadata/finalizers/1', value: 'e.com/2' },
      { op: 'add', path: '/metadata/finalizers/-', value: 'e.com/4' },
      { op: 'remove', path: '/metadata/finalizers/0' },
    ];
    const patched = await ok(`PATCH ${maps}/a`, patch, jsonPatch);
    expect(patched.metadata.finalizers).toEqual(['e.com/2', 'e.com/3', 'e.com/4']);
  });

  test.each([
    ['a test that fails', [{ op: 'test', path: '/data/x', value: '7' }], 422, 'test failed'],
    ['remove of nothing', [{ op: 'remove', path: '/data/none' }], 422, 'there is no "none" at this path'],
    ['replace of nothing', [{ op: 'replace', path: '/data/none', value: '1' }], 422, 'there is no "none" at this path'],
    ['add below nothing', [{ op: 'add', path: '/none/deep', value: '1' }], 422, 'there is no "none" at this path'],
    ['copy from nothing', [{ op: 'copy', from: '/none', path: '/data/z' }], 422, 'there is no "none" at this path'],
    ['move into itself', [{ op: 'move', from: '/data', path: '/data/x' }], 422, 'a value cannot be moved into itself'],
    ['remove of everything', [{ op: 'remove', path: '' }], 422, 'the whole document cannot be removed'],
    [
      'an inherited name',
      [{ op: 'test', path: '/data/constructor', value: '1' }],
      422,
      'there is no "constructor" at this path',
    ],
    ['an unknown operation', [{ op: 'spin', path: '/data' }], 400, 'unexpected kind: "spin"'],
    ['a path without a slash', [{ op: 'remove', path: 'data' }], 400, 'a path must be empty or start with "/"'],
    ['no value', [{ op: 'add', path: '/data/z' }], 400, 'value is missing'],
    ['no list', { op: 'remove', path: '/data' }, 400, 'a JSON patch must be a list of operations'],
    ['no JSON', '[{', 400, 'not valid JSON'],
    [
      'another object altogether',
      [{ op: 'replace', path: '', value: { metadata: { name: 'b' } } }],
      400,
      'the URL has "a"',
    ],
    [
      'too many operations',
      Array.from({ length: 10_001 }, () => ({ op: 'remove', path: '/data/x' })),
      422,
      'it has 10001 operations, at most 10000 are allowed',
    ],
    ['copies of copies', doubling(40), 422, 'copies more than allowed'],
    ['insertions into a long list', shifting({ op: 'add', path: '/x/0', value: 0 }), 422, 'moves more items'],
    ['removals from a long list', shifting({ op: 'remove', path: '/x/0' }), 422, 'moves more items'],
    ['moves in a long list', shifting({ op: 'move', from: '/x/1', path: '/x/2' }), 422, 'moves more items'],
  ])('%s -> refused, and nothing has changed', async (_what, patch, status, message) => {
    const { send, ok, store } = await withMap();
    const before = store.revision();
    const reply = await send(`PATCH ${maps}/a`, patch, jsonPatch);
    expect(reply.body.message).toContain(message);
    expect([reply.status, reply.body.reason]).toEqual([status, status === 400 ? 'BadRequest' : 'Invalid']);
    expect(store.revision()).toBe(before);
    expect((await ok(`GET ${maps}/a`)).data).toEqual({ x: '1', y: '2' });
  });
});

/** Each operation moves nearly all items of a list by one place. */
function shifting(operation: object) {
  const long = { op: 'add', path: '/x', value: Array(30_000).fill(0) };
  return [long, ...Array.from({ length: 400 }, () => operation)];
}

/** Each pair of copies makes the document twice as large. */
function doubling(times: number): object[] {
  return Array.from({ length: times }, (_, index) => ({ op: 'copy', from: '/data', path: `/data/k${index}` }));
}

describe('strategic merge patch', () => {
  test('keyed lists of 20,000 on 20,000, and 100,000 values taken from 100,000 -> work in proportion to their lengths', () => {
    const ports = Array.from({ length: 20_000 }, (_, port) => ({ port, name: `p${port}` }));
    const before = { spec: { ports: structuredClone(ports) }, metadata: { finalizers: manyFinalizers } };
    const patch = {
      spec: { ports: ports.toReversed().map(({ port }) => ({ port, ...(port % 2 === 0 && { $patch: 'delete' }) })) },
      metadata: { '$deleteFromPrimitiveList/finalizers': manyFinalizers.toReversed() },
    };
    const startMs = performance.now();
    const after = applyStrategicPatch(before, patch, messageOfKind('v1', 'Service')!);
    // Seconds to a minute when each item was looked for in the whole list.
    expect(performance.now() - startMs).toBeLessThan(2_000);
    expect(after).toMatchObject({ metadata: { finalizers: [] } });
    expect((after as { spec: { ports: unknown[] } }).spec.ports).toHaveLength(10_000);
  });

  test('several items with one key -> the first is merged, and deleted first', async () => {
    const list = [
      { port: 53, name: 'udp', protocol: 'UDP' },
      { port: 53, name: 'tcp', protocol: 'TCP' },
    ];
    const apply = (ports: object[]) =>
      applyStrategicPatch(
        { spec: { ports: structuredClone(list) } },
        { spec: { ports } },
        messageOfKind('v1', 'Service')!,
      );
    expect(apply([{ port: 53, $patch: 'delete' }])).toEqual({ spec: { ports: [list[1]] } });
    expect(apply([{ port: 53, name: 'x' }])).toEqual({ spec: { ports: [{ ...list[0], name: 'x' }, list[1]] } });
  });

  test.each(['finalizers', 'ownerReferences'])('a patch that adds the 101st of %s -> 422', async (field) => {
    const { ok, send } = await withMap();
    const owner = (at: number) => ({ apiVersion: 'v1', kind: 'ConfigMap', name: `o${at}`, uid: `u${at}` });
    const items = (count: number) =>
      Array.from({ length: count }, (_, at) => (field === 'finalizers' ? `example.com/f${at}` : owner(at)));
    await ok(`PATCH ${maps}/a?dryRun=All`, { metadata: { [field]: items(100) } }, merge);
    const { status, body } = await send(`PATCH ${maps}/a`, { metadata: { [field]: items(101) } }, merge);
    expect([status, body.message]).toEqual([422, expect.stringContaining(`metadata.${field}: Too many: 101`)]);
  });

  const service = {
    metadata: { name: 's' },
    spec: {
      selector: { app: 'x' },
      ports: [
        { name: 'a', port: 80 },
        { name: 'b', port: 81 },
      ],
    },
  };
  const portsAfter = async (patch: object) => {
    const { ok } = await createTestApi();
    await ok(`POST ${services}`, service);
    const { spec } = await ok(`PATCH ${services}/s`, patch, strategic);
    return spec.ports.map(({ name, port }: { name: string; port: number }) => `${name}:${port}`);
  };

  test.each([
    [
      'an item with a known key is merged, a new one is added',
      {
        spec: {
          ports: [
            { port: 80, name: 'z' },
            { port: 82, name: 'c' },
          ],
        },
      },
      ['z:80', 'b:81', 'c:82'],
    ],
    ['$patch: delete takes an item out', { spec: { ports: [{ port: 80, $patch: 'delete' }] } }, ['b:81']],
    [
      '$patch: replace replaces the list',
      { spec: { ports: [{ $patch: 'replace' }, { port: 90, name: 'n' }] } },
      ['n:90'],
    ],
    [
      '$setElementOrder orders it',
      { spec: { '$setElementOrder/ports': [{ port: 82 }, { port: 80 }], ports: [{ port: 82, name: 'c' }] } },
      ['c:82', 'a:80', 'b:81'],
    ],
  ])('%s', async (_what, patch, ports) => {
    expect((await portsAfter(patch)).sort()).toEqual([...ports].sort());
  });

  test.each([
    ['a new item comes first', [{ port: 82, name: 'c' }], ['c:82', 'a:80', 'b:81']],
    ['a known one stays', [{ port: 81, name: 'z' }], ['a:80', 'z:81']],
    [
      'the order of the patch counts',
      [
        { port: 81, name: 'y' },
        { port: 80, name: 'z' },
      ],
      ['y:81', 'z:80'],
    ],
  ])('order without $setElementOrder, as in Kubernetes: %s', async (_what, ports, after) => {
    expect(await portsAfter({ spec: { ports } })).toEqual(after);
  });

  test('$setElementOrder -> in that order, the others behind the one they stood behind', async () => {
    const order = { spec: { '$setElementOrder/ports': [{ port: 81 }, { port: 80 }] } };
    expect(await portsAfter(order)).toEqual(['b:81', 'a:80']);
  });

  test('maps: nulls remove, $patch: replace replaces, $retainKeys keeps only those', async () => {
    const { ok } = await createTestApi();
    await ok(`POST ${maps}`, configMap('a', { x: '1', y: '2' }, { finalizers: ['e.com/1', 'e.com/2'] }));
    expect((await ok(`PATCH ${maps}/a`, { data: { x: null, z: '3' } }, strategic)).data).toEqual({ y: '2', z: '3' });
    expect((await ok(`PATCH ${maps}/a`, { data: { $retainKeys: ['z', 'n'], n: '4' } }, strategic)).data).toEqual({
      z: '3',
      n: '4',
    });
    expect((await ok(`PATCH ${maps}/a`, { data: { $patch: 'replace', q: '5' } }, strategic)).data).toEqual({ q: '5' });
    const finalizers = { '$deleteFromPrimitiveList/finalizers': ['e.com/1'], finalizers: ['e.com/3'] };
    const patched = await ok(`PATCH ${maps}/a`, { metadata: finalizers }, strategic);
    expect(patched.metadata.finalizers).toEqual(['e.com/3', 'e.com/2']);
  });

  test('an unknown directive, an item without its key -> 422', async () => {
    const { ok, send } = await createTestApi();
    await ok(`POST ${services}`, service);
    for (const patch of [{ spec: { $patch: 'shuffle' } }, { spec: { ports: [{ name: 'x' }] } }]) {
      expect((await send(`PATCH ${services}/s`, patch, strategic)).status).toBe(422);
    }
  });

  test('of a custom kind -> 415 with the types that are accepted', async () => {
    const { ok, send } = await createTestApi({ definitions: [widgetDefinition()] });
    await ok(`POST ${widgets}`, { metadata: { name: 'w' }, spec: { size: 1 } });
    const { status, body } = await send(`PATCH ${widgets}/w`, {}, strategic);
    expect([status, body.reason]).toEqual([415, 'UnsupportedMediaType']);
    expect(body.message).toBe(
      'the media type of the body is not known here; accepted are application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml',
    );
  });
});

test('patch: of something that is not there -> 404', async () => {
  const { send } = await createTestApi();
  expect((await send(`PATCH ${maps}/none`, {}, merge)).status).toBe(404);
});

test('patch: a large one while the event loop is held by another -> not even read before its turn', async () => {
  const { send, time } = await createTestApi();
  let nowMs = 0;
  time.world.clock.monotonicMs = () => (nowMs += 8);
  const first = send(`POST ${maps}`, configMap('first', { a: 'x'.repeat(50_000) }));
  let reply: Reply | undefined;
  void send(`PATCH ${maps}/first`, `{"no JSON ${'x'.repeat(50_000)}`, merge).then((answer) => {
    reply = answer;
  });
  await settle();
  expect(reply).toBeUndefined();
  await time.advance(100);
  expect(reply?.status).toBe(400);
  expect((await first).status).toBe(201);
});

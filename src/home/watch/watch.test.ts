import { describe, expect, test } from 'vitest';
import type { Access } from '../model/access.ts';
import { allowAll, configMap, createTestApi, settle, type TestApi } from '../testing/test-api.ts';

const maps = '/api/v1/namespaces/default/configmaps';
const merge = { 'content-type': 'application/merge-patch+json' };

/** Creates, changes and deletes; gives the resourceVersions after each. */
async function someLife({ ok, store }: TestApi): Promise<number[]> {
  const revisions: number[] = [];
  await ok(`POST ${maps}`, configMap('a', { k: '1' }));
  revisions.push(store.revision());
  await ok(`PATCH ${maps}/a`, { data: { k: '2' } }, merge);
  revisions.push(store.revision());
  await ok(`DELETE ${maps}/a`);
  revisions.push(store.revision());
  return revisions;
}

describe('watch', () => {
  test('from a revision -> every change after it, in order; DELETED has the last state and the revision of the deletion', async () => {
    const api = await createTestApi();
    const start = api.store.revision();
    const [created, changed, deleted] = await someLife(api);
    for (const when of ['before', 'after']) {
      const watch = (await api.watch(`${maps}?watch=true&resourceVersion=${start}`)).read();
      await settle();
      expect([when, watch.lines]).toEqual([
        when,
        [`ADDED a@${created}`, `MODIFIED a@${changed}`, `DELETED a@${deleted}`],
      ]);
      expect(watch.events[2].object).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap', data: { k: '2' } });
      watch.close();
    }
  });

  test('live -> a change is sent when it happens', async () => {
    const api = await createTestApi();
    const watch = (await api.watch(`${maps}?watch=true&resourceVersion=${api.store.revision()}`)).read();
    await settle();
    expect(watch.lines).toEqual([]);
    const [created] = await someLife(api);
    await settle();
    expect(watch.lines[0]).toBe(`ADDED a@${created}`);
    expect(watch.lines).toHaveLength(3);
  });

  test.each(['', '&resourceVersion=0'])(
    'without a revision (%s) -> what is there first, then changes',
    async (query) => {
      const api = await createTestApi();
      await api.ok(`POST ${maps}`, configMap('a'));
      const watch = (await api.watch(`${maps}?watch=true${query}`)).read();
      await settle();
      await api.ok(`POST ${maps}`, configMap('b'));
      await settle();
      expect(watch.names).toEqual(['ADDED a', 'ADDED b']);
    },
  );

  test('sendInitialEvents -> all there is, a bookmark that says so, then changes', async () => {
    const api = await createTestApi();
    for (let index = 0; index < 1200; index++) await api.ok(`POST ${maps}`, configMap(`m${index}`));
    const query = 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
    const at = api.store.revision();
    const watch = (await api.watch(`${maps}?${query}`)).read();
    await api.ok(`POST ${maps}`, configMap('later'));
    await settle();
    expect(watch.events).toHaveLength(1202);
    expect(new Set(watch.events.slice(0, 1200).map((event) => event.type))).toEqual(new Set(['ADDED']));
    expect(watch.events[1200]).toEqual({
      type: 'BOOKMARK',
      object: {
        kind: 'ConfigMap',
        apiVersion: 'v1',
        metadata: {
          resourceVersion: String(at),
          creationTimestamp: null,
          annotations: { 'k8s.io/initial-events-end': 'true' },
        },
      },
    });
    expect(watch.names[1201]).toBe('ADDED later');
  });

  test('sendInitialEvents as a table -> the bookmark is a row, whose object says so', async () => {
    const api = await createTestApi();
    const query = 'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
    const accept = { accept: 'application/json;as=Table;g=meta.k8s.io;v=v1' };
    const watch = (await api.watch(`${maps}?${query}`, accept)).read();
    await settle();
    expect(watch.events).toMatchObject([
      {
        type: 'BOOKMARK',
        object: {
          kind: 'Table',
          rows: [
            {
              cells: [null, null, null],
              object: {
                kind: 'PartialObjectMetadata',
                metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } },
              },
            },
          ],
        },
      },
    ]);
  });

  test('sendInitialEvents of nothing -> the bookmark alone', async () => {
    const api = await createTestApi();
    const query =
      'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=0';
    const watch = (await api.watch(`${maps}?${query}`)).read();
    await settle();
    expect(watch.lines).toEqual([`BOOKMARK @${api.store.revision()}`]);
  });

  test('sendInitialEvents=false -> changes from now on', async () => {
    const api = await createTestApi();
    await api.ok(`POST ${maps}`, configMap('a'));
    const watch = (
      await api.watch(`${maps}?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan`)
    ).read();
    await api.ok(`POST ${maps}`, configMap('b'));
    await settle();
    expect(watch.names).toEqual(['ADDED b']);
  });

  test.each([
    ['sendInitialEvents=true', 'must be NotOlderThan with sendInitialEvents'],
    ['resourceVersionMatch=NotOlderThan', 'only together with sendInitialEvents'],
  ])('?%s -> 422', async (query, message) => {
    const { send } = await createTestApi();
    const { status, body } = await send(`GET ${maps}?watch=true&${query}`);
    expect([status, body.message]).toEqual([422, expect.stringContaining(message)]);
  });

  test('a label selector -> what begins to match is ADDED, what no longer does is DELETED in its last matching state', async () => {
    const api = await createTestApi();
    const start = api.store.revision();
    const watch = (await api.watch(`${maps}?watch=true&resourceVersion=${start}&labelSelector=app%3Dx`)).read();
    const label = (app: string | null) => api.ok(`PATCH ${maps}/a`, { metadata: { labels: { app } } }, merge);
    await api.ok(`POST ${maps}`, configMap('a'));
    await label('x');
    await api.ok(`PATCH ${maps}/a`, { data: { k: 'v' } }, merge);
    await label('y');
    const left = api.store.revision();
    await label('x');
    await api.ok(`DELETE ${maps}/a`);
    await settle();
    expect(watch.names).toEqual(['ADDED a', 'MODIFIED a', 'DELETED a', 'ADDED a', 'DELETED a']);
    expect(watch.events[2].object.metadata).toMatchObject({ labels: { app: 'x' }, resourceVersion: String(left) });
  });

  test('one name, by field selector -> only that one, also at first', async () => {
    const api = await createTestApi();
    for (const name of ['a', 'ab', 'b']) await api.ok(`POST ${maps}`, configMap(name));
    const watch = (await api.watch(`${maps}?watch=true&fieldSelector=metadata.name%3Da`)).read();
    await api.ok(`PATCH ${maps}/ab`, { data: { k: 'v' } }, merge);
    await api.ok(`PATCH ${maps}/a`, { data: { k: 'v' } }, merge);
    await settle();
    expect(watch.names).toEqual(['ADDED a', 'MODIFIED a']);
  });

  test('the old paths with /watch/ -> the same', async () => {
    const api = await createTestApi();
    await api.ok(`POST ${maps}`, configMap('a'));
    await api.ok(`POST ${maps}`, configMap('b'));
    const all = (await api.watch('/api/v1/watch/namespaces/default/configmaps')).read();
    const one = (await api.watch('/api/v1/watch/namespaces/default/configmaps/b')).read();
    await settle();
    expect([all.names, one.names]).toEqual([['ADDED a', 'ADDED b'], ['ADDED b']]);
  });

  test('bookmarks -> about each minute and just before the end, only if something happened', async () => {
    const api = await createTestApi();
    const start = api.store.revision();
    const path = `${maps}?watch=true&resourceVersion=${start}&timeoutSeconds=150`;
    const watch = (await api.watch(`${path}&allowWatchBookmarks=true`)).read();
    const silent = (await api.watch(path)).read();
    await api.time.advance(61_000);
    expect(watch.lines).toEqual([]);
    // A change elsewhere moves the revision and nothing else.
    await api.ok('POST /api/v1/namespaces/kube-system/secrets', { metadata: { name: 's' } });
    await api.time.advance(60_000);
    expect(watch.lines).toEqual([`BOOKMARK @${start + 1}`]);
    await api.ok('DELETE /api/v1/namespaces/kube-system/secrets/s');
    await api.time.advance(60_000);
    expect(watch.lines).toEqual([`BOOKMARK @${start + 1}`, `BOOKMARK @${start + 2}`]);
    expect([watch.isEnded, silent.isEnded, silent.lines]).toEqual([true, true, []]);
  });

  test('without timeoutSeconds -> ends by itself after a while, and leaves no timer behind', async () => {
    const api = await createTestApi({ limits: { watchMsMin: 10_000 } });
    const timers = api.time.timerCount;
    const watch = (await api.watch(`${maps}?watch=true`)).read();
    await api.time.advance(9_000);
    expect(watch.isEnded).toBe(false);
    await api.time.advance(11_000);
    expect(watch.isEnded).toBe(true);
    expect(api.time.timerCount).toBe(timers);
  });

  test('from a compacted revision -> an ERROR event 410 Expired in the stream, then the end', async () => {
    const api = await createTestApi();
    await someLife(api);
    await api.store.compact(api.store.revision());
    const watch = (await api.watch(`${maps}?watch=true&resourceVersion=1`)).read();
    await settle();
    expect(watch.lines).toEqual(['ERROR 410']);
    expect(watch.events[0].object).toMatchObject({
      kind: 'Status',
      reason: 'Expired',
      message: `too old resource version: 1 (${api.store.floor()})`,
    });
    expect(watch.isEnded).toBe(true);
  });

  test('from a revision that has not happened -> waits, and sees only what comes after it', async () => {
    const api = await createTestApi();
    const future = api.store.revision() + 2;
    const opening = api.watch(`${maps}?watch=true&resourceVersion=${future}&timeoutSeconds=5`);
    const [, , deleted] = await someLife(api);
    const watch = (await opening).read();
    await settle();
    expect(watch.lines).toEqual([`DELETED a@${deleted}`]);
    await api.time.advance(5_000);
    expect(watch.isEnded).toBe(true);
  });

  test.each([
    'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=1000',
    'watch=true&resourceVersion=1000',
  ])('%s, a revision that never comes -> 504, cause ResourceVersionTooLarge', async (query) => {
    const api = await createTestApi();
    const waiting = api.send(`GET ${maps}?${query}`);
    await api.time.advance(3_000);
    const { status, body } = await waiting;
    expect([status, body.details.causes[0].reason]).toEqual([504, 'ResourceVersionTooLarge']);
  });

  test('as Table -> each event is a Table of one row', async () => {
    const api = await createTestApi();
    const accept = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json' };
    const watch = (await api.watch(`${maps}?watch=true&allowWatchBookmarks=true&timeoutSeconds=1`, accept)).read();
    await api.ok(`POST ${maps}`, configMap('a', { k: 'v' }));
    await api.ok(`DELETE ${maps}/a`);
    await api.time.advance(1_000);
    expect(watch.events.map(({ type, object }) => [type, object.kind, object.rows.length])).toEqual([
      ['ADDED', 'Table', 1],
      ['DELETED', 'Table', 1],
      ['BOOKMARK', 'Table', 1],
    ]);
    // The columns are named once.
    const names = watch.events.map(({ object }) => object.columnDefinitions?.map(({ name }: { name: string }) => name));
    expect(names).toEqual([['Name', 'Data', 'Age'], undefined, undefined]);
    expect(watch.events[1].object.columnDefinitions).toBeNull();
    expect(watch.events[0].object.rows[0]).toMatchObject({
      cells: ['a', 1, '0s'],
      object: { metadata: { name: 'a' } },
    });
    expect(watch.events[1].object.rows[0].object.metadata.resourceVersion).toBe(String(api.store.revision()));
  });

  test('as Table, several watches that begin at different events -> each names the columns in its first', async () => {
    const api = await createTestApi();
    const accept = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
    const first = (await api.watch(`${maps}?watch=true`, accept)).read();
    await api.ok(`POST ${maps}`, configMap('a'));
    const from = api.store.revision();
    const second = (await api.watch(`${maps}?watch=true&resourceVersion=${from}`, accept)).read();
    await settle();
    await api.ok(`POST ${maps}`, configMap('b'));
    await settle();
    const hasColumns = (watch: typeof first) => watch.events.map(({ object }) => object.columnDefinitions !== null);
    expect([hasColumns(first), hasColumns(second)]).toEqual([[true, false], [true]]);
  });

  test('as PartialObjectMetadata -> metadata alone', async () => {
    const api = await createTestApi();
    const accept = { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' };
    const watch = (await api.watch(`${maps}?watch=true`, accept)).read();
    await api.ok(`POST ${maps}`, configMap('a', { k: 'v' }));
    await settle();
    expect(Object.keys(watch.events[0].object).sort()).toEqual(['apiVersion', 'kind', 'metadata']);
  });

  test('many watchers -> an event is encoded once for all of them', async () => {
    const api = await createTestApi();
    const bodies = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const path = `${maps}?watch=true&resourceVersion=${api.store.revision()}`;
        const { body } = await api.api.handle({ method: 'GET', path, headers: {} });
        return (body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
      }),
    );
    const firsts = bodies.map((iterator) => iterator.next());
    await api.ok(`POST ${maps}`, configMap('a'));
    const chunks = await Promise.all(firsts);
    expect(new Set(chunks.map(({ value }) => value)).size).toBe(1);
  });

  test.each([
    ['events', { watchQueueEventsMax: 5 }],
    ['bytes', { watchQueueBytesMax: 5_000 }],
  ])(
    'a reader that does not read, beyond its bound of %s -> ERROR 410 and the end; others are unharmed',
    async (_what, limits) => {
      const api = await createTestApi({ limits });
      const path = `${maps}?watch=true&resourceVersion=${api.store.revision()}`;
      const slow = await api.watch(path);
      const good = (await api.watch(path)).read();
      for (let index = 0; index < 20; index++) {
        await api.ok(`POST ${maps}`, configMap(`m${index}`, { k: 'x'.repeat(500) }));
        await settle();
      }
      slow.read();
      await settle();
      expect(slow.lines).toEqual(['ERROR 410']);
      expect(slow.events[0].object.reason).toBe('Expired');
      expect(slow.isEnded).toBe(true);
      expect(good.lines).toHaveLength(20);
      expect(good.isEnded).toBe(false);
    },
  );

  test('timeoutSeconds beyond the bound -> the bound', async () => {
    const api = await createTestApi({ limits: { watchMsMax: 20_000 } });
    const watch = (await api.watch(`${maps}?watch=true&timeoutSeconds=999999999`)).read();
    await api.time.advance(19_000);
    expect(watch.isEnded).toBe(false);
    await api.time.advance(1_000);
    expect(watch.isEnded).toBe(true);
  });

  test('too many watches -> 429 with Retry-After; one that goes makes room', async () => {
    const api = await createTestApi({ limits: { openWatchesMax: 4 } });
    const first = (await api.watch(`${maps}?watch=true`)).read();
    await api.watch(`${maps}?watch=true`);
    const { status, headers, body } = await api.send(`GET ${maps}?watch=true`);
    expect([status, body.reason, headers['retry-after']]).toEqual([429, 'TooManyRequests', '1']);
    first.close();
    await settle();
    await api.watch(`${maps}?watch=true`);
  });

  test('one user opens all they can -> half of what the others leave; another one still gets some', async () => {
    const access: Access = {
      ...allowAll,
      authenticate: async ({ headers }) => ({ name: headers['x-user'] ?? '', groups: [] }),
    };
    const api = await createTestApi({ access, limits: { openWatchesMax: 8 } });
    const openAll = async (user: string) => {
      for (let count = 0; ; count++) {
        const reply = await api.api.handle({ method: 'GET', path: `${maps}?watch=true`, headers: { 'x-user': user } });
        if (reply.status !== 200) return count;
      }
    };
    expect(await openAll('greedy')).toBe(4);
    expect(await openAll('modest')).toBe(2);
    expect(await openAll('late')).toBe(1);
  });

  test('the reader goes away, by its signal -> nothing is left of the watch', async () => {
    const api = await createTestApi();
    const timers = api.time.timerCount;
    const controller = new AbortController();
    const path = `${maps}?watch=true`;
    const { body } = await api.api.handle({ method: 'GET', path, headers: {}, signal: controller.signal });
    const next = (body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]().next();
    controller.abort();
    expect((await next).done).toBe(true);
    expect(api.time.timerCount).toBe(timers);
  });

  test('the server stops -> watches end', async () => {
    const api = await createTestApi();
    const watch = (await api.watch(`${maps}?watch=true`)).read();
    await api.api.stop();
    await settle();
    expect(watch.isEnded).toBe(true);
  });
});

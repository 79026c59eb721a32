// The store's contract as a suite. Uses nothing but the Store interface: every implementation must pass it as it is.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CompactedError, FutureRevisionError, type RangeRequest, type Store } from './store.ts';
import { storeModelContract } from './testing/model.ts';
import { bytes, commit, entryOf, type Observed, observe, plain, put, text, until } from './testing/tools.ts';

export function storeContract(name: string, open: () => Promise<Store>): void {
  describe(`${name}: the store contract`, () => {
    let store: Store;
    const observed: Observed[] = [];
    const watch = (prefix: string, afterRevision: number) => {
      const watching = observe(store, prefix, afterRevision);
      observed.push(watching);
      return watching;
    };
    beforeEach(async () => {
      store = await open();
    });
    afterEach(async () => {
      for (const watching of observed.splice(0)) watching.watch.cancel();
      await store.close();
    });

    rangeContract(() => store);
    commitContract(() => store);
    watchContract(() => store, watch);
    compactionContract(() => store, watch);
    snapshotContract(() => store);
    storeModelContract(open);
  });
}

function rangeContract(store: () => Store): void {
  const keys = async (request: Parameters<Store['range']>[0]) => {
    const { entries, remaining } = await store().range(request);
    return `${entries.map(({ key }) => key).join(' ')} +${remaining}`;
  };

  test('range: empty store -> revision 0, nothing', async () => {
    expect(await store().range({ prefix: '' })).toEqual({ revision: 0, entries: [], remaining: 0 });
    expect(await store().get('/a')).toBeUndefined();
  });

  test('range: prefix, after and limit -> ordered keys and how many remain', async () => {
    for (const key of ['/b/2', '/a/1', '/b/1', '/b/10', '/c', '/b']) await put(store(), key, key);
    expect(await keys({ prefix: '/b/' })).toBe('/b/1 /b/10 /b/2 +0');
    expect(await keys({ prefix: '/b/', limit: 2 })).toBe('/b/1 /b/10 +1');
    expect(await keys({ prefix: '/b/', limit: 2, after: '/b/10' })).toBe('/b/2 +0');
    expect(await keys({ prefix: '/b/', limit: 1, after: '/b/1' })).toBe('/b/10 +1');
    expect(await keys({ prefix: '/b/', limit: 1, after: '/b/15' })).toBe('/b/2 +0');
    expect(await keys({ prefix: '/b/', limit: 3 })).toBe('/b/1 /b/10 /b/2 +0');
    expect(await keys({ prefix: '', limit: 1 })).toBe('/a/1 +5');
    expect(await keys({ prefix: '/b/', limit: 1, after: '/a' })).toBe('/b/1 +2');
    expect(await keys({ prefix: '/b/', limit: 1, after: '/c' })).toBe(' +0');
    expect(await keys({ prefix: '/nothing' })).toBe(' +0');
  });

  test('range: keys beyond ASCII -> ordered by UTF-16 code unit, kept exactly', async () => {
    const unusual = ['/k/\u{1f600}', '/k/\uffff', '/k/é', '/k/\0', '/k/z'];
    for (const key of unusual) await put(store(), key, key);
    const { entries } = await store().range({ prefix: '/k/' });
    expect(entries.map(({ key }) => key)).toEqual(['/k/\0', '/k/z', '/k/é', '/k/\u{1f600}', '/k/\uffff']);
    expect(await keys({ prefix: '/k/\uffff', limit: 1 })).toBe('/k/\uffff +0');
    for (const entry of entries) expect(text(entry.value)).toBe(entry.key);
  });

  test('range: at an older revision -> exactly what was there, whatever came and went since', async () => {
    for (const key of ['/a', '/b', '/c', '/d']) await put(store(), key, 'old');
    const then = store().revision();
    await commit(store(), {
      writes: [{ key: '/b' }, { key: '/a', value: bytes('new') }, { key: '/aa', value: bytes('new') }],
    });
    await put(store(), '/e', 'new');
    const old = await store().range({ prefix: '/', revision: then });
    expect(old.revision).toBe(then);
    expect(old.entries.map(({ key, value }) => `${key}=${text(value)}`)).toEqual([
      '/a=old',
      '/b=old',
      '/c=old',
      '/d=old',
    ]);
    expect(await keys({ prefix: '/', revision: then, limit: 1 })).toBe('/a +3');
    expect(await keys({ prefix: '/', revision: then, limit: 2, after: '/a' })).toBe('/b /c +1');
    expect(await keys({ prefix: '/', limit: 2 })).toBe('/a /aa +3');
  });

  test('range: told how far to count -> counts no further, now and at an older revision', async () => {
    for (const key of ['/a', '/b', '/c', '/d']) await put(store(), key, '1');
    await commit(store(), { writes: [{ key: '/b' }] });
    const remaining = async (request: Partial<RangeRequest>) =>
      (await store().range({ prefix: '', ...request })).remaining;
    expect(await remaining({ limit: 1 })).toBe(2);
    expect(await remaining({ limit: 1, countMax: 1 })).toBe(1);
    expect(await remaining({ limit: 2, countMax: 5 })).toBe(1);
    expect(await remaining({ limit: 3, countMax: 1 })).toBe(0);
    expect(await remaining({ limit: 1, countMax: 9, revision: 4 })).toBe(3);
    expect(await remaining({ limit: 1, countMax: 0 })).toBe(0);
  });

  test('range: a revision that has not happened -> FutureRevisionError naming the newest', async () => {
    await put(store(), '/a', '1');
    const error = await store()
      .range({ prefix: '', revision: 2 })
      .catch((thrown) => thrown);
    expect(error).toBeInstanceOf(FutureRevisionError);
    expect(error.newest).toBe(1);
  });
}

function commitContract(store: () => Store): void {
  test('commit: each one that changes something -> the next revision, create revision kept', async () => {
    expect(await put(store(), '/a', '1')).toBe(1);
    expect(await put(store(), '/b', '1')).toBe(2);
    expect(await put(store(), '/a', '2')).toBe(3);
    expect(store().revision()).toBe(3);
    expect(plain(await store().get('/a'))).toEqual(
      entryOf({ key: '/a', value: bytes('2'), createRevision: 1, revision: 3 }),
    );
    await commit(store(), { writes: [{ key: '/a' }] });
    expect(await store().get('/a')).toBeUndefined();
    await put(store(), '/a', '3');
    expect(plain(await store().get('/a'))).toEqual(
      entryOf({ key: '/a', value: bytes('3'), createRevision: 5, revision: 5 }),
    );
  });

  test('get: a value beyond ASCII -> as bytes, and as text of one character per byte', async () => {
    await put(store(), '/a', 'é€');
    const entry = await store().get('/a');
    expect(text(entry!.value)).toBe('é€');
    expect(entry!.latin1).toBe('\xc3\xa9\xe2\x82\xac');
  });

  test('commit: an empty value -> is a value, not a deletion', async () => {
    await put(store(), '/a', '');
    expect(plain(await store().get('/a'))?.value).toEqual(new Uint8Array(0));
  });

  test('commit: several keys -> all at one revision', async () => {
    await put(store(), '/gone', '1');
    const writes = [{ key: '/a', value: bytes('1') }, { key: '/b', value: bytes('2') }, { key: '/gone' }];
    expect(await commit(store(), { writes })).toEqual({ kind: 'committed', revision: 2 });
    const { entries } = await store().range({ prefix: '' });
    expect(entries.map(({ key, revision }) => `${key}@${revision}`)).toEqual(['/a@2', '/b@2']);
  });

  test('commit: one of several compares fails -> conflict names it, nothing is written', async () => {
    await put(store(), '/a', '1');
    await put(store(), '/b', '1');
    const writes = ['/a', '/b', '/c'].map((key) => ({ key, value: bytes('2') }));
    const compares = [
      { key: '/a', revision: 1 },
      { key: '/b', revision: 1 },
      { key: '/c', revision: 7 },
    ];
    const conflict = await commit(store(), { compares, writes });
    const current = entryOf({ key: '/b', value: bytes('1'), createRevision: 2, revision: 2 });
    expect(conflict).toMatchObject({ kind: 'conflict', key: '/b' });
    expect(conflict.kind === 'conflict' && plain(conflict.current)).toEqual(current);
    expect(store().revision()).toBe(2);
    expect(text((await store().get('/a'))!.value)).toBe('1');
    expect(await store().get('/c')).toBeUndefined();
  });

  test('commit: compare with 0 -> only if the key is absent', async () => {
    const create = { compares: [{ key: '/a', revision: 0 }], writes: [{ key: '/a', value: bytes('1') }] };
    expect(await commit(store(), create)).toEqual({ kind: 'committed', revision: 1 });
    expect((await commit(store(), create)).kind).toBe('conflict');
    await commit(store(), { writes: [{ key: '/a' }] });
    expect(await commit(store(), create)).toEqual({ kind: 'committed', revision: 3 });
  });

  test('commit: compare fails on an absent key -> conflict with nothing there', async () => {
    const result = await commit(store(), { compares: [{ key: '/a', revision: 3 }], writes: [] });
    expect(result).toEqual({ kind: 'conflict', key: '/a', current: undefined });
  });

  test('commit: compares of a key it does not write -> guard the write', async () => {
    await put(store(), '/guard', '1');
    const guarded = { compares: [{ key: '/guard', revision: 1 }], writes: [{ key: '/a', value: bytes('1') }] };
    expect((await commit(store(), guarded)).kind).toBe('committed');
    await put(store(), '/guard', '2');
    expect((await commit(store(), guarded)).kind).toBe('conflict');
  });

  test('commit: changes nothing -> takes no revision', async () => {
    await put(store(), '/a', '1');
    expect(await commit(store(), { writes: [] })).toEqual({ kind: 'committed', revision: 1 });
    expect(await commit(store(), { writes: [{ key: '/nothing' }] })).toEqual({ kind: 'committed', revision: 1 });
    const both = { writes: [{ key: '/nothing' }, { key: '/a' }] };
    expect(await commit(store(), both)).toEqual({ kind: 'committed', revision: 2 });
  });

  test('commit: a key twice, an empty key, a key that is no Unicode -> rejected, nothing written', async () => {
    const value = bytes('1');
    const bad = [[{ key: '/a', value }, { key: '/a' }], [{ key: '', value }], [{ key: '/\ud800', value }]];
    for (const writes of bad) await expect(commit(store(), { writes })).rejects.toThrow(/commit (writes|names)/);
    expect(store().revision()).toBe(0);
  });

  test('commit: a view into a larger buffer -> only the view is stored', async () => {
    const large = new Uint8Array(100).fill(1);
    await commit(store(), { writes: [{ key: '/a', value: large.subarray(10, 13) }] });
    expect(plain(await store().get('/a'))?.value).toEqual(new Uint8Array([1, 1, 1]));
  });

  test('commit: of a megabyte -> stored', async () => {
    const value = new Uint8Array(1_000_000).map((_, index) => index % 251);
    await commit(store(), { writes: [{ key: '/large', value }] });
    expect(Buffer.compare((await store().get('/large'))!.value, value)).toBe(0);
  });

  test('commit: 64 writers with compare loops on one counter -> every increment counts, revisions are dense', async () => {
    const increments = 5;
    const increment = async (): Promise<void> => {
      const current = await store().get('/counter');
      const value = bytes(String(Number(current === undefined ? '0' : text(current.value)) + 1));
      const compares = [{ key: '/counter', revision: current?.revision ?? 0 }];
      const result = await commit(store(), { compares, writes: [{ key: '/counter', value }] });
      if (result.kind === 'conflict') await increment();
    };
    const writer = async () => {
      for (let count = 0; count < increments; count++) await increment();
    };
    await Promise.all(Array.from({ length: 64 }, writer));
    expect(text((await store().get('/counter'))!.value)).toBe(String(64 * increments));
    expect(store().revision()).toBe(64 * increments);
  });

  test('commit: once resolved -> the next read sees it', async () => {
    const seen = await Promise.all(
      Array.from({ length: 50 }, async (_, index) => {
        const revision = await put(store(), `/k/${index}`, '1');
        return (await store().get(`/k/${index}`))?.revision === revision && store().revision() >= revision;
      }),
    );
    expect(seen).not.toContain(false);
  });
}

function watchContract(store: () => Store, watch: (prefix: string, afterRevision: number) => Observed): void {
  test('watch: from an older revision -> replays what was missed, then goes on, without gap or duplicate', async () => {
    for (let index = 1; index <= 5; index++) await put(store(), `/k/${index}`, '1');
    const burst = Array.from({ length: 20 }, (_, index) => put(store(), `/k/${index + 6}`, '1'));
    const watching = watch('/k/', 2);
    await Promise.all(burst);
    await put(store(), '/k/last', '1');
    await until(() => watching.revisions().at(-1) === 26);
    expect(watching.revisions()).toEqual(Array.from({ length: 24 }, (_, index) => index + 3));
  });

  test('watch: created, changed, deleted -> entry and previous say which', async () => {
    const watching = watch('/a', 0);
    await put(store(), '/a', '1');
    await put(store(), '/a', '2');
    await commit(store(), { writes: [{ key: '/a' }] });
    await until(() => watching.events.length === 3);
    const first = entryOf({ key: '/a', value: bytes('1'), createRevision: 1, revision: 1 });
    const second = entryOf({ key: '/a', value: bytes('2'), createRevision: 1, revision: 2 });
    const events = watching.events.map(({ revision, key, entry, previous }) => {
      return { revision, key, entry: plain(entry), previous: plain(previous) };
    });
    expect(events).toEqual([
      { revision: 1, key: '/a', entry: first, previous: undefined },
      { revision: 2, key: '/a', entry: second, previous: first },
      { revision: 3, key: '/a', entry: undefined, previous: second },
    ]);
  });

  test('watch: several prefixes, one inside the other -> each gets what is under it and nothing else', async () => {
    const [all, b, bb, other] = [watch('', 0), watch('/b', 0), watch('/b/b', 0), watch('/other', 0)];
    for (const key of ['/a', '/b/a', '/b/b', '/b/b/c']) await put(store(), key, '1');
    await until(() => all.events.length === 4);
    expect(all.keys()).toEqual(['/a', '/b/a', '/b/b', '/b/b/c']);
    expect(b.keys()).toEqual(['/b/a', '/b/b', '/b/b/c']);
    expect(bb.keys()).toEqual(['/b/b', '/b/b/c']);
    expect(other.keys()).toEqual([]);
  });

  test('watch: a commit of several keys -> arrives whole, in one call', async () => {
    const watching = watch('/', 0);
    const writes = ['/a', '/b', '/c'].map((key) => ({ key, value: bytes('1') }));
    await commit(store(), { writes });
    await until(() => watching.events.length > 0);
    expect(watching.calls).toEqual([3]);
  });

  test('watch: from a revision that has not happened -> waits, and gets only what is above it', async () => {
    const watching = watch('/', 2);
    for (let index = 1; index <= 4; index++) await put(store(), '/a', String(index));
    await until(() => watching.revisions().at(-1) === 4);
    expect(watching.revisions()).toEqual([3, 4]);
  });

  test('watch: callbacks -> never during watch itself', async () => {
    await put(store(), '/a', '1');
    const watching = watch('/', 0);
    expect(watching.events).toEqual([]);
    expect(watching.progress).toEqual([]);
    await until(() => watching.events.length === 1);
  });

  test('watch: progress -> told of every move of the revision, after the events up to it', async () => {
    const watching = watch('/mine', 0);
    await put(store(), '/mine', '1');
    await put(store(), '/other', '1');
    await put(store(), '/mine', '2');
    await until(() => watching.progress.at(-1) === 3);
    expect(watching.progress).toContain(2);
    expect(watching.order).toEqual(['event 1', 'progress 1', 'progress 2', 'event 3', 'progress 3']);
  });

  test('watch: cancelled -> nothing more', async () => {
    const [cancelled, other] = [watch('/', 0), watch('/', 0)];
    await put(store(), '/a', '1');
    await until(() => cancelled.events.length === 1 && other.events.length === 1);
    cancelled.watch.cancel();
    await put(store(), '/a', '2');
    await until(() => other.events.length === 2);
    expect(cancelled.events.length).toBe(1);
    expect(cancelled.ends).toEqual([]);
  });

  test('close: open watches -> end once; commits and reads are refused', async () => {
    const watching = watch('/', 0);
    const committed = put(store(), '/a', '1');
    await store().close();
    expect(await committed).toBe(1);
    await until(() => watching.ends.length > 0);
    expect(watching.events.length).toBe(1);
    expect(watching.ends.map(({ message }) => message)).toEqual(['the store is closed']);
    await expect(put(store(), '/b', '1')).rejects.toThrow('the store is closed');
    await expect(store().get('/a')).rejects.toThrow('the store is closed');
    await store().close();
  });
}

function compactionContract(store: () => Store, watch: (prefix: string, afterRevision: number) => Observed): void {
  test('compact: reads and watches below the floor -> CompactedError naming the floor; from it on all is kept', async () => {
    for (let index = 1; index <= 5; index++) await put(store(), '/a', String(index));
    await commit(store(), { writes: [{ key: '/a' }] });
    await put(store(), '/b', '1');
    await store().compact(4);
    expect(store().floor()).toBe(4);
    const error = await store()
      .range({ prefix: '', revision: 3 })
      .catch((thrown) => thrown);
    expect(error).toBeInstanceOf(CompactedError);
    expect(error.floor).toBe(4);
    expect(text((await store().range({ prefix: '', revision: 4 })).entries[0]!.value)).toBe('4');
    const [below, at] = [watch('', 3), watch('', 4)];
    await until(() => below.ends.length > 0 && at.events.length === 3);
    expect(below.ends[0]).toBeInstanceOf(CompactedError);
    expect(below.events).toEqual([]);
    expect(at.revisions()).toEqual([5, 6, 7]);
  });

  test('compact: up to the newest -> live keys stay, the revision stays', async () => {
    await put(store(), '/a', '1');
    await commit(store(), { writes: [{ key: '/a' }] });
    await put(store(), '/b', '1');
    await store().compact(3);
    const { entries, revision } = await store().range({ prefix: '' });
    expect(entries.map(({ key }) => key)).toEqual(['/b']);
    expect([revision, store().floor()]).toEqual([3, 3]);
    expect(await put(store(), '/c', '1')).toBe(4);
  });

  test('compact: below the floor -> nothing; above the newest -> FutureRevisionError', async () => {
    for (let index = 1; index <= 3; index++) await put(store(), '/a', String(index));
    await store().compact(2);
    await store().compact(1);
    expect(store().floor()).toBe(2);
    await expect(store().compact(4)).rejects.toBeInstanceOf(FutureRevisionError);
  });

  test('compact: while a watch is up to date -> the watch goes on', async () => {
    const watching = watch('/', 0);
    await put(store(), '/a', '1');
    await until(() => watching.events.length === 1);
    await store().compact(1);
    await put(store(), '/a', '2');
    await until(() => watching.events.length === 2);
    expect(watching.ends).toEqual([]);
  });
}

function snapshotContract(store: () => Store): void {
  test('snapshot: keys changed, made and deleted while it is read -> exactly what was there when it was taken', async () => {
    for (let index = 1000; index < 2000; index++) await put(store(), `/k/${index}`, 'old');
    const { revision, entries } = store().snapshot();
    const iterator = entries[Symbol.iterator]();
    const seen: string[] = [];
    const read = (count: number) => {
      for (let index = 0; index < count; index++) {
        const step = iterator.next();
        if (step.done) return;
        seen.push(`${step.value.key}=${text(step.value.value)}@${step.value.revision}`);
      }
    };
    read(300);
    for (let index = 1000; index < 2000; index += 3) await put(store(), `/k/${index}`, 'new');
    for (let index = 1001; index < 2000; index += 3) await commit(store(), { writes: [{ key: `/k/${index}` }] });
    await put(store(), '/a', 'new');
    await put(store(), '/z', 'new');
    read(2000);
    expect(revision).toBe(1000);
    expect(seen).toEqual(Array.from({ length: 1000 }, (_, index) => `/k/${index + 1000}=old@${index + 1}`));
    expect(text((await store().get('/k/1000'))!.value)).toBe('new');
    expect((await store().range({ prefix: '/k/' })).entries.length).toBe(667);
  });

  test('snapshot: of an empty store -> revision 0, nothing', () => {
    const { revision, entries } = store().snapshot();
    expect([revision, ...entries]).toEqual([0]);
  });
}

import { describe, expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { createMemoryStore } from '../open-store.ts';
import { type DiskUse, type Journal, type JournalBatch, JournalBrokenError, JournalFullError } from './journal.ts';
import { Loader } from './load.ts';
import { LogStore } from './log-store.ts';
import { MemoryDisk, MemoryJournal } from './memory-journal.ts';
import { defaultLimits, historyBytesMax, type Limits } from './retention.ts';
import { StoreUnavailableError } from './store.ts';
import { TestWorld } from './testing/test-world.ts';
import { bytes, commit, observe, put, text, until } from './testing/tools.ts';

/** A memory journal that can be held up and made to fail, as a disk can. */
class FaultyJournal implements Journal {
  readonly disk = new MemoryDisk();
  readonly batches: JournalBatch[] = [];
  onBroken: Journal['onBroken'];
  failure: Error | undefined;
  isHeld = false;
  probes = 0;
  #release: (() => void) | undefined;
  readonly #journal = new MemoryJournal(this.disk);

  async append(batch: JournalBatch): Promise<DiskUse> {
    this.batches.push(batch);
    if (this.isHeld) await new Promise<void>((resolve) => (this.#release = resolve));
    if (this.failure !== undefined) throw this.failure;
    return this.#journal.append(batch);
  }

  async probe(): Promise<void> {
    this.probes += 1;
    if (this.failure !== undefined) throw this.failure;
  }

  release(): void {
    this.isHeld = false;
    this.#release?.();
  }

  async close(): Promise<void> {}
}

function setUp(limits: Partial<Limits> = {}) {
  const clock = new TestWorld();
  const journal = new FaultyJournal();
  const options = { log: silentLog, journal, limits: { ...defaultLimits, ...limits }, loaded: new Loader(0).finish() };
  return { clock, journal, store: new LogStore({ world: clock.world, ...options }) };
}

async function turns(count = 5): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}

describe('log store: batches', () => {
  test('commits while the journal is busy -> one batch for all of them', async () => {
    const { journal, store } = setUp();
    journal.isHeld = true;
    const first = put(store, '/0', '1');
    await turns();
    const others = Array.from({ length: 50 }, (_, index) => put(store, `/${index + 1}`, '1'));
    await turns();
    journal.release();
    await Promise.all([first, ...others]);
    expect(journal.batches.map(({ rows }) => rows.length)).toEqual([1, 50]);
  });

  test('a batch that is not on disk yet -> no read, watch or revision shows it', async () => {
    const { journal, store } = setUp();
    const watching = observe(store, '', 0);
    journal.isHeld = true;
    const committed = put(store, '/a', '1');
    await turns();
    expect(journal.batches.length).toBe(1);
    expect([store.revision(), await store.get('/a'), watching.events, watching.progress]).toEqual([
      0,
      undefined,
      [],
      [],
    ]);
    journal.release();
    expect(await committed).toBe(1);
    expect((await store.get('/a'))?.revision).toBe(1);
    expect(watching.revisions()).toEqual([1]);
  });

  test('a conflict with a commit of the same batch -> reported only once that one is on disk', async () => {
    const { journal, store } = setUp();
    journal.isHeld = true;
    const create = { compares: [{ key: '/a', revision: 0 }], writes: [{ key: '/a', value: bytes('1') }] };
    const won = commit(store, create);
    let result: unknown;
    const lost = commit(store, create).then((found) => (result = found));
    await turns();
    expect(result).toBeUndefined();
    journal.release();
    expect(await won).toEqual({ kind: 'committed', revision: 1 });
    expect(await lost).toMatchObject({ kind: 'conflict', key: '/a', current: { revision: 1 } });
  });

  test('commits of many megabytes at once -> several batches of bounded size', async () => {
    const { journal, store } = setUp();
    const value = new Uint8Array(1_000_000);
    const commits = Array.from({ length: 12 }, (_, index) => commit(store, { writes: [{ key: `/${index}`, value }] }));
    await Promise.all(commits);
    expect(journal.batches.map(({ rows }) => rows.length)).toEqual([5, 5, 2]);
  });

  test('a watcher that throws -> is cut off, the others and the commit are not harmed', async () => {
    const { store } = setUp();
    const ends: Error[] = [];
    const onEvents = () => {
      throw new Error('no');
    };
    store.watch({ prefix: '', afterRevision: 0, onEvents, onEnd: (error) => ends.push(error) });
    const other = observe(store, '', 0);
    expect(await put(store, '/a', '1')).toBe(1);
    expect(await put(store, '/a', '2')).toBe(2);
    expect(other.revisions()).toEqual([1, 2]);
    expect(ends.map(({ message }) => message)).toEqual(['the watch was cut off: its callback threw']);
  });
});

describe('log store: history', () => {
  test('history: older than its time -> forgotten, not before', async () => {
    const { clock, store } = setUp({ historyMs: 10_000 });
    await put(store, '/a', '1');
    await put(store, '/a', '2');
    clock.advance(6000);
    await put(store, '/a', '3');
    clock.advance(3900);
    await turns();
    expect(store.floor()).toBe(0);
    clock.advance(1300);
    await turns();
    expect(store.floor()).toBe(2);
    clock.advance(20_000);
    await turns();
    expect(store.floor()).toBe(3);
    clock.advance(1000);
    expect(clock.timerCount).toBe(0);
  });

  test('history: more events than its bound -> the oldest are forgotten', async () => {
    const { journal, store } = setUp({ historyEventsMax: 100 });
    for (let index = 1; index <= 250; index++) await put(store, '/a', String(index));
    const kept = store.revision() - store.floor();
    expect(kept).toBeLessThanOrEqual(101);
    expect(kept).toBeGreaterThanOrEqual(89);
    expect(journal.disk.rows.size).toBe(kept + 1);
  });

  test('history: more bytes than its bound -> the oldest are forgotten', async () => {
    const diskSlackBytes = 1024 * 1024;
    const { journal, store } = setUp({ diskSlackBytes });
    for (let index = 1; index <= 1000; index++) {
      await commit(store, { writes: [{ key: '/a', value: new Uint8Array(2000) }] });
    }
    const bytesOnDisk = journal.disk.rows.size * 2000;
    expect(bytesOnDisk).toBeLessThan(historyBytesMax({ ...defaultLimits, diskSlackBytes }) + 4000);
    expect(store.revision() - store.floor()).toBeGreaterThan(100);
  });

  test('history: everything deleted and forgotten -> no row is left, the revision stays', async () => {
    const { clock, journal, store } = setUp();
    for (let index = 0; index < 10; index++) await put(store, `/${index}`, '1');
    await commit(store, { writes: Array.from({ length: 10 }, (_, index) => ({ key: `/${index}` })) });
    await store.compact(store.revision());
    expect(journal.disk.rows.size).toBe(0);
    const again = createMemoryStore({ world: clock.world, disk: journal.disk });
    expect([again.revision(), again.floor()]).toEqual([11, 11]);
    expect(await put(again, '/a', '1')).toBe(12);
  });

  test('compaction in many batches -> resolves when the floor is there, commits go on meanwhile', async () => {
    const { journal, store } = setUp();
    for (let round = 0; round < 20; round++) {
      await commit(store, {
        writes: Array.from({ length: 1000 }, (_, index) => ({ key: `/${index}`, value: bytes('1') })),
      });
    }
    journal.batches.length = 0;
    const compacted = store.compact(20);
    const committed = put(store, '/a', '1');
    await committed;
    expect(store.floor()).toBeLessThan(20);
    await compacted;
    expect(store.floor()).toBe(20);
    expect(journal.batches.length).toBeGreaterThan(2);
    expect(journal.disk.rows.size).toBe(1001);
  });
});

describe('log store: restarts', () => {
  test('reopened -> state, history, revision and floor as they were', async () => {
    const { clock, journal, store } = setUp();
    for (let index = 1; index <= 6; index++) await put(store, `/${index % 2}`, String(index));
    await commit(store, { writes: [{ key: '/0' }] });
    await store.compact(3);
    const again = createMemoryStore({ world: clock.world, disk: journal.disk });
    expect([again.revision(), again.floor()]).toEqual([7, 3]);
    for (const revision of [3, 4, 5, 6, 7]) {
      expect(await again.range({ prefix: '', revision })).toEqual(await store.range({ prefix: '', revision }));
    }
    const [before, after] = [observe(store, '', 3), observe(again, '', 3)];
    await turns();
    expect(after.events).toEqual(before.events);
    expect(after.revisions()).toEqual([4, 5, 6, 7]);
  });

  test('killed, its disk opened by the next process -> what it still tries never reaches the disk', async () => {
    const { world } = new TestWorld();
    const disk = new MemoryDisk();
    const killed = createMemoryStore({ world, disk });
    await put(killed, '/a', '1');
    let hasSettled = false;
    const late = put(killed, '/a', 'late');
    const next = createMemoryStore({ world, disk });
    late.finally(() => (hasSettled = true));
    await turns();
    expect(hasSettled).toBe(false);
    expect(text((await next.get('/a'))!.value)).toBe('1');
  });
});

describe('log store: a failing disk', () => {
  test('disk full -> the batch and what waits are refused and say why, reads go on, nothing of it is seen', async () => {
    const { journal, store } = setUp();
    await put(store, '/a', '1');
    journal.failure = new JournalFullError('the disk is full');
    const refused = await Promise.allSettled([put(store, '/a', '2'), put(store, '/b', '2')]);
    for (const result of refused) {
      expect(result).toMatchObject({ status: 'rejected' });
      const { reason } = result as PromiseRejectedResult;
      expect(reason).toBeInstanceOf(StoreUnavailableError);
      expect(reason.message).toBe('the store takes no writes: the disk is full');
    }
    expect(store.writeFailure()?.message).toBe('the disk is full');
    await expect(put(store, '/c', '1')).rejects.toThrow('the disk is full');
    await expect(store.compact(1)).rejects.toThrow('the disk is full');
    expect(text((await store.get('/a'))!.value)).toBe('1');
    expect([store.revision(), journal.batches.length]).toEqual([1, 2]);
  });

  test('disk full, then room again -> probed with back-off, writes are taken again at the next revision', async () => {
    const { clock, journal, store } = setUp();
    const watching = observe(store, '', 0);
    await put(store, '/a', '1');
    journal.failure = new JournalFullError('the disk is full');
    await expect(put(store, '/a', '2')).rejects.toBeInstanceOf(StoreUnavailableError);
    for (let second = 0; second < 60; second++) {
      clock.advance(1000);
      await turns(2);
    }
    expect(journal.probes).toBeGreaterThan(5);
    expect(journal.probes).toBeLessThan(20);
    expect(store.writeFailure()).toBeDefined();
    journal.failure = undefined;
    clock.advance(10_000);
    await turns();
    expect(store.writeFailure()).toBeUndefined();
    expect(await put(store, '/a', '3')).toBe(2);
    expect(watching.revisions()).toEqual([1, 2]);
    expect(watching.ends).toEqual([]);
  });

  test('fsync fails -> the batch is refused, no write is taken any more, reads and watches go on', async () => {
    const { clock, journal, store } = setUp();
    const watching = observe(store, '', 0);
    await put(store, '/a', '1');
    journal.failure = new JournalBrokenError('fsync failed');
    await expect(put(store, '/a', '2')).rejects.toThrow('the store takes no writes: fsync failed');
    journal.failure = undefined;
    clock.advance(3_600_000);
    await turns();
    await expect(put(store, '/a', '3')).rejects.toBeInstanceOf(StoreUnavailableError);
    expect(store.writeFailure()?.message).toBe('fsync failed');
    expect([journal.probes, journal.batches.length]).toEqual([0, 2]);
    expect(text((await store.get('/a'))!.value)).toBe('1');
    expect([watching.revisions(), watching.ends]).toEqual([[1], []]);
    await store.close();
    expect(watching.ends.length).toBe(1);
  });

  test('the journal breaks between two batches -> said at once', async () => {
    const { journal, store } = setUp();
    journal.onBroken?.(new JournalBrokenError('its thread died'));
    expect(store.writeFailure()?.message).toBe('its thread died');
    await expect(put(store, '/a', '1')).rejects.toThrow('its thread died');
  });

  test('closed while the disk is full -> no probe is left behind', async () => {
    const { clock, journal, store } = setUp();
    journal.failure = new JournalFullError('the disk is full');
    await expect(put(store, '/a', '1')).rejects.toThrow();
    await store.close();
    expect(clock.timerCount).toBe(0);
  });
});

describe('log store: watchers', () => {
  test('10,000 watchers elsewhere -> a change calls only the ones whose prefix it is under', async () => {
    const { store } = setUp();
    let calls = 0;
    const onEvents = () => (calls += 1);
    for (let index = 0; index < 10_000; index++) {
      store.watch({ prefix: `/ns-${index}/`, afterRevision: 0, onEvents, onEnd: () => {} });
    }
    const mine = observe(store, '/ns-7/', 0);
    await put(store, '/ns-7/a', '1');
    await until(() => mine.events.length === 1);
    expect(calls).toBe(1);
  });
});

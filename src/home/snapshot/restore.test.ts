import { describe, expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { createMemoryStore } from '../open-store.ts';
import { MemoryDisk, MemoryJournal } from '../store/memory-journal.ts';
import { CompactedError, type Store } from '../store/store.ts';
import { commit, observe, put, text, until } from '../store/testing/tools.ts';
import { encodeContent } from './content.ts';
import { restoredRevision, restoreSnapshot } from './restore.ts';
import { SnapshotError } from './snapshot-error.ts';
import { sealedPieces } from './snapshots.ts';

const { random, clock, timers } = new Simulation({ seed: 1 }).world('home');
const world = { random, clock, timers };
const nowMs = Date.UTC(2026, 10, 16);

function snapshotOf(store: Store): Uint8Array[] {
  const { revision, entries } = store.snapshot();
  const head = { homeId: 'a', homeName: 'a', revision, takenMs: 1, portolan: '0.1.0', files: {} };
  return [...sealedPieces(encodeContent(head, entries))];
}

async function restored(chunks: readonly Uint8Array[], more: Partial<Parameters<typeof restoreSnapshot>[0]> = {}) {
  const disk = new MemoryDisk();
  const journal = new MemoryJournal(disk);
  const result = await restoreSnapshot({ chunks, nowMs, journal, onHead: () => {}, isLeftOut: () => false, ...more });
  return { result, store: createMemoryStore({ world, disk }) };
}

describe('snapshot: restored', () => {
  test('restore: objects keep their revisions, and the store goes on far above all that was seen', async () => {
    const before = createMemoryStore({ world });
    await put(before, '/a', '1');
    await put(before, '/b', 'é');
    await put(before, '/a', '2');
    await commit(before, { writes: [{ key: '/gone', value: Buffer.from('x') }] });
    await commit(before, { writes: [{ key: '/gone' }] });
    const { result, store } = await restored(snapshotOf(before));
    const { entries } = await store.range({ prefix: '' });
    expect(
      entries.map(({ key, value, createRevision, revision }) => [key, text(value), createRevision, revision]),
    ).toEqual([
      ['/a', '2', 1, 3],
      ['/b', 'é', 2, 2],
    ]);
    expect(result).toMatchObject({ revision: nowMs * 1000, entries: 2, leftOut: 0 });
    expect([store.revision(), store.floor()]).toEqual([result.revision, result.revision]);
    expect(await put(store, '/c', '1')).toBe(result.revision + 1);
  });

  test('restore: a watch and a list that go on from before -> told to begin anew, whatever they have seen', async () => {
    const before = createMemoryStore({ world });
    for (let index = 0; index < 9; index++) await put(before, '/a', String(index));
    const { store } = await restored(snapshotOf(before));
    for (const revision of [1, 9, 500]) {
      const watching = observe(store, '/', revision);
      await until(() => watching.ends.length === 1);
      expect(watching.ends[0]).toBeInstanceOf(CompactedError);
      await expect(store.range({ prefix: '', revision })).rejects.toBeInstanceOf(CompactedError);
    }
  });

  test('restore: the same snapshot twice -> the second is above all that was written after the first', () => {
    const first = restoredRevision(1000, nowMs);
    expect(restoredRevision(1000, nowMs + 1000)).toBeGreaterThan(first + 900_000);
    // A clock that was set back.
    expect(restoredRevision(first + 5, 0)).toBeGreaterThan(first + 100_000_000);
    expect(Number.isSafeInteger(restoredRevision(first, Date.UTC(2200, 1)))).toBe(true);
  });

  test('restore: entries that are left out -> gone, and counted', async () => {
    const before = createMemoryStore({ world });
    await put(before, '/keep', '1');
    await put(before, '/token', '1');
    const { result, store } = await restored(snapshotOf(before), { isLeftOut: ({ key }) => key === '/token' });
    expect(await store.get('/token')).toBeUndefined();
    expect(result).toMatchObject({ entries: 1, leftOut: 1 });
  });

  test('restore: many batches -> all of them; refused at its head or its end -> an error', async () => {
    const before = createMemoryStore({ world });
    for (let index = 0; index < 40; index++) await put(before, `/k/${index}`, 'x'.repeat(100_000));
    const chunks = snapshotOf(before);
    const { store } = await restored(chunks);
    expect((await store.range({ prefix: '' })).entries).toHaveLength(40);
    await expect(restored(chunks.slice(0, -1))).rejects.toBeInstanceOf(SnapshotError);
    const refuse = () => {
      throw new SnapshotError('of another home');
    };
    await expect(restored(chunks, { onHead: refuse })).rejects.toThrow('of another home');
  });
});

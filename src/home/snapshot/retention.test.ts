import { describe, expect, test } from 'vitest';
import { excessSnapshots, type KeptSnapshot, snapshotFileName, snapshotsIn } from './retention.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const now = Date.UTC(2026, 10, 16, 12);

function hourly(count: number, sizeBytes = 100): KeptSnapshot[] {
  return Array.from({ length: count }, (_, index) => {
    const takenMs = now - index * hourMs;
    return { name: snapshotFileName(takenMs, 1), takenMs, revision: 1, sizeBytes };
  });
}

const kept = (all: readonly KeptSnapshot[], storeBytes: number) => {
  const excess = new Set(excessSnapshots(all, storeBytes));
  return all.filter((one) => !excess.has(one)).map(({ name }) => name.slice(0, 11));
};

describe('snapshots that are kept', () => {
  test('retention: an hour each over four days -> the last 3, and the newest of each day before', () => {
    expect(kept(hourly(80), 1_000_000)).toEqual([
      '20261116T12',
      '20261116T11',
      '20261116T10',
      '20261115T23',
      '20261114T23',
      '20261113T23',
    ]);
  });

  test('retention: they would take more than four times the store -> the oldest days go', () => {
    expect(kept(hourly(96), 100)).toEqual(['20261116T12', '20261116T11', '20261116T10', '20261115T23']);
    expect(kept(hourly(96), 130)).toHaveLength(5);
  });

  test('retention: the store has become small by mistake -> the large ones from before stay', () => {
    const all = [...hourly(3, 1), ...hourly(96, 100).slice(24)];
    expect(kept(all, 1)).toEqual([
      '20261116T12',
      '20261116T11',
      '20261116T10',
      '20261115T12',
      '20261114T23',
      '20261113T23',
    ]);
  });

  test('retention: whatever there is -> never more than four sizes, always the newest', () => {
    for (const count of [1, 2, 3, 5, 50, 500]) {
      for (const storeBytes of [0, 50, 100, 1000]) {
        const all = hourly(count);
        const excess = new Set(excessSnapshots(all, storeBytes));
        const rest = all.filter((one) => !excess.has(one));
        expect(rest[0]).toBe(all[0]);
        expect(rest.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)).toBeLessThanOrEqual(
          4 * Math.max(100, storeBytes),
        );
      }
    }
  });

  test('retention: names -> time and revision, newest first; other files are left alone', () => {
    const name = snapshotFileName(Date.UTC(2026, 10, 16, 13, 52, 7), 1234);
    expect(name).toBe('20261116T135207Z-1234.snapshot');
    const older = snapshotFileName(now - dayMs, 99);
    const others = ['notes.txt', `${name}.tmp`, 'my.snapshot', '20261116T135207Z-1234.snapshot.part'];
    const files = [older, ...others, name].map((one) => ({ name: one, sizeBytes: 7 }));
    expect(snapshotsIn(files).map((one) => one.name)).toEqual([name, older]);
    expect(snapshotsIn(files)[0]).toEqual({
      name,
      takenMs: Date.UTC(2026, 10, 16, 13, 52, 7),
      revision: 1234,
      sizeBytes: 7,
    });
  });
});

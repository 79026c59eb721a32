import { describe, expect, test } from 'vitest';
import { OwnRenewals } from './own-renewals.ts';

function renewed(...list: readonly [revision: number, atMs: number][]): OwnRenewals {
  const renewals = new OwnRenewals();
  for (const [revision, atMs] of list) renewals.acknowledged(revision, atMs);
  return renewals;
}

const at = (nowMs: number) => ({ nowMs, gapMsMax: 20_000 });

describe('own renewals', () => {
  test('own renewals: a record older than three of ours -> unchanged since the first of them', () => {
    const renewals = renewed([10, 0], [20, 10_000], [30, 20_000], [40, 30_000]);
    expect(renewals.unchangedMs(15, at(35_000))).toBe(25_000);
    expect(renewals.unchangedMs(35, at(35_000))).toBe(5_000);
  });

  test('own renewals: a record newer than ours, or none at all -> nothing is proven', () => {
    const renewals = renewed([10, 0], [20, 10_000]);
    for (const revision of [21, Number.NaN]) expect(renewals.unchangedMs(revision, at(12_000))).toBe(0);
    expect(new OwnRenewals().unchangedMs(1, at(12_000))).toBe(0);
  });

  test('own renewals: we were away in between -> only the time since we are back counts', () => {
    const renewals = renewed([10, 0], [20, 10_000], [30, 90_000], [40, 100_000]);
    expect(renewals.unchangedMs(5, at(105_000))).toBe(15_000);
    expect(renewals.unchangedMs(5, at(200_000))).toBe(0);
  });

  test('own renewals: the broker counts from an older revision -> what was proven before is forgotten', () => {
    const renewals = renewed([100, 0], [200, 10_000], [150, 20_000]);
    expect(renewals.unchangedMs(50, at(25_000))).toBe(5_000);
  });

  test('own renewals: of no revision, or forgotten -> nothing is proven', () => {
    const renewals = renewed([10, 0], [20, 10_000], [0, 12_000]);
    expect(renewals.unchangedMs(-1, at(12_000))).toBe(0);
    renewals.acknowledged(30, 13_000);
    expect(renewals.unchangedMs(5, at(14_000))).toBe(1_000);
    renewals.forget();
    expect(renewals.unchangedMs(5, at(14_000))).toBe(0);
  });

  test('own renewals: very many -> the latest 64 are kept', () => {
    const list = Array.from({ length: 100 }, (_, index) => [index + 1, index * 1000] as [number, number]);
    expect(renewed(...list).unchangedMs(0, at(99_000))).toBe(63_000);
  });
});

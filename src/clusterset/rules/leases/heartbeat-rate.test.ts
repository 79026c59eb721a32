import { expect, test } from 'vitest';
import { readSetPolicy } from '../set-policy.ts';
import { overdueMs, timesFor } from './heartbeat-rate.ts';

const times = readSetPolicy(undefined).lease;

test('heartbeat rate: up to fifty members -> the times of the clusterset', () => {
  for (const count of [0, 1, 10, 50]) expect(timesFor(times, count)).toBe(times);
});

test('heartbeat rate: more members -> all together renew ten times a second, and a lease lasts three renewals', () => {
  for (const count of [200, 500, 5000]) {
    const { renewMs, leaseMs, renewalGapMsMax } = timesFor(times, count);
    expect(count / (renewMs / 1000)).toBeCloseTo(10);
    expect([leaseMs, renewalGapMsMax]).toEqual([3 * renewMs, 2 * renewMs]);
  }
});

test('heartbeat rate: a hundred members -> they renew less often, and leases last as long as in a small set', () => {
  expect(timesFor(times, 100)).toMatchObject({ renewMs: 10_000, leaseMs: 30_000, renewalGapMsMax: 20_000 });
});

test.each([
  [5, 30, 12],
  [1, 30, 10],
  [2, 6, 6],
  [10, 30, 24],
  [50, 150, 120],
])('overdue: renewed every %d s, expires after %d s -> silent after %d s', (renew, lease, wanted) => {
  expect(overdueMs({ renewMs: renew * 1000, leaseMs: lease * 1000 })).toBe(wanted * 1000);
});

import { expect, test } from 'vitest';
import { readSetPolicy } from '../set-policy.ts';
import { timesFor } from './heartbeat-rate.ts';

const times = readSetPolicy(undefined).lease;

test('heartbeat rate: up to a hundred members -> the times of the clusterset', () => {
  for (const count of [0, 1, 10, 100]) expect(timesFor(times, count)).toBe(times);
});

test('heartbeat rate: more members -> all together renew ten times a second, and leases grow alike', () => {
  for (const count of [200, 500, 5000]) {
    const { renewMs, leaseMs, renewalGapMsMax } = timesFor(times, count);
    expect(count / (renewMs / 1000)).toBeCloseTo(10);
    expect([leaseMs, renewalGapMsMax]).toEqual([3 * renewMs, 2 * renewMs]);
  }
});

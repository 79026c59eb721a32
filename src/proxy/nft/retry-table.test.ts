import { expect, test } from 'vitest';
import { parseRange } from '../../base/net/ip.ts';
import { retryAfter, retryScript } from './retry-table.ts';

test.each([
  [0, 1],
  [800, 1],
  [801, 2],
  [1_600, 2],
  [1_601, 4],
  [60_000, 4],
])('the farthest cluster is %d ms away -> the kernel forgets attempts after %d s', (longestRttMs, seconds) => {
  expect(retryAfter(longestRttMs)).toBe(seconds);
});

test('another time -> an object of its own, and rules that name it alone; no object is deleted', () => {
  const script = retryScript([parseRange('243.0.0.0/8')!], 2);
  expect(script.split('\n').filter((line) => line.includes(' rule '))).toEqual([
    'add rule inet portolan-retry prerouting ip daddr 243.0.0.0/8 meta l4proto tcp ct state new ct timeout set "ip-after-2"',
    'add rule inet portolan-retry output ip daddr 243.0.0.0/8 meta l4proto tcp ct state new ct timeout set "ip-after-2"',
  ]);
  expect(script).toContain('ip-after-2 { protocol tcp; l3proto ip; policy = { syn_sent : 2 }; }');
  expect(script).not.toMatch(/delete|after-1/);
});

import { expect, test } from 'vitest';
import { describePath, Paths, probeWaitMs } from './paths.ts';

const after = (...probes: readonly (readonly [tookMs: number, isSecond?: boolean])[]) => {
  const paths = new Paths();
  for (const [tookMs, isSecond = false] of probes) paths.note('west', { tookMs, isSecond });
  return paths;
};
const described = (paths: Paths) =>
  Object.fromEntries([...paths.entries()].map(([id, path]) => [id, describePath(path)]));

test('distance -> the least of the last probes, so that load does not count; a longer way counts after a while', () => {
  expect(after([12], [300], [10.04]).rttMs('west')).toBe(10.04);
  expect(after([10], ...Array.from({ length: 8 }, () => [200] as const)).rttMs('west')).toBe(200);
  expect(after().rttMs('west')).toBeUndefined();
});

test('slow and lossy -> called so, from ten probes on', () => {
  const lossy = Array.from({ length: 10 }, (_, index) => [5, index % 2 === 0] as const);
  expect(described(after(...lossy))).toEqual({ west: { rttMs: 5, lost: '5 of 10', called: 'lossy' } });
  expect(described(after([700], [710, true]))).toEqual({ west: { rttMs: 700, lost: '1 of 2', called: 'slow' } });
});

test('a probe waits for an answer to its second attempt, also from far away', () => {
  for (const rttMs of [1, 200, 700]) expect(probeWaitMs(rttMs) / 2).toBeGreaterThanOrEqual(rttMs);
});

test('a cluster is suddenly farther away than a probe would have waited -> believed at once, and a nearer one too', () => {
  expect(after([10], [12], [800]).rttMs('west')).toBe(800);
  expect(after([10], [800], [900], [805]).rttMs('west')).toBe(800);
  expect(after([10], [800], [11]).rttMs('west')).toBe(11);
  expect(after([10], [600]).rttMs('west')).toBe(10);
});

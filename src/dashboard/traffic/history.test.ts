import { expect, test } from 'vitest';
import { History } from './history.ts';

const hourMs = 3_600_000;

test('history: noted every ten seconds for two days -> the last hour and the last day, and no more', () => {
  const history = new History();
  for (let atMs = 0; atMs <= 48 * hourMs; atMs += 10_000) history.note('east', { connections: atMs / hourMs }, atMs);
  const nowMs = 48 * hourMs;
  const hour = history.read('east', { measure: 'connections', range: 'hour', nowMs });
  expect(hour).toHaveLength(360);
  expect(hour[0]).toBeCloseTo(47, 1);
  expect(hour.at(-1)).toBeCloseTo(48, 1);
  const day = history.read('east', { measure: 'connections', range: 'day', nowMs });
  expect(day).toHaveLength(720);
  expect(day[0]).toBeCloseTo(24, 0);
});

test('history: nothing was read for a while, or of that measure -> a gap, not a zero', () => {
  const history = new History();
  history.note('east', { connections: 5 }, 1_000_000);
  history.note('east', { connections: 7, failures: Number.NaN }, 1_060_000);
  const points = history.read('east', { measure: 'connections', range: 'hour', nowMs: 1_065_000 });
  expect(points.slice(-8)).toEqual([null, 5, null, null, null, null, null, 7]);
  expect(
    history.read('east', { measure: 'failures', range: 'hour', nowMs: 1_065_000 }).every((one) => one === null),
  ).toBe(true);
  expect(history.read('west', { measure: 'failures', range: 'hour', nowMs: 1_065_000 })).toEqual([]);
});

test('history: more clusters than it holds -> those that came first stay, and it does not grow', () => {
  const history = new History();
  for (let n = 0; n < 1_000; n += 1) history.note(`c${n}`, { connections: 1 }, 1_000);
  const known = Array.from({ length: 1_000 }, (_, n) =>
    history.read(`c${n}`, { measure: 'connections', range: 'day', nowMs: 1_000 }),
  );
  expect(known.filter((points) => points.length > 0)).toHaveLength(300);
});

// Moments as people read them.

import { expect, test } from 'vitest';
import { formatMoment } from './elapsed.ts';

const nowMs = Date.parse('2026-05-01T10:00:00Z');
const hourMs = 3_600_000;

test.each([
  ['a day ahead, less a few milliseconds', 24 * hourMs - 30, 'in 24h (2026-05-02T09:59:59Z)'],
  ['a minute ahead', 60_000, 'in 60s (2026-05-01T10:01:00Z)'],
  ['three days ago', -72 * hourMs, '3d ago (2026-04-28T10:00:00Z)'],
  ['now', 0, '0s ago (2026-05-01T10:00:00Z)'],
])('a moment: %s -> %s %s', (_what, offsetMs, text) => {
  expect(formatMoment(nowMs + offsetMs, nowMs)).toBe(text);
});

test('a moment that nobody can read -> said so', () => {
  expect(formatMoment(Number.NaN, nowMs)).toBe('at an unknown time');
});

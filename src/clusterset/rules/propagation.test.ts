import { expect, test } from 'vitest';
import { propagationSeconds } from '../../base/propagation-time.ts';
import {
  ImportedRecords,
  importableSinceAnnotations,
  importableSinceMs,
  readImportableSinceMs,
} from './propagation.ts';

const at = (time: string) => `2026-01-01T${time}Z`;

test.each([
  ['exported last', at('10:00:00'), at('08:00:00'), at('09:00:00'), at('10:00:00')],
  ['joined after the export', at('10:00:00'), at('11:00:00'), undefined, at('11:00:00')],
  ['got the namespace after the export', at('10:00:00'), at('08:00:00'), at('12:00:00'), at('12:00:00')],
  ['an export without a time', '', at('08:00:00'), undefined, undefined],
])('propagation: %s -> counts from %s', (_case, exportedAt, memberSince, namespaceSince, since) => {
  const ms = importableSinceMs({ exportedAt, memberSince, namespaceSince });
  expect(ms).toBe(since === undefined ? undefined : Date.parse(since));
  expect(readImportableSinceMs(importableSinceAnnotations(ms))).toBe(ms);
});

test.each([
  [1_000, 3_500, 2.5],
  [5_000, 1_000, 0],
  [0, 1e12, 86_400],
])('propagation: since %d ms, now %d ms -> %d s', (sinceMs, nowMs, seconds) => {
  expect(propagationSeconds(sinceMs, nowMs)).toBe(seconds);
});

test('propagation: annotations that are null or no time -> unknown', () => {
  expect(readImportableSinceMs(null)).toBeUndefined();
  expect(readImportableSinceMs({ 'portolan.dev/importable-since': 'soon' })).toBeUndefined();
});

const checkout = { namespace: 'shop', name: 'checkout' };

test('imported records: the same record again, after that of another cluster -> not new', () => {
  const records = new ImportedRecords();
  expect(['east', 'west', 'east'].map((cluster) => records.isNew(checkout, cluster, 'u1'))).toEqual([
    true,
    true,
    false,
  ]);
});

test('imported records: one service is exported again and again -> each is new, and one is kept', () => {
  const records = new ImportedRecords();
  for (let round = 0; round < 1000; round += 1) expect(records.isNew(checkout, 'east', `u${round}`)).toBe(true);
  expect(records.size).toBe(1);
});

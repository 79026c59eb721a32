import { expect, test } from 'vitest';
import { restoredAnnotations, restoreNoticed } from './broker-restore.ts';

test('broker restored: noticed -> told for an hour, and read back', () => {
  const noticedMs = Date.parse('2026-01-01T00:00:00Z');
  const annotations = restoredAnnotations(noticedMs, noticedMs + 3_600_000);
  const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'l', annotations } };
  expect(restoreNoticed(lease)).toBe('2026-01-01T00:00:00Z');
  expect(restoredAnnotations(noticedMs, noticedMs + 3_600_001)).toEqual({});
  expect(restoredAnnotations(undefined, 0)).toEqual({});
  expect(restoreNoticed(undefined)).toBeUndefined();
});

// The small rules about one member's lease: which of two counts, which members hold up a move, and what it tells people.

import { expect, test } from 'vitest';
import type { Lease } from '../../../kube/objects/lease.ts';
import { restoredAnnotations, restoreNoticed } from './broker-restore.ts';
import { holdingUpMove } from './layout-readers.ts';
import { newerLease } from './newer-lease.ts';

const lease = (resourceVersion: string, more: Partial<Lease> = {}): Lease => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'l', resourceVersion },
  ...more,
});

test('newer lease: two -> the one that was stored last, by number; one -> that one; none -> none', () => {
  const [nine, ten] = [lease('9'), lease('10')];
  expect(newerLease(nine, ten)).toBe(ten);
  expect(newerLease(ten, nine)).toBe(ten);
  expect(newerLease(nine, undefined)).toBe(nine);
  expect(newerLease(undefined, ten)).toBe(ten);
  expect(newerLease(undefined, undefined)).toBeUndefined();
});

test('move to another layout: agents that do not read it hold it up; those that never ran do not', () => {
  const reading = (reads: string) => ({ lease: lease('1', { spec: { reads } as Lease['spec'] }) });
  const [old, none, ready] = [{ lease: lease('1') }, { lease: undefined }, reading('AllNamespaces')];
  expect(holdingUpMove('AllNamespaces', [old, none, ready, reading('PerMember')])).toEqual([old, reading('PerMember')]);
  expect(holdingUpMove('PerMember', [old, none, ready])).toEqual([]);
});

test('broker restored: noticed -> told for an hour, and read back', () => {
  const noticedMs = Date.parse('2026-01-01T00:00:00Z');
  const told = restoredAnnotations(noticedMs, noticedMs + 3_600_000);
  expect(restoreNoticed(lease('1', { metadata: { name: 'l', annotations: told } }))).toBe('2026-01-01T00:00:00Z');
  expect(restoredAnnotations(noticedMs, noticedMs + 3_600_001)).toEqual({});
  expect(restoredAnnotations(undefined, 0)).toEqual({});
  expect(restoreNoticed(undefined)).toBeUndefined();
});

import { describe, expect, test } from 'vitest';
import type { Lease } from './lease.ts';
import { partLeaseName, partState } from './part-lease.ts';

const nowMs = Date.parse('2026-05-01T12:00:00Z');

describe('part state', () => {
  test.each([
    ['renewed 29 s ago', '2026-05-01T11:59:31.000000Z', 30, 'reported'],
    ['renewed 31 s ago', '2026-05-01T11:59:29.000000Z', 30, 'silent'],
    ['its clock is ahead', '2026-05-01T12:10:00.000000Z', 30, 'reported'],
    ['no valid time', 'yesterday', 30, 'silent'],
    ['no time', undefined, 30, 'silent'],
    ['no duration', '2026-05-01T11:59:31.000000Z', undefined, 'reported'],
    ['a duration that is no number', '2026-05-01T11:00:00.000000Z', 'x', 'silent'],
  ])('part state: %s -> as expected', (_what, renewTime, leaseDurationSeconds, kind) => {
    const lease = { metadata: { name: 'x' }, spec: { renewTime, leaseDurationSeconds } } as unknown as Lease;
    expect(partState(lease, nowMs).kind).toBe(kind);
  });
});

test('part lease name: a node with a valid name -> that name behind the part', () => {
  expect(partLeaseName('proxy', 'node-1')).toBe('portolan-proxy-node-1');
});

test.each(['Node_1.Example', '..a..', '', '-', 'a.-b', 'x'.repeat(300)])(
  'part lease name: a node named %j -> a valid name',
  (id) => {
    expect(partLeaseName('proxy', id)).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);
    expect(partLeaseName('proxy', id).length).toBeLessThan(254);
  },
);

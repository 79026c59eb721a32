import { describe, expect, test } from 'vitest';
import type { Lease } from './lease.ts';
import { isForgotten, partLeaseName, partState } from './part-lease.ts';
import { partStatuses } from './part-status.ts';

const nowMs = Date.parse('2026-05-01T12:00:00Z');

describe('part state', () => {
  test.each([
    ['renewed 29 s ago', '2026-05-01T11:59:31.000000Z', 30, 'reported'],
    ['renewed 31 s ago', '2026-05-01T11:59:29.000000Z', 30, 'silent'],
    ['its clock is ahead', '2026-05-01T12:10:00.000000Z', 30, 'reported'],
    ['no valid time', 'yesterday', 30, 'silent'],
    ['no time', undefined, 30, 'silent'],
    ['no duration', '2026-05-01T11:59:49.000000Z', undefined, 'reported'],
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

test.each([
  ['silent for a minute', { renewTime: '2026-05-01T11:59:00.000000Z' }, false],
  ['silent since Friday', { renewTime: '2026-04-28T12:00:01.000000Z' }, false],
  ['silent for more than three days', { renewTime: '2026-04-28T11:59:59.000000Z' }, true],
  ['its clock is ahead', { renewTime: '2027-01-01T00:00:00.000000Z' }, false],
  ['it never reported, made long ago', { creationTimestamp: '2026-04-01T00:00:00Z' }, true],
  ['no valid times', { renewTime: 'yesterday', creationTimestamp: 'never' }, false],
])(
  'part lease: %s -> forgotten or not',
  (_what, { renewTime, creationTimestamp }: Record<string, string>, expected) => {
    const lease = { metadata: { name: 'x', creationTimestamp }, spec: { renewTime } } as unknown as Lease;
    expect(isForgotten(lease, nowMs)).toBe(expected);
  },
);

test('part status: one just died, one was removed a week ago -> the first is silent, the second is not shown', () => {
  const lease = (name: string, renewTime: string) =>
    ({ metadata: { name, labels: { 'portolan.dev/part': 'dns' } }, spec: { renewTime } }) as unknown as Lease;
  const all = [lease('died', '2026-05-01T11:58:00.000000Z'), lease('removed', '2026-04-24T12:00:00.000000Z')];
  expect(partStatuses(all, nowMs)).toMatchObject([
    { part: 'dns', node: 'died', state: 'silent', reportedAgoMs: 120_000 },
  ]);
});

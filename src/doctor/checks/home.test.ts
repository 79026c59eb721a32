import { expect, test } from 'vitest';
import type { Lease } from '../../kube/objects/lease.ts';
import { partStatuses } from '../../kube/objects/part-status.ts';
import type { ClusterFacts } from '../facts.ts';
import { homeChecks } from './home.ts';

const nowMs = Date.parse('2026-05-01T12:00:00Z');
const leaseOf = (part: string, aheadMs: number) =>
  ({
    metadata: {
      name: `portolan-${part}-n1`,
      labels: { 'portolan.dev/part': part },
      annotations: { 'portolan.dev/node': 'n1' },
    },
    spec: { renewTime: new Date(nowMs + aheadMs).toISOString(), leaseDurationSeconds: 12 },
  }) as unknown as Lease;

function factsOf(aheadMs: number, clockOffMs = 0): ClusterFacts {
  const state = { members: [{ id: 'east', lease: leaseOf('agent', aheadMs), leaseReadMs: nowMs }] };
  return {
    ...{ nowMs, server: 'https://west' },
    health: { value: { status: 200, text: 'ok', clockOffMs } },
    parts: { value: partStatuses([leaseOf('dns', aheadMs)], nowMs) },
    broker: { value: { kind: 'answers', set: { state, refused: [], behind: [] } } },
  } as unknown as ClusterFacts;
}

const told = (facts: ClusterFacts) =>
  (homeChecks.PTL0701!(facts) as { subject: string; message: string }[]).map(
    ({ subject, message }) => `${subject}: ${message}`,
  );

test.each([
  ['reports of a moment ago', factsOf(-4_000), []],
  ['a clock that is a little ahead', factsOf(4_000), []],
  [
    'reports from two minutes ahead',
    factsOf(120_000),
    [
      "dns on n1: its clock is 2m ahead of this machine's, by its last report",
      "agent of cluster east: its clock is 2m ahead of this machine's, by its last report",
    ],
  ],
  [
    'the clock of this machine is two minutes behind',
    factsOf(120_000, 120_000),
    ["https://west: its clock is 2m ahead of this machine's"],
  ],
])('clocks: %s -> told of each that is off', (_what, facts, expected) => expect(told(facts)).toEqual(expected));

test.each([
  ['PTL0703', 24 * 3_600_000, 'it ends in 24h (2026-05-02T12:00:00Z)'],
  ['PTL0702', -72 * 3_600_000, 'it expired 3d ago (2026-04-28T12:00:00Z)'],
] as const)('%s: a certificate -> its end as people read it', (code, leftMs, message) => {
  const life = { subject: 'certificate of proxy p', startMs: nowMs - 90 * 86_400_000, endMs: nowMs + leftMs };
  const facts = { nowMs, certificates: { value: [life] } } as unknown as ClusterFacts;
  expect(homeChecks[code]!(facts)).toEqual([{ subject: life.subject, message }]);
});

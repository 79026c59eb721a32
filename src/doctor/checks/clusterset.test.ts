import { expect, test } from 'vitest';
import { readSetPolicy } from '../../clusterset/rules/set-policy.ts';
import type { Found } from '../diagnosis.ts';
import type { ClusterFacts } from '../facts.ts';
import { clusterSetChecks } from './clusterset.ts';

const nowMs = Date.parse('2026-05-01T12:00:00Z');
const hourMs = 3_600_000;
const time = (atMs: number) => new Date(atMs).toISOString();

function heard({ readAgoMs, renewedAgoMs }: { readAgoMs: number; renewedAgoMs: number }): ClusterFacts {
  const lease = { spec: { renewTime: time(nowMs - renewedAgoMs), leaseDurationSeconds: 15 } };
  const member = { id: 'east', verdict: 'alive', lease, leaseReadMs: nowMs - readAgoMs };
  const state = { policy: readSetPolicy(undefined), members: [member] };
  return {
    nowMs,
    parts: { value: [] },
    broker: { value: { kind: 'answers', set: { state, refused: [], behind: [] } } },
  } as unknown as ClusterFacts;
}

test.each([
  ['read 30 s ago, renewed 2 s before that', { readAgoMs: 30_000, renewedAgoMs: 32_000 }, []],
  ['read 30 s ago, renewed 1 s ago', { readAgoMs: 30_000, renewedAgoMs: 1_000 }, []],
  [
    'read 30 s ago, renewed 20 s before that',
    { readAgoMs: 30_000, renewedAgoMs: 50_000 },
    ['agent of cluster east: it has not renewed its lease for 20s, since 2026-05-01T11:59:10Z'],
  ],
])('PTL0202: a lease that was %s -> judged by when it was read', (_what, ages, expected) => {
  const found = clusterSetChecks.PTL0202!(heard(ages)) as Found[];
  expect(found.map(({ subject, message, since }) => `${subject}: ${message}, since ${since}`)).toEqual(expected);
});

function credentials(issuedMs: number, endMs: number): ClusterFacts {
  const membership = { clusterId: 'west', tokenIssuedAt: time(issuedMs), tokenExpiresAt: time(endMs) };
  return {
    nowMs,
    membership: { value: membership },
    broker: { value: { kind: 'answers' } },
  } as unknown as ClusterFacts;
}

test.each([
  ['fresh', credentials(nowMs - hourMs, nowMs + 24 * hourMs), []],
  [
    'near their end',
    credentials(nowMs - 48 * hourMs, nowMs + 24 * hourMs),
    ['they end in 24h (2026-05-02T12:00:00Z) and were not renewed'],
  ],
  ['expired', credentials(nowMs - 96 * hourMs, nowMs - 72 * hourMs), ['they expired 3d ago (2026-04-28T12:00:00Z)']],
])('PTL0204: credentials that are %s -> the time that is left, as people read it', (_what, facts, expected) => {
  expect((clusterSetChecks.PTL0204!(facts) as Found[]).map(({ message }) => message)).toEqual(expected);
});

import { expect, test } from 'vitest';
import { formatTime } from '../../kube/objects/conditions.ts';
import type { PeerOwnerStatus } from '../kinds/peer.ts';
import type { ConsumerReport } from './owner.ts';
import { ReplicaClaims } from './replica-claims.ts';

function setUp(isReplicated: boolean) {
  const facts = { nowMs: 1_000_000, report: undefined as ConsumerReport | undefined, written: {} as PeerOwnerStatus };
  const claims = new ReplicaClaims({
    isReplicated,
    wallMs: () => facts.nowMs,
    report: () => facts.report,
    written: () => facts.written,
  });
  return { facts, claims };
}

const streamOf = (sinceMs: number) => ({ sinceMs }) as ConsumerReport;
const said = (sinceMs: number, heardMs: number): PeerOwnerStatus => ({
  state: 'Synced',
  since: formatTime(sinceMs),
  lastContact: formatTime(heardMs),
});

test('replica claims: this one has the stream, then loses it -> it tells both', () => {
  const { facts, claims } = setUp(true);
  facts.report = streamOf(990_000);
  expect(claims.mayTell('acme')).toBe(true);
  facts.written = said(990_000, 1_000_000);
  facts.report = undefined;
  expect(claims.mayTell('acme')).toBe(true);
  expect(claims.isServedElsewhere('acme')).toBe(false);
});

test('replica claims: another one has the stream -> its word stands; it falls silent -> whoever is left says so', () => {
  const { facts, claims } = setUp(true);
  facts.written = said(995_000, 1_000_000);
  expect(claims.isServedElsewhere('acme')).toBe(true);
  expect(claims.mayTell('acme')).toBe(false);
  facts.nowMs += 91_000;
  expect(claims.isServedElsewhere('acme')).toBe(false);
  expect(claims.mayTell('acme')).toBe(true);
});

test('replica claims: nobody ever had a stream -> nothing to say', () => {
  const { facts, claims } = setUp(true);
  expect(claims.mayTell('acme')).toBe(false);
  facts.written = { state: 'Idle' };
  expect(claims.mayTell('acme')).toBe(false);
});

test('replica claims: the only process, restarted -> what the last one said is put right at once', () => {
  const { facts, claims } = setUp(false);
  facts.written = said(995_000, 1_000_000);
  expect(claims.isServedElsewhere('acme')).toBe(false);
  expect(claims.mayTell('acme')).toBe(true);
});

import { expect, test } from 'vitest';
import type { ClusterFacts } from '../facts.ts';
import { peeringChecks } from './peering.ts';

const nowMs = Date.parse('2026-05-01T12:00:00Z');

const told = (retentionSeconds: number | undefined): string => {
  const consumer = { state: 'Stale', services: 3, awaySeconds: 3600, lastContact: '2026-05-01T11:00:00Z' };
  const peer = {
    metadata: { namespace: 'portolan-system', name: 'acme' },
    spec: { retentionSeconds },
    status: { consumer },
  };
  const facts = { nowMs, peers: { value: [peer] } } as unknown as ClusterFacts;
  return (peeringChecks.PTL0603!(facts) as readonly { message: string }[]).map(({ message }) => message).join();
};

test.each([
  [undefined, 'it is away; its 3 services are withdrawn in 23h'],
  [7200, 'it is away; its 3 services are withdrawn in 60m'],
  [60, 'it is away; its 3 services are withdrawn in 0s'],
  [0, 'it is away; its 3 services stay'],
])('doctor: a peer that is away, retention of %s s -> %s', (retentionSeconds, message) => {
  expect(told(retentionSeconds)).toContain(message);
});

// The status of a Peer in both directions: never Synced without a stream.

import { expect, test } from 'vitest';
import type { LinkReport } from '../consumer/consumer-link.ts';
import type { PeerExport } from '../kinds/peer-export.ts';
import type { ConsumerReport } from '../owner/owner.ts';
import type { LinkState } from '../session/connection.ts';
import { consumerStatus, exportStatus, ownerStatus } from './peer-status.ts';

const nowMs = Date.UTC(2026, 0, 1, 12);

function link(state: LinkState, changes: Partial<LinkReport> = {}): LinkReport {
  return {
    ...{ state, version: 'v1alpha1', mode: 'exact', services: 3, unacknowledged: 0, behindSinceMs: undefined },
    ...{ keepAliveMs: 10_000, suspects: 0 },
    ...{ aliveMs: nowMs - 1000, fullSyncMs: nowMs - 60_000, staleSinceMs: undefined, awayMs: 0 },
    refusals: { size: 0, newest: () => [] } as unknown as LinkReport['refusals'],
    ...changes,
  };
}

const away: LinkState = { kind: 'backingOff', reason: 'connection reset', delayMs: 1000 };
const refused: LinkState = { kind: 'stopped', code: 16, reason: 'no certificate' };

test.each<[string, string, LinkReport]>([
  ['waits for changes', 'Synced', link({ kind: 'waiting' })],
  ['stores a change', 'Synced', link({ kind: 'updating' })],
  ['gets its first catalog', 'Syncing', link({ kind: 'receiving' }, { fullSyncMs: undefined })],
  ['is back after an outage', 'Syncing', link({ kind: 'receiving' }, { staleSinceMs: nowMs - 5000 })],
  ['dials after an outage', 'Stale', link({ kind: 'dialing' }, { staleSinceMs: nowMs - 5000 })],
  ['backs off', 'Stale', link(away, { staleSinceMs: nowMs - 5000 })],
  ['backs off and holds nothing', 'Connecting', link(away, { services: 0 })],
  ['dials for the first time', 'Connecting', link({ kind: 'dialing' }, { fullSyncMs: undefined, aliveMs: undefined })],
  ['was refused', 'Refused', link(refused, { staleSinceMs: nowMs - 5000 })],
])('peer status: taking, the link %s -> %s', (_name, state, report) => {
  expect(consumerStatus(report, nowMs).state).toBe(state);
});

test('peer status: taking -> the mode in force, suspects, pings, lag in services and seconds, when it was last heard and last complete', () => {
  const behind = link(
    { kind: 'updating' },
    {
      ...{ unacknowledged: 4, behindSinceMs: nowMs - 7000, mode: 'quiescence' },
      ...{ suspects: 2, keepAliveMs: 45_000 },
    },
  );
  expect(consumerStatus(behind, nowMs)).toMatchObject({
    ...{ lag: 4, lagSeconds: 7, unacknowledged: 4, reconciliation: 'Quiescence', suspects: 2, keepAliveSeconds: 45 },
    ...{ lastContact: '2026-01-01T11:59:59Z', lastFullSync: '2026-01-01T11:59:00Z' },
  });
  expect(consumerStatus(link(refused), nowMs).message).toBe('no certificate');
  expect(consumerStatus(link({ kind: 'waiting' }), nowMs).reconciliation).toBe('Marker');
});

test('peer status: giving -> Idle without a stream; Synced only when everything is answered', () => {
  const stream = {
    ...{ peer: 'acme', identity: 'spiffe://acme.example/mesh', version: 'v1alpha1', state: 'sending', lag: 2 },
    ...{ sinceMs: nowMs - 90_000, aliveMs: nowMs - 2000, behindSinceMs: nowMs - 3000, unacknowledged: 1 },
    ...{ fullSyncMs: undefined, refusals: new Map([['db', { id: 'db', code: 3, reason: 'san: Required value' }]]) },
    notes: new Map(),
    snapshotRefused: '',
    isPending: () => false,
  } as unknown as ConsumerReport;
  expect(ownerStatus(undefined, 5, nowMs)).toMatchObject({ state: 'Idle', services: 5 });
  expect(ownerStatus(stream, 5, nowMs)).toMatchObject({
    ...{ state: 'Syncing', services: 5, refused: 1, lag: 2, lagSeconds: 3, unacknowledged: 1 },
    ...{ identity: 'spiffe://acme.example/mesh', since: '2026-01-01T11:58:30Z', lastContact: '2026-01-01T11:59:58Z' },
    refusals: [{ id: 'db', reason: 'san: Required value' }],
  });
  expect(ownerStatus({ ...stream, state: 'waiting' }, 5, nowMs).state).toBe('Synced');
});

test('peer status: giving, the peer refuses the end of its snapshot, or everything -> not Synced, and why', () => {
  const stream = {
    ...{ peer: 'acme', identity: 'i', version: 'v1alpha1', state: 'waiting', lag: 0, sinceMs: nowMs, aliveMs: nowMs },
    ...{ unacknowledged: 0, notes: new Map(), refusals: new Map(), snapshotRefused: '' },
  } as unknown as ConsumerReport;
  const refusals = new Map(['a', 'b'].map((id) => [id, { id, code: 3, reason: 'no' }]));
  expect(ownerStatus(stream, 2, nowMs)).toMatchObject({ state: 'Synced', message: '' });
  expect(ownerStatus({ ...stream, snapshotRefused: 'older than 7' }, 2, nowMs)).toMatchObject({
    state: 'Syncing',
    message: expect.stringContaining('older than 7'),
  });
  expect(ownerStatus({ ...stream, refusals }, 2, nowMs)).toMatchObject({
    state: 'Refused',
    message: 'the peer refused 2 of 2 services',
  });
  expect(ownerStatus({ ...stream, refusals }, 3, nowMs)).toMatchObject({
    state: 'Synced',
    message: 'the peer refused 2 of 3 services',
  });
});

test('export status: a PeerExport that selects no Service, its peer connected -> Pending, never Acknowledged', () => {
  const peerExport = {
    metadata: { name: 'all', namespace: 'shop' },
    spec: { peers: ['west'] },
  } as unknown as PeerExport;
  const report = { refusals: new Map(), notes: new Map(), isPending: () => false } as unknown as ConsumerReport;
  const found = exportStatus({
    ...{ peerExport, shares: [], report: () => report, offered: () => undefined },
    ...{ isKnown: () => true, isServedElsewhere: () => false, ingressProblem: '' },
  });
  expect(found).toMatchObject({
    reason: 'NothingSelected',
    peers: [{ peer: 'west', state: 'Pending', message: 'nothing to share: it selects no Service' }],
  });
});

test('export status: several peers -> their states in one line, the first ten of many', () => {
  const peers = Array.from({ length: 12 }, (_, index) => `p${index}`);
  const peerExport = { metadata: { name: 'all', namespace: 'shop' }, spec: { peers } } as unknown as PeerExport;
  const found = (of: readonly string[]) =>
    exportStatus({
      ...{ peerExport: { ...peerExport, spec: { peers: [...of] } }, shares: [], report: () => undefined },
      ...{ offered: () => undefined, isKnown: () => true, isServedElsewhere: () => false, ingressProblem: '' },
    });
  expect(found(['acme', 'globex']).shared).toBe('acme Pending, globex Pending');
  expect(found(peers).shared).toMatch(/^p0 Pending, .*p9 Pending, 2 more$/);
});

import { expect, test } from 'vitest';
import type { Peer } from '../model/peer.ts';
import { type PeerService, specOf } from '../model/peer-service.ts';
import { describePeer, diffCatalogs, sideHealth } from './explain.ts';
import { serviceOf } from './testing/services.ts';

const nowMs = Date.UTC(2026, 0, 1, 12);
const at = (secondsAgo: number) => new Date(nowMs - secondsAgo * 1000).toISOString();

test('health: Synced with a recent sign of life -> healthy; an old one, or none -> not', () => {
  expect(sideHealth({ state: 'Synced', lastContact: at(20) }, nowMs).isHealthy).toBe(true);
  expect(sideHealth({ state: 'Synced', lastContact: at(600) }, nowMs)).toEqual({
    isHealthy: false,
    text: 'silent for 600 s, was Synced then',
  });
  expect(sideHealth({ state: 'Synced' }, nowMs).isHealthy).toBe(false);
  expect(sideHealth(undefined, nowMs).isHealthy).toBe(false);
  expect(sideHealth({ state: 'Refused', message: 'no certificate', lastContact: at(1) }, nowMs).text).toBe(
    'Refused: no certificate',
  );
});

test('status: a peer -> what is taken and given, the mode in force, refusals with their reasons', () => {
  const peer = {
    metadata: { name: 'acme' },
    spec: { address: 'acme.example:8008', trust: { domain: 'acme.example' } },
    status: {
      consumer: {
        state: 'Synced',
        version: 'v1alpha1',
        services: 2,
        refused: 1,
        reconciliation: 'Quiescence',
        lastContact: at(5),
        refusals: [{ id: 'db', reason: 'san: Required value' }],
      },
    },
  } as unknown as Peer;
  expect(describePeer(peer, nowMs)).toEqual([
    'peer      acme',
    'address   acme.example:8008',
    'trust     acme.example',
    'taking    Synced',
    `          v1alpha1, 2 services, 1 refused, lag 0 services, 0 s, 0 unanswered, deletions by quiescence and grace, last contact ${at(5)}`,
    '          refused db: san: Required value',
    'giving    unknown: no peering process has reported it',
  ]);
});

test('diff: owner and consumer, service by service -> equal, differing fields, missing on either side, refused', () => {
  const held = (id: string, changes = {}): PeerService =>
    ({ spec: specOf('acme', serviceOf(id, changes)) }) as PeerService;
  const owner = ['a', 'b', 'c', 'd'].map((id) => ({ id, service: serviceOf(id) }));
  const refused = { spec: { peer: 'acme', id: 'd' }, status: { state: 'Refused', message: 'bad' } } as PeerService;
  expect(diffCatalogs('acme', owner, [held('a'), held('b', { tags: ['x'] }), refused, held('z')])).toEqual([
    { kind: 'equal', id: 'a' },
    { kind: 'differs', id: 'b', fields: ['tags'] },
    { kind: 'only at the owner', id: 'c' },
    { kind: 'refused here', id: 'd', reason: 'bad' },
    { kind: 'only here', id: 'z' },
  ]);
});

import { expect, test } from 'vitest';
import type { Peer } from '../kinds/peer.ts';
import { type PeerService, specHash, specHashAnnotation, specOf } from '../kinds/peer-service.ts';
import { serviceOf } from '../testing/services.ts';
import {
  describeDiff,
  describeDiffWithSent,
  describePeer,
  diffCatalogs,
  diffWithSent,
  sideHealth,
  sideSummary,
} from './explain.ts';

const nowMs = Date.UTC(2026, 0, 1, 12);
const at = (secondsAgo: number) => new Date(nowMs - secondsAgo * 1000).toISOString();

test('health: Synced with a recent sign of life -> healthy; an old one, or none -> not', () => {
  expect(sideHealth({ state: 'Synced', lastContact: at(20) }, nowMs).isHealthy).toBe(true);
  expect(sideHealth({ state: 'Synced', lastContact: at(600) }, nowMs)).toEqual({
    isHealthy: false,
    isSilent: true,
    text: 'silent for 10m, was Synced then',
  });
  expect(sideHealth({ state: 'Synced' }, nowMs).isHealthy).toBe(false);
  expect(sideHealth(undefined, nowMs).isHealthy).toBe(false);
  expect(sideHealth({ state: 'Refused', message: 'no certificate', lastContact: at(1) }, nowMs).text).toBe(
    'Refused: no certificate',
  );
});

test('status: the catalog is in step and nothing carries connections -> said beside both sides', () => {
  const condition = (type: string, reason: string) => ({ type, status: 'False', reason, message: 'why' });
  const side = { state: 'Synced', services: 1, lastContact: at(1) };
  const peer = {
    metadata: { name: 'acme' },
    spec: { address: 'acme.example:8008', trust: { domain: 'acme.example' } },
    status: {
      ...{ consumer: side, owner: side },
      conditions: [condition('ServicesReachable', 'IngressAway'), condition('IngressServed', 'IngressAway')],
    },
  } as unknown as Peer;
  expect([sideSummary(peer, 'taking', nowMs), sideSummary(peer, 'giving', nowMs)]).toEqual([
    'Synced, IngressAway',
    'Synced, IngressAway',
  ]);
  const lines = describePeer(peer, nowMs).filter((line) => line.includes('not carried'));
  expect(lines).toEqual(['          not carried: IngressAway: why', '          not carried: IngressAway: why']);
});

test('status: a peer -> what is taken and given, the mode in force, suspects, refusals with their reasons', () => {
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
        suspects: 3,
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
    `          v1alpha1, 2 services, 1 refused, lag 0 services, 0 s, 0 unanswered, deletions by quiescence and grace, 3 suspect (no longer named, going after their grace), last contact ${at(5)}`,
    '          refused db: san: Required value',
    'giving    nothing reported: the peer has not called yet',
  ]);
});

const acme = (spec: Partial<Peer['spec']> = {}, status: Peer['status'] = {}): Peer =>
  ({ metadata: { name: 'acme' }, spec: { trust: { domain: 'acme.example' }, ...spec }, status }) as Peer;

const held = (id: string, changes = {}, status: PeerService['status'] = {}): PeerService => {
  const spec = specOf('acme', serviceOf(id, changes));
  const annotations = { [specHashAnnotation]: specHash(spec) };
  return { metadata: { name: id, annotations }, spec, status } as unknown as PeerService;
};

test('diff: owner and consumer, service by service -> equal, differing fields, missing on either side, refused', () => {
  const owner = ['a', 'b', 'c', 'd'].map((id) => ({ id, service: serviceOf(id) }));
  const refused = { spec: { peer: 'acme', id: 'd' }, status: { state: 'Refused', message: 'bad' } } as PeerService;
  const differences = diffCatalogs(acme(), owner, [held('a'), held('b', { tags: ['x'] }), refused, held('z')]);
  expect(describeDiff(differences, { isAll: true })).toEqual({
    isEqual: false,
    lines: [
      'equal             a',
      'differs           b: tags',
      'only at the owner c',
      'refused here      d: bad',
      'only here         z',
      '1 equal, 4 not',
    ],
  });
});

test('diff: services that our Peer does not accept -> not wanted here, which is no difference', () => {
  const owner = [
    { id: 'a', service: serviceOf('a', { tags: ['public'] }) },
    { id: 'b', service: serviceOf('b') },
  ];
  const differences = diffCatalogs(acme({ acceptedTags: ['public'] }), owner, [held('a', { tags: ['public'] })]);
  expect(describeDiff(differences, { isAll: false })).toEqual({
    isEqual: true,
    lines: ['1 equal, 0 not, 1 not wanted here'],
  });
});

test('diff: an owner that is no Portolan -> what it sent against what is held, and what could not be compared', () => {
  const byHand = held('b');
  byHand.spec = { ...byHand.spec, description: 'changed by hand' };
  const here = [
    held('a'),
    byHand,
    held('c', {}, { state: 'Suspect', message: 'not named again' }),
    held('d', {}, { state: 'Stale', message: 'away' }),
    held('e', {}, { state: 'Refused', message: 'san: Required value' }),
  ];
  const peer = acme({}, { consumer: { lastFullSync: at(60), lastContact: at(5) } });
  expect(describeDiffWithSent(peer, diffWithSent(here), { isAll: true })).toEqual({
    isEqual: false,
    lines: [
      'peer acme is not a Portolan: it cannot list its catalog, so this is what it sent on its stream against what is held',
      `last full sync ${at(60)}, last contact ${at(5)}`,
      'as it was sent    a',
      'changed here      b',
      'suspect           c: not named again',
      'stale             d: away',
      'refused here      e: san: Required value',
      '1 equal, 4 not',
      'not compared: what it never sent, and what it changed since it was last heard of',
    ],
  });
});

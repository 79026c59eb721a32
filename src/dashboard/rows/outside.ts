// Rows of peers and external services, from their status in each home. Pure but for the copies it reads.

import type { MeshExternalService } from '../../external/kinds/mesh-external-service.ts';
import { conditionOf } from '../../kube/objects/conditions.ts';
import { type Condition, keyOf } from '../../kube/objects/object.ts';
import { reachProblem } from '../../peering/explain/explain.ts';
import { type Peer, type PeerOwnerStatus, type PeerSideStatus, peerDefaults } from '../../peering/kinds/peer.ts';
import { reachableCondition, servedCondition } from '../../peering/rules/reach.ts';
import type { HomeWatch } from '../homes/home-watch.ts';
import { differenceAnnotation } from '../homes/kinds.ts';
import type { ExternalRow, Health, PeerRow, PeerServiceRow, PeerSideRow } from '../wire/rows.ts';
import { idOf } from './landscape.ts';

const servicesShownMax = 200;

export function peerRows(watch: HomeWatch): PeerRow[] {
  return (watch.member?.peers.values() ?? []).map((peer) => {
    const cluster = idOf(watch);
    return {
      id: `${cluster}/${keyOf(peer)}`,
      cluster,
      name: peer.metadata.name,
      health: watch.isCurrent() ? healthOf(peer) : 'stale',
      taking: sideOf(peer, peer.status?.consumer, reachProblem(peer, reachableCondition)),
      giving: sideOf(peer, peer.status?.owner, reachProblem(peer, servedCondition)),
      services: servicesOf(watch, peer),
      differences: differencesOf(watch, peer.metadata.name),
    };
  });
}

function healthOf(peer: Peer): Health {
  const { status } = peer;
  const states = [status?.consumer?.state, status?.owner?.state];
  const reach = [reachProblem(peer, reachableCondition), reachProblem(peer, servedCondition)];
  if (states.includes('Refused') || reach.some((one) => one?.status === 'False')) return 'failed';
  if (states.includes('Stale') || states.includes('Connecting')) return 'stale';
  const refused = (status?.consumer?.refused ?? 0) + (status?.owner?.refused ?? 0);
  if (refused > 0) return 'conflict';
  return states.every((state) => state === undefined) || reach.some((one) => one !== undefined) ? 'unknown' : 'ok';
}

function sideOf(
  { spec }: Peer,
  side: (PeerSideStatus & PeerOwnerStatus) | undefined,
  notCarried: Condition | undefined,
): PeerSideRow | undefined {
  if (side === undefined) return undefined;
  const contactMs = Date.parse(side.lastContact ?? '');
  const away = (side as { awaySeconds?: number }).awaySeconds;
  const retention = spec.retentionSeconds ?? peerDefaults.retentionSeconds;
  return {
    state: side.state ?? 'Idle',
    message: side.message || (notCarried === undefined ? '' : `${notCarried.reason}: ${notCarried.message}`),
    services: side.services ?? 0,
    refused: side.refused ?? 0,
    lag: side.lag ?? 0,
    lagSeconds: side.lagSeconds ?? 0,
    lastContactMs: Number.isNaN(contactMs) ? undefined : contactMs,
    refusals: side.refusals ?? [],
    notes: side.notes ?? [],
    withdrawnInSeconds: side.state === 'Stale' && away !== undefined ? Math.max(0, retention - away) : undefined,
  };
}

function servicesOf({ member }: HomeWatch, peer: Peer): PeerServiceRow[] {
  const active = reachProblem(peer, reachableCondition)?.reason ?? 'Active';
  return (member?.peerServices.values() ?? [])
    .filter(({ spec }) => spec.peer === peer.metadata.name)
    .slice(0, servicesShownMax)
    .map(({ metadata, spec, status }) => ({
      name: spec.name ?? metadata.name,
      hostname: status?.hostnames?.[0] ?? spec.fqdn ?? '',
      state: status?.state === undefined || status.state === 'Active' ? active : status.state,
    }));
}

function differencesOf({ member }: HomeWatch, peer: string): string[] {
  return (member?.peerServices.values() ?? [])
    .filter(({ spec }) => spec.peer === peer)
    .flatMap(({ metadata }) => metadata.annotations?.[differenceAnnotation] ?? [])
    .slice(0, servicesShownMax);
}

export function externalRows(watch: HomeWatch): ExternalRow[] {
  return (watch.member?.external.values() ?? []).map((one) => {
    const cluster = idOf(watch);
    const { vips = [], addresses = [], overlaps = [] } = one.status ?? {};
    return {
      id: `${cluster}/${keyOf(one)}`,
      cluster,
      name: one.metadata.name,
      ...readiness(watch, one),
      matches: (one.spec.match ?? []).map(({ type, value, port, protocol }) =>
        [type, value, `port ${port}`, protocol].filter((part) => part !== undefined).join(' '),
      ),
      destination: destinationOf(one),
      vips: vips.map(({ ip, hostname }) => ({ ip, hostname })),
      unavailable: addresses
        .filter(({ status }) => status === 'NotAvailable')
        .map(({ hostname, reason = 'not available' }) => ({ hostname, reason })),
      overlaps,
    };
  });
}

function readiness(watch: HomeWatch, { status }: MeshExternalService): { health: Health; says: string } {
  if (!watch.isCurrent()) return { health: 'stale', says: 'its home does not answer' };
  for (const type of ['Accepted', 'Ready']) {
    const condition = conditionOf(status?.conditions, type);
    if (condition === undefined) return { health: 'unknown', says: 'no agent has looked at it yet' };
    const says = `${condition.reason}: ${condition.message}`;
    if (condition.status !== 'True') return { health: condition.status === 'False' ? 'failed' : 'unknown', says };
  }
  const hasOverlap = (status?.overlaps ?? []).length > 0;
  return hasOverlap ? { health: 'conflict', says: 'addresses overlap' } : { health: 'ok', says: 'ready' };
}

function destinationOf({ spec }: MeshExternalService): string {
  const { type = 'Regular', endpoints, tls, extension } = spec.destination ?? {};
  const places = (endpoints ?? []).map(({ address, port }) => (port === undefined ? address : `${address}:${port}`));
  const how = tls?.enabled ? 'over TLS' : '';
  return [type, extension?.type, places.join(', '), how].filter((part) => part).join(' ');
}

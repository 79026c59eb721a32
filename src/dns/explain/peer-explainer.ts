// Whose service of which peer stands behind a name, how well its peer vouches for it, and who else wanted the name.

import type { Clock } from '../../base/world.ts';
import type { Claimant, PeerTable } from '../../catalog/peer-table.ts';
import type { RecordSource } from './explanation.ts';

export interface ExplainedPeerName {
  readonly owner: RecordSource;
  readonly leftOut: readonly { readonly what: string; readonly why: string }[];
}

/** Undefined for a name that no peer has anything to do with. */
export function explainPeerName(peers: PeerTable, name: string, clock: Clock): ExplainedPeerName | undefined {
  const report = peers.report(name);
  const owner: RecordSource = { kind: 'zone', name: peers.zone.name };
  if (report === undefined) {
    if (!name.endsWith(`.${peers.zone.name}`)) return undefined;
    return { owner, leftOut: [{ what: name, why: 'no PeerService that was taken has this name' }] };
  }
  const { holder, others, why } = report;
  const whyNot = holder === undefined ? why : `PeerService ${holder.key} of peer ${holder.facts.peer} has this name`;
  const leftOut = others.map(({ key, facts }) => ({ what: `PeerService ${key} of peer ${facts.peer}`, why: whyNot }));
  if (holder === undefined) return { owner, leftOut };
  if (holder.facts.ips.length > 0) return { owner: sourceOf(holder, clock), leftOut };
  const noAddress = { what: `addresses of ${name}`, why: `PeerService ${holder.key} has no virtual address yet` };
  return { owner: sourceOf(holder, clock), leftOut: [noAddress, ...leftOut] };
}

function sourceOf({ key, facts }: Claimant, clock: Clock): RecordSource {
  const { peer, state, since, resourceVersion: revision, seenMs } = facts;
  return {
    kind: 'PeerService',
    name: key,
    peer,
    state: since === '' ? state : `${state} since ${since}`,
    revision,
    ageMs: Math.max(0, clock.monotonicMs() - seenMs),
  };
}

/** `_http._tcp.db.example` belongs to `db.example`. */
export function withoutPorts(name: string): string {
  return name.replace(/^(_[^.]*\.)+/, '');
}

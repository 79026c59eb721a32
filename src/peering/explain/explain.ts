// Explains peers: the state of a peer, and the differences between owner and consumer. Pure.

import { formatElapsed } from '../../base/text/elapsed.ts';
import { conditionOf } from '../../kube/objects/conditions.ts';
import type { Condition } from '../../kube/objects/object.ts';
import {
  isAccepted,
  type Peer,
  type PeerConsumerStatus,
  type PeerOwnerStatus,
  type PeerSideStatus,
} from '../kinds/peer.ts';
import { type PeerService, type PeerServiceSpec, specHash, specHashAnnotation, specOf } from '../kinds/peer-service.ts';
import type { SharedService } from '../kinds/shared-service.ts';
import { reachableCondition, servedCondition } from '../rules/reach.ts';

/** The peering process writes a sign of life every 30 s; one older than this says nothing about now. */
export const signOfLifeMsMax = 90_000;

export interface SideHealth {
  readonly isHealthy: boolean;
  /** No peering process has written about it lately. */
  readonly isSilent?: boolean;
  readonly text: string;
}

/** Never healthy without a recent sign of life, whatever state was written last. */
export function sideHealth(side: PeerSideStatus | undefined, nowMs: number): SideHealth {
  if (side?.state === undefined)
    return { isHealthy: false, isSilent: true, text: 'unknown: no peering process has reported it' };
  const ageMs = side.lastContact === undefined ? undefined : nowMs - Date.parse(side.lastContact);
  const reason = side.message ? `: ${side.message}` : '';
  if (side.state === 'Refused' || side.state === 'Idle') return { isHealthy: false, text: `${side.state}${reason}` };
  if (ageMs === undefined) return { isHealthy: false, text: `${side.state}, never connected${reason}` };
  if (ageMs > signOfLifeMsMax)
    return {
      isHealthy: false,
      isSilent: true,
      text: `silent for ${formatElapsed(ageMs)}, was ${side.state} then${reason}`,
    };
  return { isHealthy: side.state === 'Synced', text: `${side.state}${reason}` };
}

/** A condition of a Peer by which connections lead nowhere, or may. */
export function reachProblem(
  { status }: Pick<Peer, 'status'>,
  type: typeof reachableCondition | typeof servedCondition,
): Condition | undefined {
  const condition = conditionOf(status?.conditions, type);
  return condition === undefined || condition.status === 'True' ? undefined : condition;
}

/** The state of a side, with why connections of it lead nowhere. */
export function sideSummary(peer: Peer, side: 'taking' | 'giving', nowMs: number): string {
  const isTaking = side === 'taking';
  const { text } = sideHealth(isTaking ? peer.status?.consumer : peer.status?.owner, nowMs);
  const problem = reachProblem(peer, isTaking ? reachableCondition : servedCondition);
  return problem === undefined ? text : `${text}, ${problem.reason}`;
}

function reachLines(peer: Peer, type: typeof reachableCondition | typeof servedCondition): string[] {
  const problem = reachProblem(peer, type);
  return problem === undefined ? [] : [`          not carried: ${problem.reason}: ${problem.message}`];
}

export function describePeer(peer: Peer, nowMs: number): string[] {
  const { spec, status } = peer;
  return [
    `peer      ${peer.metadata.name}`,
    `address   ${spec.takeOverItsStream ? 'taken from over its own stream' : (spec.address ?? 'none: we only serve it')}`,
    `trust     ${spec.trust.domain}${spec.trust.identities?.length ? `, ${spec.trust.identities.join(', ')}` : ''}`,
    ...(spec.suspended ? ['suspended yes'] : []),
    ...(spec.address === undefined && !spec.takeOverItsStream
      ? []
      : [...sideLines('taking', status?.consumer, nowMs), ...reachLines(peer, reachableCondition)]),
    ...(status?.owner?.state === undefined
      ? ['giving    nothing reported: the peer has not called yet']
      : sideLines('giving', status.owner, nowMs)),
    ...reachLines(peer, servedCondition),
  ];
}

function sideLines(title: string, side: PeerSideStatus | undefined, nowMs: number): string[] {
  const lines = [`${title.padEnd(9)} ${sideHealth(side, nowMs).text}`];
  if (side?.state === undefined) return lines;
  const mode = (side as { reconciliation?: string }).reconciliation;
  const identity = (side as { identity?: string }).identity;
  const { suspects } = side as PeerConsumerStatus;
  const facts = [
    side.version,
    `${side.services ?? 0} services`,
    `${side.refused ?? 0} refused`,
    `lag ${side.lag ?? 0} services, ${side.lagSeconds ?? 0} s`,
    `${side.unacknowledged ?? 0} unanswered`,
    mode === undefined ? undefined : `deletions by ${mode === 'Marker' ? 'marker (exact)' : 'quiescence and grace'}`,
    identity,
    suspects ? `${suspects} suspect (no longer named, going after their grace)` : undefined,
    side.lastFullSync === undefined ? undefined : `last full sync ${side.lastFullSync}`,
    side.lastContact === undefined ? undefined : `last contact ${side.lastContact}`,
  ];
  lines.push(`          ${facts.filter((fact) => fact !== undefined).join(', ')}`);
  for (const { id, reason } of side.refusals ?? []) lines.push(`          refused ${id || '(no id)'}: ${reason}`);
  for (const { id, note } of (side as PeerOwnerStatus).notes ?? []) lines.push(`          taken ${id}, but: ${note}`);
  return lines;
}

export interface OwnerEntry {
  readonly id: string;
  readonly service?: SharedService;
  /** The consumer's reason for the refusal. */
  readonly refused?: string;
}

export type Difference =
  /** `not wanted here`: its tags or labels are none that our Peer accepts. */
  | { readonly kind: 'equal' | 'not wanted here' | 'only at the owner' | 'only here'; readonly id: string }
  | { readonly kind: 'differs'; readonly id: string; readonly fields: readonly string[] }
  | { readonly kind: 'refused here'; readonly id: string; readonly reason: string }
  /** For owners that cannot list their catalog. */
  | { readonly kind: 'as it was sent' | 'changed here'; readonly id: string }
  | { readonly kind: 'suspect' | 'stale'; readonly id: string; readonly reason: string };

const harmless: readonly Difference['kind'][] = ['equal', 'not wanted here', 'as it was sent'];

/** Service by service, in the order of their ids. */
export function diffCatalogs(peer: Peer, owner: readonly OwnerEntry[], here: readonly PeerService[]): Difference[] {
  const held = new Map(here.map((service) => [service.spec.id, service]));
  const differences = owner.map((entry) => compare(peer, entry, held.get(entry.id)));
  const offered = new Set(owner.map(({ id }) => id));
  for (const { spec } of here) if (!offered.has(spec.id)) differences.push({ kind: 'only here', id: spec.id });
  return differences.sort(byId);
}

function compare(peer: Peer, { id, service, refused }: OwnerEntry, held: PeerService | undefined): Difference {
  const isRefusedHere = held?.status?.state === 'Refused';
  if (refused !== undefined || isRefusedHere)
    return { kind: 'refused here', id, reason: refused ?? held?.status?.message ?? '' };
  if (held === undefined && service !== undefined && !isAccepted(peer.spec, service))
    return { kind: 'not wanted here', id };
  if (held === undefined || service === undefined) return { kind: 'only at the owner', id };
  const fields = differingFields(specOf(peer.metadata.name, service), held.spec);
  return fields.length === 0 ? { kind: 'equal', id } : { kind: 'differs', id, fields };
}

/** An owner that is no Portolan has no list to compare with; what it sent on its stream is all that is known of it. */
export function diffWithSent(here: readonly PeerService[]): Difference[] {
  return here.map(compareWithSent).sort(byId);
}

function compareWithSent({ metadata, spec, status }: PeerService): Difference {
  const { id } = spec;
  const reason = status?.message ?? '';
  if (status?.state === 'Refused') return { kind: 'refused here', id, reason };
  if (metadata.annotations?.[specHashAnnotation] !== specHash(spec)) return { kind: 'changed here', id };
  if (status?.state === 'Suspect') return { kind: 'suspect', id, reason };
  if (status?.state === 'Stale') return { kind: 'stale', id, reason };
  return { kind: 'as it was sent', id };
}

export interface DiffReport {
  readonly lines: string[];
  readonly isEqual: boolean;
}

export function describeDiff(differences: readonly Difference[], options: { readonly isAll: boolean }): DiffReport {
  const different = differences.filter(({ kind }) => !harmless.includes(kind));
  const unwanted = differences.filter(({ kind }) => kind === 'not wanted here').length;
  const shown = options.isAll ? differences : different;
  const equal = differences.length - different.length - unwanted;
  const tail = unwanted === 0 ? '' : `, ${unwanted} not wanted here`;
  return {
    lines: [...shown.map(differenceLine), `${equal} equal, ${different.length} not${tail}`],
    isEqual: different.length === 0,
  };
}

/** Says what was compared and what could not be. */
export function describeDiffWithSent(
  peer: Peer,
  differences: readonly Difference[],
  options: { readonly isAll: boolean },
): DiffReport {
  const { lines, isEqual } = describeDiff(differences, options);
  const { lastContact, lastFullSync } = peer.status?.consumer ?? {};
  return {
    lines: [
      `peer ${peer.metadata.name} is not a Portolan: it cannot list its catalog, so this is what it sent on its stream against what is held`,
      `last full sync ${lastFullSync ?? 'never'}, last contact ${lastContact ?? 'never'}`,
      ...lines,
      'not compared: what it never sent, and what it changed since it was last heard of',
    ],
    isEqual,
  };
}

function differenceLine(difference: Difference): string {
  const details =
    'fields' in difference ? difference.fields.join(', ') : 'reason' in difference ? difference.reason : '';
  return `${difference.kind.padEnd(17)} ${difference.id}${details === '' ? '' : `: ${details}`}`;
}

function byId(one: Difference, other: Difference): number {
  return one.id < other.id ? -1 : 1;
}

function differingFields(one: PeerServiceSpec, other: PeerServiceSpec): string[] {
  const keys = [...new Set([...Object.keys(one), ...Object.keys(other)])] as (keyof PeerServiceSpec)[];
  return keys.filter((key) => key !== 'peer' && key !== 'sni' && !isSame(one[key], other[key])).sort();
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
}

function sorted(value: unknown): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}

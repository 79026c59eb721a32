// The result of a FederatedService in each cluster. Each member reports in its own lease what it could not place, and has a
// shard of what it did; from these alone the status of a FederatedService follows. Pure.

import type { WantedCondition } from '../../kube/objects/conditions.ts';
import type { FederatedService } from '../kinds/federated-service.ts';

/** On a member's lease: a JSON object of what it has not placed, by the name of the FederatedService. */
export const placementsAnnotation = 'portolan.dev/placements';

export interface PlacementProblem {
  /** `Pending` mends itself when the missing part comes; `Refused` needs a person's decision. */
  readonly state: 'Pending' | 'Refused';
  readonly message: string;
}

export interface MemberPlacement {
  readonly cluster: string;
  readonly isAlive: boolean;
  readonly hasShard: boolean;
  readonly problem: PlacementProblem | undefined;
}

export type PlacedClusters = NonNullable<NonNullable<FederatedService['status']>['clusters']>;

/** A lease is renewed every few seconds and read by all members: it holds no more than this. */
const problemsMax = 50;
const messageLengthMax = 256;

/** Undefined if all is placed. */
export function formatProblems(problems: ReadonlyMap<string, PlacementProblem>): string | undefined {
  if (problems.size === 0) return undefined;
  const first = [...problems].sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, problemsMax);
  return JSON.stringify(Object.fromEntries(first.map(([name, { state, message }]) => [name, [state, short(message)]])));
}

/** Invalid parts are left out: another cluster wrote it. */
export function parseProblems(text: string | undefined): Map<string, PlacementProblem> {
  const problems = new Map<string, PlacementProblem>();
  for (const [name, value] of Object.entries(parseObject(text)).slice(0, problemsMax)) {
    const [state, message] = Array.isArray(value) ? value : [];
    if ((state !== 'Pending' && state !== 'Refused') || typeof message !== 'string') continue;
    problems.set(name, { state, message: short(message) });
  }
  return problems;
}

/** Members in `unread` are unknown yet: their previous lines stay. */
export function placedClusters(federated: FederatedService, members: readonly MemberPlacement[]): PlacedClusters {
  const byId = new Map(members.map((member) => [member.cluster, member]));
  const ids = federated.spec.clusters ?? [...byId.keys()].sort();
  return ids.map((cluster) => ({ cluster, ...stateOf(byId.get(cluster)) }));
}

function stateOf(member: MemberPlacement | undefined): Omit<PlacedClusters[number], 'cluster'> {
  if (member === undefined) return { state: 'Pending', message: 'no such cluster is a member of the clusterset' };
  if (member.problem !== undefined) return { ...member.problem };
  const silent = 'its lease has expired; this is the last known state';
  if (member.hasShard) return { state: 'Placed', ...(member.isAlive ? {} : { message: silent }) };
  return { state: 'Pending', message: member.isAlive ? 'not exported there yet' : 'its lease has run out' };
}

export function placementCondition(clusters: PlacedClusters): WantedCondition {
  const missing = clusters.filter(({ state }) => state !== 'Placed');
  if (missing.length === 0) {
    return { type: 'Ready', status: 'True', reason: 'Placed', message: `placed in ${clusters.length} clusters` };
  }
  const refused = missing.filter(({ state }) => state === 'Refused');
  const { cluster, message } = refused[0] ?? missing[0]!;
  const more = missing.length > 1 ? ` (and ${missing.length - 1} more)` : '';
  return {
    type: 'Ready',
    status: 'False',
    reason: refused.length > 0 ? 'Refused' : 'Pending',
    message: `placed in ${clusters.length - missing.length} of ${clusters.length} clusters; ${cluster}: ${message}${more}`,
  };
}

function short(message: string): string {
  return message.length <= messageLengthMax ? message : `${message.slice(0, messageLengthMax - 3)}...`;
}

function parseObject(text: string | undefined): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text ?? '{}');
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

export function isPlacedIn(federated: FederatedService, clusterId: string): boolean {
  return federated.spec.clusters === undefined || federated.spec.clusters.includes(clusterId);
}

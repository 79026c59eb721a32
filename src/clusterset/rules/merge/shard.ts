// The export of one service by one cluster, as the merge reads it, and which shard wins when clusters disagree: the
// oldest ServiceExport, ties by cluster id. Total, and the same in every cluster, because it reads nothing but the shards.
// How a shard lies at the broker is the business of service-shard.ts. Pure.

import { compareText } from '../../../base/compare-text.ts';
import type { IpFamily } from '../../../base/net/ip.ts';
import type { Protocol, SessionAffinity } from '../../../kube/objects/service.ts';
import type { ImportType } from '../../kinds/service-import.ts';

export interface ShardPort {
  /** Empty for the unnamed port. */
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: number;
  readonly appProtocol?: string;
}

export interface Shard extends Ranked {
  readonly type: ImportType;
  readonly ports: readonly ShardPort[];
  readonly sessionAffinity: SessionAffinity;
  /** Only with ClientIP. */
  readonly affinityTimeoutSeconds?: number;
  readonly internalTrafficPolicy?: string;
  readonly trafficDistribution?: string;
  readonly ipFamilies: readonly IpFamily[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** As Kubernetes defaults it. */
const affinityTimeoutSecondsDefault = 10_800;

export function affinityTimeoutSeconds(shard: Shard): number | undefined {
  if (shard.sessionAffinity === 'None') return undefined;
  return shard.affinityTimeoutSeconds ?? affinityTimeoutSecondsDefault;
}

export interface Ranked {
  readonly cluster: string;
  /** When the broker stored the cluster's record. */
  readonly exportedAt: string;
}

/** Oldest first. Each age is read once, however many there are to compare. */
export function sortedByPrecedence<T extends Ranked>(ranked: readonly T[]): T[] {
  const aged = ranked.map((one) => ({ one, age: ageOf(one) }));
  aged.sort((a, b) => (a.age === b.age ? compareText(a.one.cluster, b.one.cluster) : a.age < b.age ? -1 : 1));
  return aged.map(({ one }) => one);
}

// An unreadable timestamp never beats a readable one.
function ageOf(ranked: Ranked): number {
  const parsed = Date.parse(ranked.exportedAt);
  return Number.isNaN(parsed) ? Number.POSITIVE_INFINITY : parsed;
}

// Merges all exports of one service into what its import says. Pure; the order of the input never matters, and the
// merge has no memory. Addresses and leases are decided elsewhere.

import { compareText } from '../../../base/compare-text.ts';
import type { PortPolicy } from '../../kinds/cluster-set.ts';
import { findConflicts } from './conflicts.ts';
import type { Conflict, Merge } from './merged.ts';
import { indexMerged, mergePorts, portNames } from './ports.ts';
import { affinityTimeoutSeconds, type Shard, sortedByPrecedence } from './shard.ts';

export interface MergeRequest {
  /** At most one per cluster; of several the one that wins by precedence counts. */
  readonly shards: readonly Shard[];
  readonly ports: PortPolicy;
}

export interface MergeWithConflicts extends Merge {
  /** All of them at once, in a fixed order. They hold for every exporting cluster alike. */
  readonly conflicts: readonly Conflict[];
}

/** Undefined without exporters. */
export function mergeShards(request: MergeRequest): MergeWithConflicts | undefined {
  const shards = inPrecedence(request.shards);
  const merge = mergeRanked(shards, request.ports);
  if (merge === undefined) return undefined;
  // Asked for each conflict, and there may be one for every port.
  const known = new Map<string, Merge | undefined>();
  const without = (cluster: string) => {
    if (!known.has(cluster)) {
      const others = shards.filter((shard) => shard.cluster !== cluster);
      known.set(cluster, mergeRanked(others, request.ports));
    }
    return known.get(cluster);
  };
  return { ...merge, conflicts: findConflicts(merge, shards, without) };
}

/** The same without looking for conflicts, for who only needs the outcome. */
export function mergeOutcome(request: MergeRequest): Merge | undefined {
  return mergeRanked(inPrecedence(request.shards), request.ports);
}

export function inPrecedence(shards: readonly Shard[]): Shard[] {
  const seen = new Set<string>();
  return sortedByPrecedence(shards).filter(({ cluster }) => !seen.has(cluster) && seen.add(cluster));
}

function mergeRanked(shards: readonly Shard[], policy: PortPolicy): Merge | undefined {
  const decider = shards[0];
  if (decider === undefined) return undefined;
  const included = shards.filter((shard) => shard.type === decider.type);
  const ports = mergePorts(included, policy);
  const index = indexMerged(ports);
  return {
    decider,
    type: decider.type,
    ports,
    sessionAffinity: decider.sessionAffinity,
    affinityTimeoutSeconds: affinityTimeoutSeconds(decider),
    internalTrafficPolicy: decider.internalTrafficPolicy,
    trafficDistribution: decider.trafficDistribution,
    ipFamilies: decider.ipFamilies,
    labels: decider.labels,
    annotations: decider.annotations,
    clusters: included.map(({ cluster }) => cluster).sort(compareText),
    excluded: shards
      .filter((shard) => shard.type !== decider.type)
      .map(({ cluster }) => cluster)
      .sort(compareText),
    portNames: new Map(included.map((shard) => [shard.cluster, portNames(shard, index)])),
  };
}

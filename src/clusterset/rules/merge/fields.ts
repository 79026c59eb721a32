// The fields of which only one value can hold, so that the oldest export decides. Each has one canonical text, by
// which clusters are compared and which people read.

import { compareText } from '../../../base/compare-text.ts';
import type { ConflictReason } from './merged.ts';
import { affinityTimeoutSeconds, type Shard } from './shard.ts';

export interface MergedField {
  readonly reason: ConflictReason;
  readonly path: string;
  readonly say: (shard: Shard) => string;
  /** Whether the shard's value can be held against the decider's at all. */
  readonly isCompared: (shard: Shard, decider: Shard) => boolean;
}

export const mergedFields: readonly MergedField[] = [
  { reason: 'TypeConflict', path: 'spec.type', say: (shard) => JSON.stringify(shard.type), isCompared: always },
  {
    reason: 'SessionAffinityConflict',
    path: 'spec.sessionAffinity',
    say: (shard) => JSON.stringify(shard.sessionAffinity),
    isCompared: always,
  },
  {
    reason: 'SessionAffinityConfigConflict',
    path: 'spec.sessionAffinityConfig',
    say: (shard) => {
      const seconds = affinityTimeoutSeconds(shard);
      return seconds === undefined ? 'no timeout' : `${seconds} s timeout`;
    },
    isCompared: (shard, decider) => shard.sessionAffinity === decider.sessionAffinity,
  },
  { reason: 'LabelsConflict', path: 'metadata.labels', say: (shard) => formatMap(shard.labels), isCompared: always },
  {
    reason: 'AnnotationsConflict',
    path: 'metadata.annotations',
    say: (shard) => formatMap(shard.annotations),
    isCompared: always,
  },
  {
    reason: 'InternalTrafficPolicyConflict',
    path: 'spec.internalTrafficPolicy',
    say: (shard) => JSON.stringify(shard.internalTrafficPolicy ?? 'Cluster'),
    isCompared: always,
  },
  {
    reason: 'TrafficDistributionConflict',
    path: 'spec.trafficDistribution',
    say: (shard) => (shard.trafficDistribution === undefined ? 'none' : JSON.stringify(shard.trafficDistribution)),
    isCompared: always,
  },
  {
    reason: 'IPFamilyConflict',
    path: 'spec.ipFamilies',
    say: (shard) => [...shard.ipFamilies].sort(compareText).join(' and ') || 'none',
    isCompared: always,
  },
];

function always(): boolean {
  return true;
}

function formatMap(map: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(map).sort(([a], [b]) => compareText(a, b));
  return JSON.stringify(Object.fromEntries(pairs));
}

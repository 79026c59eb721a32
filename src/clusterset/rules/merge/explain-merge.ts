// Explains one service's merge field by field: what each cluster says, who won, why, and what would change if a
// cluster left. Pure; text and tables are made of it elsewhere.

import { compareText } from '../../../base/compare-text.ts';
import { formatPort } from './conflicts.ts';
import { mergedFields } from './fields.ts';
import { inPrecedence, type MergeRequest, mergeOutcome, mergeShards } from './merge.ts';
import type { Conflict, Merge } from './merged.ts';
import { indexPorts } from './ports.ts';
import type { Shard } from './shard.ts';

export interface MergeExplanation {
  readonly decider: string;
  readonly clusters: readonly ClusterExplanation[];
  readonly fields: readonly FieldExplanation[];
  readonly conflicts: readonly Conflict[];
  /** One entry per exporter, oldest first. */
  readonly ifLeft: readonly { readonly cluster: string; readonly changes: readonly string[] }[];
}

interface ClusterExplanation {
  readonly cluster: string;
  readonly exportedAt: string;
  readonly isPartOfImport: boolean;
  /** Merged names of the ports that this cluster serves. */
  readonly serves: readonly string[];
}

interface FieldExplanation {
  readonly field: string;
  readonly value: string;
  readonly winner: string;
  readonly says: readonly { readonly cluster: string; readonly value: string; readonly agrees: boolean }[];
}

/** Undefined without exporters. */
export function explainMerge(request: MergeRequest): MergeExplanation | undefined {
  const merge = mergeShards(request);
  if (merge === undefined) return undefined;
  const shards = inPrecedence(request.shards);
  return {
    decider: merge.decider.cluster,
    clusters: shards.map((shard) => explainCluster(shard, merge)),
    fields: [portsField(merge, shards), ...mergedFields.map((field) => explainField(field, merge, shards))],
    conflicts: merge.conflicts,
    ifLeft: shards.map(({ cluster }) => ({ cluster, changes: changesIfLeft(cluster, merge, request) })),
  };
}

/** Visible changes of the import if the cluster stopped exporting; empty if there are none. */
function changesIfLeft(cluster: string, merge: Merge, request: MergeRequest): string[] {
  const next = mergeOutcome({ ...request, shards: request.shards.filter((shard) => shard.cluster !== cluster) });
  if (next === undefined) return ['the import would be removed: nobody else exports this service'];
  return [...portChanges(merge, next), ...fieldChanges(merge, next), ...memberChanges(merge, next, cluster)];
}

function explainCluster(shard: Shard, merge: Merge): ClusterExplanation {
  return {
    cluster: shard.cluster,
    exportedAt: shard.exportedAt,
    isPartOfImport: merge.clusters.includes(shard.cluster),
    serves: [...(merge.portNames.get(shard.cluster)?.values() ?? [])].sort(compareText),
  };
}

function explainField(field: (typeof mergedFields)[number], merge: Merge, shards: readonly Shard[]): FieldExplanation {
  const value = field.say(merge.decider);
  const says = shards.map((shard) => {
    const said = field.say(shard);
    return { cluster: shard.cluster, value: said, agrees: said === value };
  });
  return { field: field.path, value, winner: merge.decider.cluster, says };
}

function portsField(merge: Merge, shards: readonly Shard[]): FieldExplanation {
  const value = formatPorts(merge.ports.filter((port) => port.isExposed));
  const says = shards.map((shard) => {
    const said = formatPorts(indexPorts(shard.ports).ports);
    return { cluster: shard.cluster, value: said, agrees: said === value };
  });
  return { field: 'spec.ports', value, winner: merge.decider.cluster, says };
}

function portChanges(now: Merge, next: Merge): string[] {
  const before = new Set(now.ports.filter((port) => port.isExposed).map(formatPort));
  const after = new Set(next.ports.filter((port) => port.isExposed).map(formatPort));
  return [
    ...[...before.difference(after)].map((port) => `spec.ports: ${port} would go`),
    ...[...after.difference(before)].map((port) => `spec.ports: ${port} would come`),
  ];
}

function fieldChanges(now: Merge, next: Merge): string[] {
  return mergedFields
    .filter((field) => field.say(now.decider) !== field.say(next.decider))
    .map((field) => `${field.path}: would become ${field.say(next.decider)} of cluster ${next.decider.cluster}`);
}

function memberChanges(now: Merge, next: Merge, left: string): string[] {
  const before = new Set(now.clusters);
  const after = new Set(next.clusters);
  return [
    ...[...before.difference(after)]
      .filter((other) => other !== left)
      .map((other) => `cluster ${other} would be left out`),
    ...[...after.difference(before)].map((other) => `cluster ${other} would become part of the import`),
  ];
}

function formatPorts(ports: Shard['ports']): string {
  return ports.map(formatPort).sort(compareText).join(', ') || 'none';
}

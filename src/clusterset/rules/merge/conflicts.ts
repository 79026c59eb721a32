// Finds everything on which the exporters of one service disagree, and says it in words: the field, the winning value
// and cluster, why it won, how many disagree, and what would change if the winner left. Pure.

import { clipText } from '../../../base/text/clip-text.ts';
import { mergedFields } from './fields.ts';
import { type Conflict, conflictReasons, type Merge } from './merged.ts';
import { indexMerged, indexPorts, isSamePort, type MergedPort, type PortIndex } from './ports.ts';
import type { Shard, ShardPort } from './shard.ts';

export type MergeWithout = (cluster: string) => Merge | undefined;

/** Shards come ordered by precedence. */
export function findConflicts(merge: Merge, shards: readonly Shard[], without: MergeWithout): Conflict[] {
  const conflicts = [...portConflicts(merge, shards, without), ...fieldConflicts(merge, shards, without)];
  const rank = (conflict: Conflict) => conflictReasons.indexOf(conflict.reason);
  return conflicts.sort((a, b) => rank(a) - rank(b));
}

/** One sentence, as the ServiceExport of `reader` carries it. */
export function formatConflict(conflict: Conflict, reader: string): string {
  const { field, value, winner, why, disagreeing, exporterCount, ifWinnerLeft } = conflict;
  const say = (text: string) => clipText(text, valueLengthMax);
  const names = disagreeing.slice(0, namesShownMax).map((other) => `${other.cluster} says ${say(other.value)}`);
  const more = disagreeing.length > namesShownMax ? ` and ${disagreeing.length - namesShownMax} more` : '';
  const isOdd = disagreeing.some(({ cluster }) => cluster === reader);
  const odd = isOdd ? 'this cluster is one of them' : 'this cluster is not one of them';
  return (
    `${field}: using ${say(value)} of cluster ${winner}, ${why}; ` +
    `${disagreeing.length} of ${exporterCount} clusters disagree (${names.join(', ')}${more}), ${odd}; ` +
    `if ${winner} left, ${say(ifWinnerLeft)}`
  );
}

const namesShownMax = 5;
/** Exported annotations may be large; a conflict message shows only their beginning. */
const valueLengthMax = 300;

function fieldConflicts(merge: Merge, shards: readonly Shard[], without: MergeWithout): Conflict[] {
  const conflicts: Conflict[] = [];
  for (const field of mergedFields) {
    const value = field.say(merge.decider);
    const disagreeing = shards
      .filter((shard) => field.isCompared(shard, merge.decider) && field.say(shard) !== value)
      .map((shard) => ({ cluster: shard.cluster, value: field.say(shard) }));
    if (disagreeing.length === 0) continue;
    const next = without(merge.decider.cluster);
    const nextValue = next === undefined ? value : field.say(next.decider);
    conflicts.push({
      reason: field.reason,
      field: field.path,
      winner: merge.decider.cluster,
      value,
      why: whyDecider(shards),
      disagreeing,
      exporterCount: shards.length,
      ifWinnerLeft:
        nextValue === value ? 'it would stay' : `it would become ${nextValue} of cluster ${next?.decider.cluster}`,
    });
  }
  return conflicts;
}

function portConflicts(merge: Merge, shards: readonly Shard[], without: MergeWithout): Conflict[] {
  const conflicts: Conflict[] = [];
  const own = shards.map(({ cluster, ports }) => ({ cluster, ports: indexPorts(ports) }));
  const remaining = new Map<string, PortIndex<MergedPort>>();
  const withoutDeclarer = ({ declaredBy }: MergedPort) => {
    const known = remaining.get(declaredBy) ?? indexMerged(without(declaredBy)?.ports ?? []);
    remaining.set(declaredBy, known);
    return known;
  };
  for (const port of merge.ports) {
    const disagreeing = own
      .filter(({ ports }) => !isIdentical(ports.sameName(port), port))
      .map(({ cluster, ports }) => ({ cluster, value: counterpart(ports, port) }));
    if (disagreeing.length === 0) continue;
    const isDecider = port.declaredBy === merge.decider.cluster;
    conflicts.push({
      reason: 'PortConflict',
      field: `spec.ports[${port.name || formatNumber(port)}]`,
      winner: port.declaredBy,
      value: port.isExposed ? formatPort(port) : `nothing for ${formatPort(port)}, which not every cluster has,`,
      why: isDecider ? whyDecider(shards) : 'the oldest export that has this port',
      disagreeing,
      exporterCount: shards.length,
      ifWinnerLeft: portIfLeft(port, withoutDeclarer(port)),
    });
  }
  return [...conflicts, ...portsOfExcluded(merge, shards)];
}

// A cluster left out for its type brings no ports; its port conflicts are reported all the same, so that a corrected
// type does not uncover the next surprise.
function portsOfExcluded(merge: Merge, shards: readonly Shard[]): Conflict[] {
  const excluded = shards.filter((shard) => merge.excluded.includes(shard.cluster));
  const merged = indexMerged(merge.ports);
  const extra = new Map<string, Shard[]>();
  for (const shard of excluded) {
    for (const port of indexPorts(shard.ports).ports) {
      if (merged.sameName(port) !== undefined || merged.sameNumber(port) !== undefined) continue;
      const text = formatPort(port);
      extra.set(text, [...(extra.get(text) ?? []), shard]);
    }
  }
  return [...extra].map(([text, having]) => ({
    reason: 'PortConflict',
    field: 'spec.ports',
    winner: merge.decider.cluster,
    value: `nothing for ${text}`,
    why: whyDecider(shards),
    disagreeing: having.map(({ cluster }) => ({ cluster, value: text })),
    exporterCount: shards.length,
    ifWinnerLeft: 'the type decides whether it is exposed',
  }));
}

function whyDecider(shards: readonly Shard[]): string {
  const [first, second] = shards;
  if (first === undefined) return '';
  const isTie = second !== undefined && Date.parse(second.exportedAt) === Date.parse(first.exportedAt);
  if (isTie) return `exported at ${first.exportedAt} like that of ${second.cluster}, and first by cluster id`;
  return `the oldest export (${first.exportedAt})`;
}

function portIfLeft(port: MergedPort, next: PortIndex<MergedPort>): string {
  const successor = next.sameName(port) ?? next.sameNumber(port);
  if (successor === undefined || !successor.isExposed) return 'this port would not be exposed';
  if (isIdentical(successor, port) && port.isExposed) return 'it would stay';
  return `it would become ${formatPort(successor)} of cluster ${successor.declaredBy}`;
}

function counterpart(own: PortIndex<ShardPort>, port: ShardPort): string {
  const other = own.sameName(port) ?? own.sameNumber(port);
  return other === undefined ? 'no such port' : formatPort(other);
}

function isIdentical(a: ShardPort | undefined, b: ShardPort): boolean {
  return a?.name === b.name && isSamePort(a, b) && (a.appProtocol ?? '') === (b.appProtocol ?? '');
}

export function formatPort(port: ShardPort): string {
  const application = port.appProtocol === undefined ? '' : ` (${port.appProtocol})`;
  return `${JSON.stringify(port.name)} ${formatNumber(port)}${application}`;
}

function formatNumber(port: ShardPort): string {
  return `${port.protocol}/${port.port}`;
}

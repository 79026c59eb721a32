// Source ranges and access in the commands of members and admins: flags, what is refused, and what is shown.

import type { KnownMember } from '../../clusterset/explain/broker-state.ts';
import type { Cluster, ClusterSpec } from '../../clusterset/kinds/cluster.ts';
import type { AccessMode } from '../../clusterset/kinds/cluster-set.ts';
import { homeAccessKeys, homeAccessName } from '../../clusterset/rules/access/home-access.ts';
import { sourceProblemsOf } from '../../clusterset/rules/access/source-problems.ts';
import type { Client } from '../../kube/client/client.ts';
import { writeKeys } from '../../kube/client/config-map-keys.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';

/** Where data planes find this cluster's own Pods, whatever a broker says. */
export function keepPodRanges(home: Client, podRanges: readonly string[]): Promise<void> {
  const place = { name: homeAccessName, namespace: systemNamespace };
  return writeKeys(home, place, { [homeAccessKeys.podRanges]: podRanges.join(',') });
}

/** The source ranges to write: those given, else those reported if the member has none. Others see translated addresses. */
export function sourceRangesFor(
  { cluster, record }: KnownMember,
  given: readonly string[] | undefined,
): Pick<ClusterSpec, 'sourceRanges'> {
  if (given !== undefined) return { sourceRanges: [...given] };
  const reported = record?.sourceRanges ?? [];
  const isOpen = (cluster.spec.sourceRanges ?? []).length === 0 && (cluster.spec.translations ?? []).length === 0;
  return isOpen && reported.length > 0 ? { sourceRanges: [...reported] } : {};
}

/** Two members with one source range cannot be told apart. */
export function refuseSourceOverlap(
  id: string,
  { spec, others }: { readonly spec: ClusterSpec; readonly others: readonly Cluster[] },
): void {
  const changed = { apiVersion: '', kind: '', metadata: { name: id }, spec };
  const overlapsIn = (clusters: readonly Cluster[]) =>
    sourceProblemsOf(clusters)
      .filter(({ reason }) => reason === 'OverlappingRanges')
      .map(({ message }) => message);
  // Those among the others are not for this command to mend.
  const known = new Set(overlapsIn(others));
  const added = overlapsIn([changed, ...others]).find((message) => !known.has(message));
  if (added !== undefined) throw new Error(`cluster ${id}: ${added}; give other ranges with --source-range`);
}

/** `Exported` rests on source ranges: without them a member passes as nobody. */
export function refuseUnknownSources(mode: AccessMode | undefined, members: readonly KnownMember[]): string[] {
  if (mode !== 'Exported' && mode !== 'Audit') return [];
  const problems = sourceProblemsOf(members.map(({ cluster }) => cluster)).map(({ message }) => message);
  if (mode === 'Exported' && problems.length > 0) throw new Error(`access Exported: ${problems.join('; ')}`);
  return problems.map((problem) => `note: access ${mode}: ${problem}`);
}

export function sourceLines({ metadata, spec }: Cluster): string[] {
  const ranges = spec.sourceRanges ?? [];
  return ranges.length === 0 ? [] : [`cluster ${metadata.name}: packets come from ${ranges.join(', ')}`];
}

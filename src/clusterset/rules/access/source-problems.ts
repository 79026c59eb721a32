// Why the source ranges of a clusterset do not tell its members apart, in sentences for people. Pure.

import type { Cluster } from '../../kinds/cluster.ts';
import { networkOf } from '../networks/reach.ts';
import { type JudgedSources, judgeSources } from './sources.ts';

const shownMax = 20;

export interface SourceProblem {
  readonly reason: 'NoSourceRanges' | 'OverlappingRanges' | 'InvalidRanges';
  readonly message: string;
}

export function problemsOfSources({ withoutRanges, overlaps, invalid }: JudgedSources): SourceProblem[] {
  const problems: SourceProblem[] = [];
  if (withoutRanges.length > 0)
    problems.push({
      reason: 'NoSourceRanges',
      message: `no source ranges of ${listed(withoutRanges)}: packets from there pass as those of no member; set sourceRanges with portolan broker accept`,
    });
  for (const { range, clusters } of overlaps.slice(0, shownMax))
    problems.push({
      reason: 'OverlappingRanges',
      message: clusters.includes('')
        ? `source range ${range} of ${listed(clusters.filter(Boolean))} lies in the Pod ranges of this cluster: packets from there pass as its own`
        : `source range ${range} belongs to ${listed(clusters)}: packets from there reach only what is exported to all clusters`,
    });
  if (invalid.length > 0) problems.push({ reason: 'InvalidRanges', message: `no range: ${listed(invalid)}` });
  return problems;
}

/** Problems of all members, network by network. */
export function sourceProblemsOf(members: readonly Cluster[]): SourceProblem[] {
  const networks = Map.groupBy(members, networkOf);
  return [...networks.values()].flatMap((clusters) => {
    const sources = new Map(clusters.map(({ metadata, spec }) => [metadata.name, spec.sourceRanges ?? []]));
    return problemsOfSources(judgeSources({ sources, own: [] }));
  });
}

function listed(texts: readonly string[]): string {
  const more = texts.length > shownMax ? ` and ${texts.length - shownMax} more` : '';
  return `${texts.slice(0, shownMax).join(', ')}${more}`;
}

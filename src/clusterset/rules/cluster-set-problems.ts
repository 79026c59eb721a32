// What is wrong with the policies of a clusterset although each value is one that could be: ranges that lead nowhere, and
// lease times by which living members would be called dead. Pure; one sentence for each, with what to do.

import { parseRange } from '../../base/ip.ts';
import { refusedWithin } from '../../base/special-ranges.ts';
import { type ClusterSetSpec, clusterSetDefaults } from '../kinds/cluster-set.ts';

/** Of renewals that one lease must outlast: one may be lost without the member being called dead. */
const renewalsPerLease = 2;
/** How long it may take until another replica of an agent leads, and renews. */
const takeoverSeconds = 16;

export function clusterSetProblems(spec: ClusterSetSpec): string[] {
  const { clusterSet, peers, external } = { ...clusterSetDefaults.addressRanges, ...spec.addressRanges };
  return [
    ...rangeProblems('range of clusterset IPs', clusterSet),
    ...rangeProblems("range of peers' addresses", peers),
    ...rangeProblems('range of external addresses', external),
    ...leaseProblems(spec),
  ];
}

/** What works, but not as somebody might expect. */
export function clusterSetWarnings(spec: ClusterSetSpec): string[] {
  const { durationSeconds } = leaseOf(spec);
  if (durationSeconds >= takeoverSeconds) return [];
  return [
    `note: a lease of ${durationSeconds} s is shorter than it takes another replica of an agent to take over (about ${takeoverSeconds} s): its cluster may be called dead meanwhile`,
  ];
}

function rangeProblems(what: string, cidrs: readonly string[]): string[] {
  const ranges = cidrs.map((cidr) => ({ cidr, range: parseRange(cidr) }));
  const problems: string[] = [];
  for (const [index, { cidr, range }] of ranges.entries()) {
    const special = range && refusedWithin(range);
    if (special !== undefined) problems.push(`${what} ${cidr} holds ${special} addresses; give another`);
    const twin = ranges.slice(0, index).find((other) => other.range?.family === range?.family);
    if (range !== undefined && twin !== undefined)
      problems.push(`${what}: ${twin.cidr} and ${cidr} are both ${range.family}; give one of each family at most`);
  }
  return problems;
}

function leaseProblems(spec: ClusterSetSpec): string[] {
  const { renewSeconds, durationSeconds } = leaseOf(spec);
  if (durationSeconds >= renewalsPerLease * renewSeconds) return [];
  return [
    `a lease of ${durationSeconds} s that is renewed every ${renewSeconds} s would run out while its member lives; let it last ${renewalsPerLease * renewSeconds} s or more, better ${3 * renewSeconds}`,
  ];
}

function leaseOf(spec: ClusterSetSpec) {
  return { ...clusterSetDefaults.lease, ...spec.lease };
}

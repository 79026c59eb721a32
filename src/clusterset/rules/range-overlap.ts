// Whether the policies of a clusterset make sense together, and whether the address ranges of a cluster that wants to join
// fit beside those of the clusterset and of its members. Pure; one sentence for each problem, with what to do.

import { doRangesOverlap, type IpRange, isInRange, parseIp, parseRange } from '../../base/net/ip.ts';
import { refusedWithin } from '../../base/net/special-ranges.ts';
import { addressRangesOf, type ClusterSetSpec, clusterSetDefaults } from '../kinds/cluster-set.ts';

export interface NamedRange {
  readonly cidr: string;
  /** For people: `pods of cluster west`. */
  readonly whose: string;
  readonly kind: 'pods' | 'services' | 'allowed' | 'virtual';
}

export interface OverlapRequest {
  readonly own: readonly NamedRange[];
  readonly others: readonly NamedRange[];
  /** Service addresses of clusters may be the same as long as no traffic goes there from outside. */
  readonly areServicesPublished: boolean;
}

/** One sentence for each pair that overlaps, both named. */
export function findOverlaps({ own, others, areServicesPublished }: OverlapRequest): string[] {
  const problems: string[] = [];
  for (const [index, one] of own.entries()) {
    for (const other of [...own.slice(index + 1), ...others]) {
      if (isHarmless(one, other, areServicesPublished)) continue;
      if (!doOverlap(one, other)) continue;
      problems.push(`${one.cidr} (${one.whose}) overlaps ${other.cidr} (${other.whose})`);
    }
  }
  return problems;
}

/** Ranges that lie in none of the allowed ones; none if everything is allowed. */
export function findOutside(own: readonly NamedRange[], allowed: readonly string[]): NamedRange[] {
  if (allowed.length === 0) return [];
  const ranges = allowed.map((text) => parseRange(text)).filter((range) => range !== undefined);
  return own.filter(({ cidr }) => {
    const range = parseRange(cidr);
    return range === undefined || !ranges.some((outer) => contains(outer, range));
  });
}

function isHarmless(one: NamedRange, other: NamedRange, areServicesPublished: boolean): boolean {
  const kinds = [one.kind, other.kind];
  if (kinds.every((kind) => kind === 'services')) return !areServicesPublished && one.whose !== other.whose;
  // The allowed ranges of a cluster contain its own; two clusters are compared by their declared ranges.
  return kinds.includes('allowed') && kinds.includes('services') && !areServicesPublished;
}

function doOverlap(one: NamedRange, other: NamedRange): boolean {
  const a = parseRange(one.cidr);
  const b = parseRange(other.cidr);
  return a !== undefined && b !== undefined && doRangesOverlap(a, b);
}

function contains(outer: IpRange, inner: IpRange): boolean {
  return (
    outer.family === inner.family && inner.first >= outer.first && inner.first + inner.size <= outer.first + outer.size
  );
}

/** A lease outlasts this many renewals: one may be lost without the member being called dead. */
const renewalsPerLease = 2;
/** How long it may take until another replica of an agent leads, and renews. */
const takeoverSeconds = 16;

export function clusterSetProblems(spec: ClusterSetSpec): string[] {
  const { clusterSet, peers, external } = addressRangesOf(spec);
  return [
    ...rangeProblems('range of clusterset IPs', clusterSet),
    ...rangeProblems("range of peers' addresses", peers),
    ...rangeProblems('range of external addresses', external),
    ...leaseProblems(spec),
  ];
}

/** Settings that work, but perhaps not as expected. */
export function clusterSetWarnings(spec: ClusterSetSpec): string[] {
  const notes = (spec.addressRanges?.clusterSet ?? [])
    .filter((cidr) => isPartOfLoopback(parseRange(cidr) ?? defaultRange))
    .map(
      (cidr) => `note: clusterset IPs from ${cidr} never leave a machine: only proxies in userspace mode serve them`,
    );
  const { durationSeconds } = leaseOf(spec);
  if (durationSeconds >= takeoverSeconds) return notes;
  return [
    ...notes,
    `note: a lease of ${durationSeconds} s is shorter than it takes another replica of an agent to take over (about ${takeoverSeconds} s): its cluster may be called dead meanwhile`,
  ];
}

function rangeProblems(what: string, cidrs: readonly string[]): string[] {
  const ranges = cidrs.map((cidr) => ({ cidr, range: parseRange(cidr) }));
  const problems: string[] = [];
  for (const [index, { cidr, range }] of ranges.entries()) {
    const special = range && refusedWithin(range);
    if (range && special !== undefined && !isPartOfLoopback(range))
      problems.push(`${what} ${cidr} holds ${special} addresses; give another`);
    const twin = ranges.slice(0, index).find((other) => other.range?.family === range?.family);
    if (range !== undefined && twin !== undefined)
      problems.push(`${what}: ${twin.cidr} and ${cidr} are both ${range.family}; give one of each family at most`);
  }
  return problems;
}

const defaultRange = parseRange(clusterSetDefaults.addressRanges.clusterSet[0])!;
const loopback = parseRange('127.0.0.0/8')!;
const localhost = parseIp('127.0.0.1')!;

/** Good for trying out on one machine: proxies in userspace mode listen on such addresses. */
function isPartOfLoopback(range: IpRange): boolean {
  const isInside =
    range.family === 'IPv4' && range.first >= loopback.first && range.first < loopback.first + loopback.size;
  return isInside && !isInRange(localhost, range);
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

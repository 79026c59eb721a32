// Whether the address ranges of a cluster that wants to join fit beside those of the clusterset and of its members. Pure.

import { doRangesOverlap, type IpRange, parseRange } from '../../base/ip.ts';

export interface NamedRange {
  readonly cidr: string;
  /** For people: `pods of cluster west`. */
  readonly whose: string;
  readonly kind: 'pods' | 'services' | 'allowed' | 'virtual';
}

export interface OverlapRequest {
  readonly own: readonly NamedRange[];
  readonly others: readonly NamedRange[];
  /** Service addresses of clusters may be the same as long as nobody is sent there from outside. */
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
  // What a cluster is allowed to have holds what it has; of two clusters both are compared by what they say they have.
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

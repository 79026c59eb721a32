// Which cluster an address belongs to, from the source ranges of all members: disjoint spans, each of one cluster or of several
// that claim it. Pure; the order of the input does not matter.

import { compareText } from '../../../base/compare-text.ts';
import { formatIp, type IpFamily, type IpRange, parseRange } from '../../../base/net/ip.ts';

/** Addresses that packets of one cluster come from. */
export interface SourceSpan {
  readonly family: IpFamily;
  readonly first: bigint;
  /** Belongs to it. */
  readonly last: bigint;
  /** Empty if several clusters claim it: then only what is exported to all clusters may be called from there. */
  readonly cluster: string;
}

export interface JudgedSources {
  readonly spans: readonly SourceSpan[];
  /** Ids of clusters without a valid range: their packets look like those of no member. */
  readonly withoutRanges: readonly string[];
  /** Claimed by several clusters, or by one of them and by this cluster. */
  readonly overlaps: readonly { readonly range: string; readonly clusters: readonly string[] }[];
  /** `CLUSTER RANGE` of texts that are no range. */
  readonly invalid: readonly string[];
}

export interface SourcesInput {
  /** By cluster id, without this cluster. */
  readonly sources: ReadonlyMap<string, readonly string[]>;
  /** Ranges of this cluster's own Pods: packets from there are its own, whoever claims them. */
  readonly own: readonly string[];
}

interface Claim {
  readonly range: IpRange;
  readonly cluster: string;
}

/** The claims of this cluster itself. */
const self = '';

export function judgeSources({ sources, own }: SourcesInput): JudgedSources {
  const claims: Claim[] = rangesOf(own).map((range) => ({ range, cluster: self }));
  const withoutRanges: string[] = [];
  const invalid: string[] = [];
  for (const [cluster, texts] of [...sources].sort(([a], [b]) => compareText(a, b))) {
    const ranges = rangesOf(texts);
    if (ranges.length === 0) withoutRanges.push(cluster);
    for (const text of texts) if (parseRange(text) === undefined) invalid.push(`${cluster} ${text}`);
    for (const range of ranges) claims.push({ range, cluster });
  }
  const spans: SourceSpan[] = [];
  const overlaps: { range: string; clusters: readonly string[] }[] = [];
  for (const family of ['IPv4', 'IPv6'] as const)
    for (const { first, last, clusters } of piecesOf(claims.filter(({ range }) => range.family === family))) {
      if (clusters.length > 1) overlaps.push({ range: formatSpan({ family, first, last }), clusters });
      if (clusters.includes(self)) continue;
      spans.push({ family, first, last, cluster: clusters.length === 1 ? clusters[0]! : '' });
    }
  return { spans, withoutRanges, overlaps, invalid };
}

/** `10.1.0.0-10.1.255.255`. */
export function formatSpan({ family, first, last }: Pick<SourceSpan, 'family' | 'first' | 'last'>): string {
  const low = formatIp({ family, value: first });
  return first === last ? low : `${low}-${formatIp({ family, value: last })}`;
}

function rangesOf(texts: readonly string[]): IpRange[] {
  return texts.map(parseRange).filter((range) => range !== undefined);
}

/** Disjoint pieces in order, each with all that claim it; neighbours with the same ones are one piece. */
function piecesOf(claims: readonly Claim[]): { first: bigint; last: bigint; clusters: readonly string[] }[] {
  const edges = claims.flatMap(({ range, cluster }) => [
    { at: range.first, cluster, step: 1 },
    { at: range.first + range.size, cluster, step: -1 },
  ]);
  edges.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
  const open = new Map<string, number>();
  const pieces: { first: bigint; last: bigint; clusters: readonly string[] }[] = [];
  for (const [index, { at, cluster, step }] of edges.entries()) {
    const count = (open.get(cluster) ?? 0) + step;
    if (count === 0) open.delete(cluster);
    else open.set(cluster, count);
    const next = edges[index + 1]?.at;
    if (next === undefined || next === at || open.size === 0) continue;
    const clusters = [...open.keys()].sort(compareText);
    const before = pieces.at(-1);
    if (before !== undefined && before.last + 1n === at && before.clusters.join() === clusters.join())
      pieces[pieces.length - 1] = { ...before, last: next - 1n };
    else pieces.push({ first: at, last: next - 1n, clusters });
  }
  return pieces;
}

// Redirects to a local port, such as a node's Envoy, as elements of interval maps. Pure. Where ranges overlap the smallest
// one decides: the maps take no overlaps, so larger ranges are cut into the pieces that remain.

import { formatIp, type IpRange } from '../../base/net/ip.ts';
import type { Element } from './port-plan.ts';

export interface Redirect {
  /** An address is a range of one. */
  readonly range: IpRange;
  readonly protocol: 'tcp' | 'udp';
  readonly port: number;
  readonly toPort: number;
}

interface Piece {
  readonly first: bigint;
  /** Inclusive. */
  readonly last: bigint;
  readonly toPort: number;
}

export function redirectElements(redirects: readonly Redirect[]): Element[] {
  const groups = Map.groupBy(redirects, ({ range, protocol, port }) => `${range.family} ${protocol} ${port}`);
  return [...groups.values()].flatMap((group) => {
    const { range, protocol, port } = group[0]!;
    const map = `redirect${protocol}${range.family === 'IPv4' ? 4 : 6}`;
    const text = (value: bigint) => formatIp({ family: range.family, value });
    return piecesOf(group).map(({ first, last, toPort }) => {
      const addresses = first === last ? text(first) : `${text(first)}-${text(last)}`;
      return { map, key: `${addresses} . ${port}`, value: `${toPort}` };
    });
  });
}

/** Disjoint, in order. */
function piecesOf(redirects: readonly Redirect[]): Piece[] {
  // Ranges nest or are apart. If a range occurs twice, the first stays.
  const sorted = [...redirects].sort((a, b) => Number(a.range.size - b.range.size));
  let pieces: Piece[] = [];
  for (const { range, toPort } of sorted) {
    let first = range.first;
    const end = range.first + range.size - 1n;
    const inside = pieces.filter((piece) => piece.first >= first && piece.last <= end);
    if (pieces.some((piece) => piece.first <= first && piece.last >= end)) continue;
    const gaps: Piece[] = [];
    for (const piece of inside) {
      if (piece.first > first) gaps.push({ first, last: piece.first - 1n, toPort });
      first = piece.last + 1n;
    }
    if (first <= end) gaps.push({ first, last: end, toPort });
    pieces = [...pieces, ...gaps].sort((a, b) => (a.first < b.first ? -1 : 1));
  }
  return joined(pieces);
}

function joined(pieces: readonly Piece[]): Piece[] {
  const result: Piece[] = [];
  for (const piece of pieces) {
    const before = result.at(-1);
    if (before?.toPort === piece.toPort && before.last + 1n === piece.first)
      result[result.length - 1] = { ...before, last: piece.last };
    else result.push(piece);
  }
  return result;
}

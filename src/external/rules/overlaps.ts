// Address ranges that several resources claim on one port, and ranges that lie in those of virtual IPs: each with the exact
// range and the winner, in the words of the founding document. Pure, and linear but for sorting: CIDRs lie in each
// other or apart, so those around one are a stack.

import { formatIp, type IpRange } from '../../base/ip.ts';
import { prefixLength } from './choose.ts';
import { byPrecedence, ownerId, type Rule } from './rule.ts';

export interface Pool {
  /** `external services` */
  readonly whose: string;
  readonly range: IpRange;
}

export interface Overlap {
  /** Ids of the resources it concerns. */
  readonly resources: readonly string[];
  /** `a and b have overlapping IPs 10.1.1.0/24, which can disrupt your traffic; …` */
  readonly text: string;
}

/** Ranges around one range that are named; of the others the number is given. */
const namedMax = 10;

interface RangeRule extends Rule {
  readonly match: { readonly kind: 'range'; readonly range: IpRange };
  readonly isVirtual: boolean;
}

export function findOverlaps(rules: readonly Rule[], pools: readonly Pool[]): Overlap[] {
  const ranges = rules.flatMap(rangesOf);
  const overlaps: Overlap[] = [];
  for (const group of groupsOf(ranges)) sweep(group, overlaps);
  for (const rule of ranges) if (!rule.isVirtual) overlaps.push(...inPools(rule, pools));
  return overlaps;
}

function rangesOf(rule: Rule): RangeRule[] {
  const { match } = rule;
  const ranged = (range: IpRange, isVirtual: boolean) => ({
    ...rule,
    match: { kind: 'range' as const, range },
    isVirtual,
  });
  if (match.kind === 'range') return [ranged(match.range, false)];
  if (match.kind !== 'vip') return [];
  return match.addresses.map(({ family, value }) => ranged({ family, first: value, size: 1n }, true));
}

/** By port and family: only those can overlap. */
function groupsOf(ranges: readonly RangeRule[]): Iterable<RangeRule[]> {
  const groups = new Map<string, RangeRule[]>();
  for (const rule of ranges) {
    const key = `${rule.port} ${rule.match.range.family}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [rule]);
    else group.push(rule);
  }
  return groups.values();
}

function sweep(group: RangeRule[], overlaps: Overlap[]): void {
  group.sort(outerFirst);
  const around: RangeRule[] = [];
  for (const rule of group) {
    const { first } = rule.match.range;
    while (around.length > 0 && endOf(around.at(-1)!) <= first) around.pop();
    report(rule, around, overlaps);
    around.push(rule);
  }
}

// Equal ranges are ordered with the loser first, so that the last one on the stack is always the winner.
function outerFirst(one: RangeRule, other: RangeRule): number {
  const [a, b] = [one.match.range, other.match.range];
  if (a.first !== b.first) return a.first < b.first ? -1 : 1;
  if (a.size !== b.size) return a.size > b.size ? -1 : 1;
  return byPrecedence(other, one);
}

function report(rule: RangeRule, around: readonly RangeRule[], overlaps: Overlap[]): void {
  let named = 0;
  let others = 0;
  const winner = ownerId(rule.resource);
  for (let at = around.length - 1; at >= 0; at -= 1) {
    if (named === namedMax) {
      others = at + 1;
      break;
    }
    const loser = ownerId(around[at]!.resource);
    if (loser === winner) continue;
    named += 1;
    const isSame = around[at]!.match.range.size === rule.match.range.size;
    const why = isSame ? 'is older, or comes first by name' : 'has the longer prefix';
    overlaps.push(overlapOf([winner, loser], rule, `${winner} wins on port ${rule.port}: it ${why}`));
  }
  if (others > 0)
    overlaps.push({
      resources: [winner],
      text: `${winner}: ${formatRange(rule.match.range)} port ${rule.port} overlaps ${others} more`,
    });
}

function inPools(rule: RangeRule, pools: readonly Pool[]): Overlap[] {
  const { range } = rule.match;
  const id = ownerId(rule.resource);
  return pools.flatMap((pool) => {
    const inner = intersection(range, pool.range);
    if (inner === undefined) return [];
    const text = sentence(id, `the address range of ${pool.whose}`, inner);
    return [{ resources: [id], text: `${text}; virtual IPs win` }];
  });
}

function overlapOf(resources: readonly [string, string], rule: RangeRule, winner: string): Overlap {
  const [one, other] = resources.toSorted() as [string, string];
  return { resources, text: `${sentence(one, other, rule.match.range)}; ${winner}` };
}

function sentence(one: string, other: string, range: IpRange): string {
  return `${one} and ${other} have overlapping IPs ${formatRange(range)}, which can disrupt your traffic`;
}

/** A single address without its length, as the founding document writes it. */
export function formatRange(range: IpRange): string {
  const address = formatIp({ family: range.family, value: range.first });
  return range.size === 1n ? address : `${address}/${prefixLength(range)}`;
}

/** CIDRs lie in each other or apart. */
function intersection(one: IpRange, other: IpRange): IpRange | undefined {
  if (one.family !== other.family) return undefined;
  const [inner, outer] = one.size <= other.size ? [one, other] : [other, one];
  return inner.first >= outer.first && inner.first < outer.first + outer.size ? inner : undefined;
}

function endOf({ match }: RangeRule): bigint {
  return match.range.first + match.range.size;
}

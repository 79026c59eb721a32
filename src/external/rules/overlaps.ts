// Address ranges that several resources claim on one port, and ranges that lie in those of virtual IPs: each with the exact
// range and the winner, in the words of the founding document. Pure. Ranges come and go one by one; CIDRs lie in each other
// or apart, so those around one are found by their prefixes and those inside it lie behind it in order.

import sortedBTree from 'sorted-btree';
import { formatIp, type IpRange } from '../../base/net/ip.ts';
import { canMeet, prefixLength } from './choose.ts';
import { byPrecedence, ownerId, type Rule } from './rule.ts';

export interface Pool {
  /** `external services` */
  readonly whose: string;
  readonly range: IpRange;
}

/** Ranges around one range that are named; of the others the number is given. */
const namedMax = 10;
/** Texts of one resource, and ranges inside its own that are looked at for them. */
const textsMax = 100;
const lookedAtMax = 1000;

interface RangeRule extends Rule {
  readonly match: { readonly kind: 'range'; readonly range: IpRange };
  readonly isVirtual: boolean;
}

const BTree = sortedBTree.default ?? (sortedBTree as unknown as typeof sortedBTree.default);
type Tree = InstanceType<typeof BTree<RangeRule, RangeRule>>;

/** The ranges of one port and family. */
interface Group {
  /** Outer ranges before inner ones; of equal ranges the one that loses comes first. */
  readonly ordered: Tree;
  /** Equal ranges by `first/length`, the winner first. */
  readonly equal: Map<string, RangeRule[]>;
  /** How many there are of each prefix length. */
  readonly lengths: Map<number, number>;
}

export class OverlapIndex {
  readonly #groups = new Map<string, Group>();

  add(rules: readonly Rule[]): void {
    for (const rule of rules.flatMap(rangesOf)) {
      const group = this.#groupOf(rule);
      if (!group.ordered.setIfNotPresent(rule, rule)) continue;
      const key = rangeKey(rule.match.range);
      const equal = group.equal.get(key) ?? [];
      equal.splice(placeIn(equal, rule), 0, rule);
      group.equal.set(key, equal);
      const length = prefixLength(rule.match.range);
      group.lengths.set(length, (group.lengths.get(length) ?? 0) + 1);
    }
  }

  remove(rules: readonly Rule[]): void {
    for (const rule of rules.flatMap(rangesOf)) {
      const group = this.#groupOf(rule);
      if (!group.ordered.delete(rule)) continue;
      const key = rangeKey(rule.match.range);
      const equal = group.equal.get(key)!;
      equal.splice(placeIn(equal, rule), 1);
      if (equal.length === 0) group.equal.delete(key);
      const length = prefixLength(rule.match.range);
      const left = group.lengths.get(length)! - 1;
      if (left === 0) group.lengths.delete(length);
      else group.lengths.set(length, left);
      if (group.ordered.size === 0) this.#groups.delete(groupKey(rule));
    }
  }

  /** Ids of the resources whose ranges lie around or in these. */
  neighbours(rules: readonly Rule[]): Set<string> {
    const ids = new Set<string>();
    for (const rule of rules.flatMap(rangesOf)) {
      const group = this.#groupOf(rule);
      for (const other of around(group, rule)) ids.add(ownerId(other.resource));
      for (const other of inside(group, rule)) ids.add(ownerId(other.resource));
    }
    return ids;
  }

  /** The overlaps of one resource, given by its rules; bounded. */
  textsOf(rules: readonly Rule[], pools: readonly Pool[]): string[] {
    const texts = new Set<string>();
    for (const rule of rules.flatMap(rangesOf)) {
      if (texts.size >= textsMax) break;
      const group = this.#groupOf(rule);
      for (const text of reportOf(group, rule)) texts.add(text);
      let lookedAt = 0;
      for (const inner of inside(group, rule)) {
        lookedAt += 1;
        if (lookedAt > lookedAtMax || texts.size >= textsMax) break;
        for (const loser of named(group, inner)) if (isSameRule(loser, rule)) texts.add(textOf(inner, rule));
      }
      if (!rule.isVirtual) for (const text of inPools(rule, pools)) texts.add(text);
    }
    return [...texts].slice(0, textsMax);
  }

  /** All texts, each once. */
  *texts(): Iterable<string> {
    for (const group of this.#groups.values()) for (const rule of group.ordered.keys()) yield* reportOf(group, rule);
  }

  #groupOf(rule: RangeRule): Group {
    const key = groupKey(rule);
    let group = this.#groups.get(key);
    if (group === undefined) {
      const ordered = new BTree<RangeRule, RangeRule>(undefined, outerFirst);
      group = { ordered, equal: new Map(), lengths: new Map() };
      this.#groups.set(key, group);
    }
    return group;
  }
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

/** Only those of one port and family can overlap. */
function groupKey({ port, match }: RangeRule): string {
  return `${port} ${match.range.family}`;
}

function rangeKey({ first, size }: IpRange): string {
  return `${first}/${size}`;
}

function outerFirst(one: RangeRule, other: RangeRule): number {
  const [a, b] = [one.match.range, other.match.range];
  if (a.first !== b.first) return a.first < b.first ? -1 : 1;
  if (a.size !== b.size) return a.size > b.size ? -1 : 1;
  return byPrecedence(other, one);
}

/** Where a rule stands, or would stand, among equal ranges. */
function placeIn(equal: readonly RangeRule[], rule: RangeRule): number {
  let [low, high] = [0, equal.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (byPrecedence(equal[middle]!, rule) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Ranges that this one wins over where they meet: the nearest first. */
function* around({ equal, lengths }: Group, rule: RangeRule): Iterable<RangeRule> {
  const { family, first } = rule.match.range;
  const own = prefixLength(rule.match.range);
  const bits = family === 'IPv4' ? 32 : 128;
  for (let length = own; length >= 0; length -= 1) {
    if (!lengths.has(length)) continue;
    const size = 1n << BigInt(bits - length);
    const list = equal.get(rangeKey({ family, first: first - (first % size), size })) ?? [];
    for (let at = length === own ? placeIn(list, rule) : 0; at < list.length; at += 1)
      if (!isSameRule(list[at]!, rule) && canMeet(list[at]!.protocol, rule.protocol)) yield list[at]!;
  }
}

/** Up to `lookedAtMax`. */
function countAround(group: Group, rule: RangeRule): number {
  let count = 0;
  for (const _ of around(group, rule)) {
    count += 1;
    if (count === lookedAtMax) break;
  }
  return count;
}

/** Ranges that win over this one where they meet. */
function* inside({ ordered }: Group, rule: RangeRule): Iterable<RangeRule> {
  const { first, size } = rule.match.range;
  for (let next = ordered.nextHigherKey(rule); next !== undefined; next = ordered.nextHigherKey(next)) {
    if (next.match.range.first >= first + size) return;
    yield next;
  }
}

/** Those around it that its report names: of other resources, and not too many. */
function* named(group: Group, rule: RangeRule): Iterable<RangeRule> {
  const winner = ownerId(rule.resource);
  let count = 0;
  for (const other of around(group, rule)) {
    if (ownerId(other.resource) === winner) continue;
    yield other;
    count += 1;
    if (count === namedMax) return;
  }
}

function reportOf(group: Group, rule: RangeRule): string[] {
  const losers = [...named(group, rule)];
  const texts = losers.map((loser) => textOf(rule, loser));
  const more = losers.length < namedMax ? 0 : countAround(group, rule) - namedMax;
  const { port, match } = rule;
  const most = more === lookedAtMax - namedMax ? ' or more' : '';
  if (more > 0)
    texts.push(`${ownerId(rule.resource)}: ${formatRange(match.range)} port ${port} overlaps ${more}${most} more`);
  return texts;
}

function textOf(winner: RangeRule, loser: RangeRule): string {
  const [id, other] = [ownerId(winner.resource), ownerId(loser.resource)];
  const isSame = loser.match.range.size === winner.match.range.size;
  const why = isSame ? 'is older, or comes first by name' : 'has the longer prefix';
  const [one, two] = [id, other].toSorted() as [string, string];
  return `${sentence(one, two, winner.match.range)}; ${id} wins on port ${winner.port}: it ${why}`;
}

function inPools(rule: RangeRule, pools: readonly Pool[]): string[] {
  const id = ownerId(rule.resource);
  return pools.flatMap((pool) => {
    const inner = intersection(rule.match.range, pool.range);
    if (inner === undefined) return [];
    return [`${sentence(id, `the address range of ${pool.whose}`, inner)}; virtual IPs win`];
  });
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

function isSameRule(one: RangeRule, other: RangeRule): boolean {
  return outerFirst(one, other) === 0;
}

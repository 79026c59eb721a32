// Which part of new connections goes to which endpoints, when a policy, an exporter or `minReady` has a say. Pure.
//
// Groups with weights take their percents; clusters that no group names have the percents that no weight claims. What a group
// cannot serve goes to the groups without a weight, one after the other, then to clusters that no group names. What is left after
// that goes back to those that serve, in proportion. Inside a group the nearer tiers are filled first in the same way. A shift
// then moves its percent of what one cluster has to another one.

import type { Routing, RoutingShift } from '../routing/routing.ts';

export interface Lot<T> {
  /** Above 0; those of a choice add up to 1. */
  readonly share: number;
  /** All alike; never empty. */
  readonly endpoints: readonly T[];
}

export interface Sharing<T> {
  /** Disjoint. */
  readonly lots: readonly Lot<T>[];
  /** Ready endpoints without a share, in the order in which they would be asked. */
  readonly later: readonly (readonly T[])[];
}

export interface SharingInput<T extends Any, Any> {
  readonly ready: readonly T[];
  /** Those that are not ready; only `minReady` in percent looks at them. */
  readonly unready: readonly Any[];
  readonly routing: Routing;
  readonly clusterOf: (endpoint: Any) => string;
  /** The nearer, the smaller. */
  readonly tierOf: (endpoint: Any) => number;
}

interface Tier<T> {
  /** How much of its task it can take on, above 0 to 1. */
  readonly capacity: number;
  readonly lots: readonly Lot<T>[];
}

interface Group<T> {
  readonly weight: number | undefined;
  readonly tiers: readonly Tier<T>[];
}

export function shareOut<T extends Any, Any = T>(input: SharingInput<T, Any>): Sharing<T> {
  const { named, unnamed } = groupsOf(input);
  const weighted = named.filter(({ weight }) => weight !== undefined && weight > 0);
  const claimed = weighted.reduce((sum, { weight }) => sum + weight!, 0);
  const isRestMeant = weighted.length > 0 && claimed < 100;
  if (isRestMeant) weighted.push({ ...unnamed, weight: 100 - claimed });

  const filling = new Filling<T>();
  for (const { tiers, weight } of weighted) filling.add(tiers, weight! / 100);
  for (const { tiers, weight } of named) if (weight === undefined) filling.add(tiers, filling.missing);
  if (!isRestMeant) filling.add(unnamed.tiers, filling.missing);
  // Groups of weight 0 serve only if there is nobody else.
  const isNobodyElse = filling.isEmpty;
  for (const { tiers, weight } of named) if (weight === 0) filling.add(tiers, isNobodyElse ? filling.missing : 0);
  const { shift } = input.routing;
  return shift === undefined ? filling.result() : shifted(filling.result(), shift, input.clusterOf);
}

/** Nothing moves to a cluster without a ready endpoint that may be used. */
function shifted<T extends Any, Any>(
  sharing: Sharing<T>,
  { from, to, percent }: RoutingShift,
  clusterOf: (endpoint: Any) => string,
): Sharing<T> {
  if (percent === 0) return sharing;
  const lots = sharing.lots.flatMap((lot) => splitLot(lot, { from, to }, clusterOf));
  const isOf = (cluster: string) => (each: Split<T>) => each.of === cluster;
  const left = lots.filter(isOf(from));
  const moved = sumOf(left) * (percent / 100);
  const found = takeFirst(sharing.later, (endpoint) => clusterOf(endpoint) === to);
  const served = lots.filter(isOf(to));
  const taking =
    served.length > 0 ? served : found.taken.length > 0 ? [{ of: to, share: 0, endpoints: found.taken }] : [];
  if (moved < tiniestShare || taking.length === 0) return sharing;
  const has = sumOf(taking);
  const rest = lots.filter(({ of }) => of === undefined);
  const kept = left.map((lot) => ({ ...lot, share: lot.share * (1 - percent / 100) }));
  const grown = taking.map((lot) => ({ ...lot, share: has === 0 ? moved : lot.share * (1 + moved / has) }));
  const later = served.length > 0 ? sharing.later : found.left;
  return {
    lots: [...(percent === 100 ? [] : kept), ...grown, ...rest].map(({ share, endpoints }) => ({ share, endpoints })),
    later: percent === 100 ? [left.flatMap(({ endpoints }) => endpoints), ...later] : later,
  };
}

interface Split<T> extends Lot<T> {
  /** One of the two clusters of a shift; undefined for all others. */
  readonly of: string | undefined;
}

function splitLot<T extends Any, Any>(
  { share, endpoints }: Lot<T>,
  { from, to }: Pick<RoutingShift, 'from' | 'to'>,
  clusterOf: (endpoint: Any) => string,
): Split<T>[] {
  const ofTheTwo = (endpoint: T) => [from, to].find((cluster) => cluster === clusterOf(endpoint));
  return [...Map.groupBy(endpoints, ofTheTwo)].map(([of, some]) => ({
    of,
    share: (share * some.length) / endpoints.length,
    endpoints: some,
  }));
}

function sumOf(lots: readonly Lot<unknown>[]): number {
  return lots.reduce((sum, { share }) => sum + share, 0);
}

/** Takes the matching items out of the first list that has any; returns them and the lists that are left. */
function takeFirst<T>(
  lists: readonly (readonly T[])[],
  isTaken: (item: T) => boolean,
): { readonly taken: readonly T[]; readonly left: readonly (readonly T[])[] } {
  const index = lists.findIndex((list) => list.some(isTaken));
  if (index < 0) return { taken: [], left: lists };
  const without = lists[index]!.filter((item) => !isTaken(item));
  return {
    taken: lists[index]!.filter(isTaken),
    left: [...lists.slice(0, index), ...(without.length === 0 ? [] : [without]), ...lists.slice(index + 1)],
  };
}

class Filling<T> {
  readonly #lots: Lot<T>[] = [];
  readonly #later: (readonly T[])[] = [];
  #filled = 0;

  get missing(): number {
    return Math.max(0, 1 - this.#filled);
  }

  get isEmpty(): boolean {
    return this.#lots.length === 0;
  }

  add(tiers: readonly Tier<T>[], task: number): void {
    let left = task;
    for (const { capacity, lots } of tiers) {
      const taken = left * capacity;
      // Less than that nobody would ever see: it comes from adding fractions.
      if (taken < tiniestShare) {
        this.#later.push(lots.flatMap(({ endpoints }) => endpoints));
        continue;
      }
      for (const { share, endpoints } of lots) this.#lots.push({ share: share * taken, endpoints });
      this.#filled += taken;
      left -= taken;
    }
  }

  result(): Sharing<T> {
    const filled = this.#filled;
    const [first, ...rest] = this.#later;
    // All shares were too small to see: one ready endpoint is better than none.
    if (this.#lots.length === 0 && first !== undefined) return { lots: [{ share: 1, endpoints: first }], later: rest };
    return {
      lots: this.#lots.map(({ share, endpoints }) => ({ share: share / filled, endpoints })),
      later: this.#later,
    };
  }
}

const tiniestShare = 1e-9;

function groupsOf<T extends Any, Any>({
  ready,
  unready,
  routing,
  clusterOf,
  tierOf,
}: SharingInput<T, Any>): {
  readonly named: readonly Group<T>[];
  readonly unnamed: Group<T>;
} {
  const indexes = new Map<string, number>();
  for (const [index, { clusters }] of routing.groups.entries())
    for (const cluster of clusters) if (!indexes.has(cluster)) indexes.set(cluster, index);
  for (const cluster of routing.excluded) indexes.set(cluster, excludedIndex);
  const indexOf = (endpoint: Any) => indexes.get(clusterOf(endpoint)) ?? unnamedIndex;
  const parts = countedParts(ready, { routing, clusterOf });
  const readyIn = Map.groupBy(ready, indexOf);
  const unreadyIn = Map.groupBy(unready, indexOf);
  const tiersOf = (index: number): Tier<T>[] => {
    const missing = Map.groupBy(unreadyIn.get(index) ?? [], tierOf);
    return [...Map.groupBy(readyIn.get(index) ?? [], tierOf)]
      .sort(([one], [other]) => one - other)
      .map(([tier, endpoints]) => tierMadeOf(endpoints, missing.get(tier)?.length ?? 0, { routing, clusterOf, parts }));
  };
  return {
    named: routing.groups.map(({ weight }, index) => ({ weight, tiers: tiersOf(index) })),
    unnamed: { weight: undefined, tiers: tiersOf(unnamedIndex) },
  };
}

const unnamedIndex = -1;
const excludedIndex = -2;

/** A cluster may be called constructor. */
function wishOf(lowered: Routing['lowered'], cluster: string): number {
  return (Object.hasOwn(lowered, cluster) ? lowered[cluster]! : 100) / 100;
}

interface TierInput<T> extends Pick<SharingInput<T, T>, 'routing' | 'clusterOf'> {
  /** The part of a cluster's ready endpoints that counts for `minReady`; 1 of a cluster that is not here. */
  readonly parts: ReadonlyMap<string, number>;
}

function countedParts<T>(
  ready: readonly T[],
  { routing, clusterOf }: Omit<TierInput<T>, 'parts'>,
): Map<string, number> {
  const parts = new Map<string, number>();
  for (const [cluster, count] of Object.entries(routing.counted ?? {})) {
    const all = ready.filter((endpoint) => clusterOf(endpoint) === cluster).length;
    if (all > count) parts.set(cluster, count / all);
  }
  return parts;
}

function tierMadeOf<T>(endpoints: readonly T[], missing: number, { routing, clusterOf, parts }: TierInput<T>): Tier<T> {
  const { minReady, lowered } = routing;
  const needed =
    minReady === undefined
      ? 0
      : 'count' in minReady
        ? minReady.count
        : ((endpoints.length + missing) * minReady.percent) / 100;
  const count = endpoints.reduce((sum, endpoint) => sum + (parts.get(clusterOf(endpoint)) ?? 1), 0);
  const fullness = needed === 0 ? 1 : Math.min(1, count / needed);
  const byWish = [...Map.groupBy(endpoints, (endpoint) => wishOf(lowered, clusterOf(endpoint)))];
  const sum = byWish.reduce((all, [wish, some]) => all + wish * some.length, 0);
  return {
    // A cluster that wants less leaves the rest to its tier. The tier gives a part away only if all its clusters want less.
    capacity: fullness * Math.max(...byWish.map(([wish]) => wish)),
    lots: byWish.map(([wish, some]) => ({ share: (wish * some.length) / sum, endpoints: some })),
  };
}

// The part of new connections that each endpoint should get. It is worked out endpoint by endpoint from the guide, without the
// code that does it. For tests that compare the two.

import type { Routing } from '../../routing/routing.ts';

export interface ModelEndpoint {
  readonly id: string;
  readonly cluster: string;
  readonly tier: number;
  readonly isReady: boolean;
}

/** By id; those without a part are left out. */
export function modelShares(endpoints: readonly ModelEndpoint[], routing: Routing): Map<string, number> {
  const isIn = (group: number) => (endpoint: ModelEndpoint) =>
    !routing.excluded.includes(endpoint.cluster) &&
    routing.groups.findIndex(({ clusters }) => clusters.includes(endpoint.cluster)) === group;
  const weights = routing.groups.map(({ weight }) => weight);
  const sum = weights.reduce<number>((all, weight) => all + (weight ?? 0), 0);
  const nobodysGroup = -1;
  const hasRest = sum > 0 && sum < 100;

  const got = new Map<string, number>();
  let poured = 0;
  const pour = (group: number, amount: number) => {
    poured += pourInto(got, amount, { group: endpoints.filter(isIn(group)), endpoints, routing });
  };
  weights.forEach((weight, group) => {
    if (weight) pour(group, weight / 100);
  });
  if (hasRest) pour(nobodysGroup, (100 - sum) / 100);
  weights.forEach((weight, group) => {
    if (weight === undefined) pour(group, 1 - poured);
  });
  if (!hasRest) pour(nobodysGroup, 1 - poured);
  if (poured < 1e-12)
    weights.forEach((weight, group) => {
      if (weight === 0) pour(group, 1 - poured);
    });
  for (const [id, part] of got) {
    if (part < 1e-9) got.delete(id);
    else got.set(id, part / poured);
  }
  return afterShift(got, endpoints, routing);
}

/** A percentage of the connections to one cluster goes to the other. */
function afterShift(
  got: Map<string, number>,
  endpoints: readonly ModelEndpoint[],
  routing: Routing,
): Map<string, number> {
  const { shift, excluded } = routing;
  if (shift === undefined || shift.percent === 0) return got;
  const partOf = ({ id }: ModelEndpoint) => got.get(id) ?? 0;
  const givers = endpoints.filter((each) => each.cluster === shift.from && partOf(each) > 0);
  const allowed = endpoints.filter(
    ({ cluster, isReady }) => cluster === shift.to && isReady && !excluded.includes(cluster),
  );
  const nearest = allowed.filter(({ tier }) => tier === Math.min(...allowed.map((each) => each.tier)));
  const serving = allowed.filter((each) => partOf(each) > 0);
  const takers = serving.length > 0 ? serving : nearest;
  if (givers.length === 0 || takers.length === 0) return got;
  const before = takers.reduce((sum, each) => sum + partOf(each), 0);
  const after = new Map(got);
  for (const giver of givers)
    for (const taker of takers) {
      const amount = (partOf(giver) * shift.percent * (before > 0 ? partOf(taker) / before : 1 / takers.length)) / 100;
      after.set(taker.id, (after.get(taker.id) ?? 0) + amount);
      after.set(giver.id, (after.get(giver.id) ?? 0) - amount);
    }
  for (const [id, part] of after) if (part < 1e-9) after.delete(id);
  return after;
}

/** How much of the amount was taken. */
interface Pouring {
  readonly group: readonly ModelEndpoint[];
  readonly endpoints: readonly ModelEndpoint[];
  readonly routing: Routing;
}

function pourInto(got: Map<string, number>, amount: number, { group, endpoints, routing }: Pouring): number {
  let left = amount;
  for (const tier of [...new Set(group.map((each) => each.tier))].sort((a, b) => a - b)) {
    const all = group.filter((each) => each.tier === tier);
    const ready = all.filter((each) => each.isReady);
    if (ready.length === 0 || left < 1e-12) continue;
    const wishOf = ({ cluster }: ModelEndpoint) => (new Map(Object.entries(routing.lowered)).get(cluster) ?? 100) / 100;
    const counting = ready.map(({ cluster }) => countingPart(cluster, endpoints, routing)).reduce((a, b) => a + b, 0);
    const taken = left * strengthOf(counting, all.length, routing) * Math.max(...ready.map(wishOf));
    const wishes = ready.map(wishOf).reduce((a, b) => a + b, 0);
    for (const endpoint of ready)
      got.set(endpoint.id, (got.get(endpoint.id) ?? 0) + (taken * wishOf(endpoint)) / wishes);
    left -= taken;
  }
  return amount - left;
}

/** Where endpoints of a cluster were missing a while ago, only as many count as were ready then. */
function countingPart(cluster: string, endpoints: readonly ModelEndpoint[], { counted = {} }: Routing): number {
  const known = new Map(Object.entries(counted)).get(cluster);
  const ready = endpoints.filter((each) => each.cluster === cluster && each.isReady).length;
  return known === undefined || known >= ready ? 1 : known / ready;
}

function strengthOf(ready: number, all: number, { minReady }: Routing): number {
  if (minReady === undefined) return 1;
  const enough = 'count' in minReady ? minReady.count : (all * minReady.percent) / 100;
  return ready >= enough ? 1 : ready / enough;
}

// The locality rule, one for DNS, the node proxy and xDS: how near an endpoint is to its client, and which of several
// endpoints are used. Pure, and stable: endpoints stay in the order they came in.

import type { LocalityPreference } from '../../clusterset/kinds/cluster-set.ts';

export interface Place {
  readonly cluster: string;
  /** Empty or absent if unknown. For a node or an endpoint: its own zone, else that of its cluster. */
  readonly zone?: string;
  readonly region?: string;
}

/** 1 own cluster and zone, 2 own cluster, 3 another cluster in the same zone, 4 in the same region, 5 anywhere. */
export type Tier = 1 | 2 | 3 | 4 | 5;

/** An unknown place is never near. */
export function tierOf(from: Place, to: Place): Tier {
  // A zone's name means something only inside its region.
  const isSameRegion = isKnownSame(from.region, to.region);
  const isSameZone = isKnownSame(from.zone, to.zone);
  if (from.cluster === to.cluster) return isSameZone ? 1 : 2;
  if (isSameZone && (isSameRegion || (!from.region && !to.region))) return 3;
  return isSameRegion ? 4 : 5;
}

/**
 * The preference for one service: its own `trafficDistribution`, else the set's. Imported slices do not say which
 * node an endpoint runs on, so PreferSameNode is the nearest that can be told. A value of tomorrow changes nothing.
 */
export function preferenceOf(set: LocalityPreference, trafficDistribution: string | undefined): LocalityPreference {
  return nearestValues.has(trafficDistribution ?? '') ? 'NearestFirst' : set;
}

const nearestValues: ReadonlySet<string> = new Set(['PreferClose', 'PreferSameZone', 'PreferSameNode']);

export interface LocalityChoice<T> {
  readonly from: Place;
  readonly preference: LocalityPreference;
  readonly placeOf: (endpoint: T) => Place;
}

/** Selects ready endpoints: all of them, or those of the nearest tier that has any. */
export function endpointsToUse<T>(ready: readonly T[], choice: LocalityChoice<T>): readonly T[] {
  if (choice.preference === 'Spread') return ready;
  const tiers = ready.map((endpoint) => tierOf(choice.from, choice.placeOf(endpoint)));
  const nearest = tiers.reduce<number>((least, tier) => Math.min(least, tier), 5);
  return ready.filter((_, index) => tiers[index] === nearest);
}

function isKnownSame(a: string | undefined, b: string | undefined): boolean {
  return a !== undefined && a !== '' && a === b;
}

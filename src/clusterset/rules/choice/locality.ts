// How near an endpoint is to its client, one rule for DNS, the node proxy and xDS. Pure.

import type { LocalityPreference } from '../../kinds/cluster-set.ts';
import type { SetLocality } from '../locality.ts';

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

/** The set as seen from one of its clusters. Where the reader itself knows its place, that wins over the set's. */
export function seenFrom(self: Place, locality: SetLocality): { readonly from: Place; readonly locality: SetLocality } {
  const known = locality.clusters.get(self.cluster);
  const place = { zone: self.zone || known?.zone, region: self.region || known?.region };
  const clusters = new Map(locality.clusters).set(self.cluster, place);
  return { from: { cluster: self.cluster, ...place }, locality: { ...locality, clusters } };
}

function isKnownSame(a: string | undefined, b: string | undefined): boolean {
  return a !== undefined && a !== '' && a === b;
}

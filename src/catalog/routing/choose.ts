// The one choice: which of a service's ready endpoints a client uses, and in which order of groups. DNS and the kernel's rules
// take the first tier, Envoy and gRPC all of them. Pure, and stable: endpoints stay in the order they came in.

import type { SetLocality } from '../../clusterset/rules/locality.ts';
import { type Place, preferenceOf, tierOf } from './locality.ts';
import { type Chosen, type LeftOut, type Reachable, reachable, type Ways } from './reachable.ts';

export interface Candidate extends Reachable {
  /** Its own zone; that of its cluster if empty or absent. */
  readonly zone?: string;
}

export interface Chooser extends Ways {
  /** Where the client is. */
  readonly from: Place;
  readonly locality: SetLocality;
  /** The service's own wish; it wins over the set's preference. */
  readonly trafficDistribution: string | undefined;
}

interface Tier<T> {
  readonly endpoints: readonly Chosen<T>[];
}

export interface Choice<T> {
  /** Nearest first; never an empty one. */
  readonly tiers: readonly Tier<T>[];
  /** Ready endpoints that this client cannot reach. */
  readonly leftOut: readonly LeftOut[];
}

export function choose<T extends Candidate>(ready: readonly T[], chooser: Chooser): Choice<T> {
  const { reached, leftOut } = reachable(ready, chooser);
  if (reached.length === 0) return { tiers: [], leftOut };
  if (preferenceOf(chooser.locality.preference, chooser.trafficDistribution) === 'Spread')
    return { tiers: [{ endpoints: reached }], leftOut };
  return { tiers: byDistance(reached, chooser), leftOut };
}

/** The endpoints that new connections go to. */
export function nearestOf<T>({ tiers }: Choice<T>): readonly Chosen<T>[] {
  return tiers[0]?.endpoints ?? [];
}

export function placeOfCandidate({ cluster, zone }: Candidate, { clusters }: SetLocality): Place {
  const known = clusters.get(cluster);
  return { cluster, zone: zone || known?.zone, region: known?.region };
}

function byDistance<T extends Candidate>(ready: readonly Chosen<T>[], { from, locality }: Chooser): Tier<T>[] {
  const byTier: Chosen<T>[][] = [];
  for (const endpoint of ready) (byTier[tierOf(from, placeOfCandidate(endpoint, locality))] ??= []).push(endpoint);
  const tiers: Tier<T>[] = [];
  for (const endpoints of byTier) if (endpoints !== undefined) tiers.push({ endpoints });
  return tiers;
}

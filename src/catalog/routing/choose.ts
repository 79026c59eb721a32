// The one choice: which of a service's ready endpoints a client uses, and in which order of groups. DNS and the kernel's rules
// take the first tier, Envoy and gRPC all of them. Pure, and stable: endpoints stay in the order they came in.

import type { SetLocality } from '../../clusterset/rules/locality.ts';
import { type Place, preferenceOf, tierOf } from './locality.ts';

export interface Candidate {
  readonly cluster: string;
  /** Its own zone; that of its cluster if empty or absent. */
  readonly zone?: string;
}

export interface Chooser {
  /** Where the client is. */
  readonly from: Place;
  readonly locality: SetLocality;
  /** The service's own wish; it wins over the set's preference. */
  readonly trafficDistribution: string | undefined;
}

interface Tier<T> {
  readonly endpoints: readonly T[];
}

export interface Choice<T> {
  /** Nearest first; never an empty one. */
  readonly tiers: readonly Tier<T>[];
}

export function choose<T extends Candidate>(ready: readonly T[], chooser: Chooser): Choice<T> {
  if (ready.length === 0) return { tiers: [] };
  if (preferenceOf(chooser.locality.preference, chooser.trafficDistribution) === 'Spread')
    return { tiers: [{ endpoints: ready }] };
  return { tiers: byDistance(ready, chooser) };
}

/** The endpoints that new connections go to. */
export function nearestOf<T>({ tiers }: Choice<T>): readonly T[] {
  return tiers[0]?.endpoints ?? [];
}

export function placeOfCandidate({ cluster, zone }: Candidate, { clusters }: SetLocality): Place {
  const known = clusters.get(cluster);
  return { cluster, zone: zone || known?.zone, region: known?.region };
}

function byDistance<T extends Candidate>(ready: readonly T[], { from, locality }: Chooser): Tier<T>[] {
  const byTier: T[][] = [];
  for (const endpoint of ready) (byTier[tierOf(from, placeOfCandidate(endpoint, locality))] ??= []).push(endpoint);
  const tiers: Tier<T>[] = [];
  for (const endpoints of byTier) if (endpoints !== undefined) tiers.push({ endpoints });
  return tiers;
}

// The one choice: which of a service's ready endpoints a client uses, with which shares, and which come after them. DNS and the
// kernel's rules take the lots, Envoy and gRPC also those that come later. Pure, and stable: endpoints stay in the order they came in.

import type { SetLocality } from '../locality.ts';
import { isNoRouting, noRouting, type Routing } from '../routing/routing.ts';
import { type Answering, type LeftEndpoint, leaveSilent } from './answering.ts';
import { type Place, preferenceOf, tierOf } from './locality.ts';
import { type Chosen, type LeftOut, type Reachable, reachable, type Ways } from './reachable.ts';
import { type Sharing, shareOut } from './shares.ts';

export interface Candidate extends Reachable {
  /** Its own zone; that of its cluster if empty or absent. */
  readonly zone?: string;
}

export interface Chooser<T = unknown> extends Ways {
  /** Where the client is. */
  readonly from: Place;
  readonly locality: SetLocality;
  /** The service's own wish; it wins over the set's preference. */
  readonly trafficDistribution: string | undefined;
  /** The import's routing; it has none if absent. */
  readonly routing?: Routing;
  /** What the client's own node has seen; absent where nobody looks. */
  readonly answering?: Answering<T>;
}

export interface Choice<T> extends Sharing<Chosen<T>> {
  /** Ready endpoints that this client cannot reach. */
  readonly leftOut: readonly LeftOut[];
  /** Ready endpoints that do not answer from here. */
  readonly left: readonly LeftEndpoint<T>[];
}

/** `unready` is looked at only where a policy wants a percentage to be ready. */
export function choose<T extends Candidate>(
  ready: readonly T[],
  chooser: Chooser<T>,
  unready: readonly Candidate[] = [],
): Choice<T> {
  const { reached, leftOut } = reachable(ready, chooser);
  const { kept, left } = leaveSilent<T>(reached, chooser.answering);
  // For a policy that wants some to be ready, those that do not answer are not.
  const missing = left.length === 0 ? unready : [...unready, ...left.map(({ endpoint }) => endpoint)];
  return { ...shared(kept, chooser, missing), leftOut, left };
}

function shared<T extends Candidate>(
  reached: readonly Chosen<T>[],
  chooser: Chooser<T>,
  unready: readonly Candidate[],
): Sharing<Chosen<T>> {
  if (reached.length === 0) return { lots: [], later: [] };
  const { from, locality, trafficDistribution, routing = noRouting } = chooser;
  const isSpread = preferenceOf(locality.preference, trafficDistribution) === 'Spread';
  if (isNoRouting(routing))
    return isSpread ? { lots: [{ share: 1, endpoints: reached }], later: [] } : byDistance(reached, chooser);
  return shareOut<Chosen<T>, Candidate>({
    ready: reached,
    unready,
    routing,
    clusterOf: ({ cluster }) => cluster,
    tierOf: isSpread ? () => 0 : (endpoint) => tierOf(from, placeOfCandidate(endpoint, locality)),
  });
}

/** The endpoints that new connections go to. */
export function chosenOf<T>({ lots }: Choice<T>): readonly Chosen<T>[] {
  return lots.length === 1 ? lots[0]!.endpoints : lots.flatMap(({ endpoints }) => endpoints);
}

export function placeOfCandidate({ cluster, zone }: Candidate, { clusters }: SetLocality): Place {
  const known = clusters.get(cluster);
  return { cluster, zone: zone || known?.zone, region: known?.region };
}

function byDistance<T extends Candidate>(
  ready: readonly Chosen<T>[],
  { from, locality }: Chooser<T>,
): Sharing<Chosen<T>> {
  const byTier: Chosen<T>[][] = [];
  for (const endpoint of ready) (byTier[tierOf(from, placeOfCandidate(endpoint, locality))] ??= []).push(endpoint);
  const [nearest, ...later] = byTier.filter((endpoints) => endpoints !== undefined);
  return { lots: [{ share: 1, endpoints: nearest! }], later };
}

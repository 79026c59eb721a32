// Leaves endpoints that are called ready and do not answer from here. Of one cluster at most half, or all of them if an endpoint of
// another cluster has answered lately; never the last. Pure, and stable: endpoints stay in the order they came in.

import type { Chosen } from './reachable.ts';

/** What this client has seen of endpoints itself. */
export interface Answering<T> {
  /** Since when an endpoint does not answer; undefined if it does, or if nothing is known. */
  readonly silentSinceMs: (endpoint: T) => number | undefined;
  readonly hasAnsweredLately: (endpoint: T) => boolean;
}

export interface LeftEndpoint<T> {
  readonly endpoint: Chosen<T>;
  readonly sinceMs: number;
}

export interface Kept<T> {
  readonly kept: readonly Chosen<T>[];
  readonly left: readonly LeftEndpoint<T>[];
}

export function leaveSilent<T extends { readonly cluster: string }>(
  reached: readonly Chosen<T>[],
  answering: Answering<T> | undefined,
): Kept<T> {
  const silent = new Map<Chosen<T>, number>();
  for (const endpoint of answering === undefined ? [] : reached) {
    // Those behind gateways are judged by the node's Envoy: they are reached only while a gateway answers.
    const sinceMs = endpoint.via === undefined ? answering!.silentSinceMs(endpoint) : undefined;
    if (sinceMs !== undefined) silent.set(endpoint, sinceMs);
  }
  if (silent.size === 0) return { kept: reached, left: [] };
  const clusters = [...Map.groupBy(reached, ({ cluster }) => cluster)].map(([cluster, endpoints]) => ({
    cluster,
    endpoints,
    hasAnswered: endpoints.some(
      (each) => each.via !== undefined || (!silent.has(each) && answering!.hasAnsweredLately(each)),
    ),
  }));
  const left = clusters.flatMap(({ cluster, endpoints }) => {
    const found = endpoints.filter((each) => silent.has(each));
    const isElsewhere = clusters.some((other) => other.cluster !== cluster && other.hasAnswered);
    if (found.length === endpoints.length) return isElsewhere ? found : [];
    // The longest silent ones first.
    found.sort((one, other) => silent.get(one)! - silent.get(other)!);
    return found.slice(0, Math.floor(endpoints.length / 2));
  });
  const gone = new Set(left);
  return {
    kept: reached.filter((each) => !gone.has(each)),
    left: left.map((endpoint) => ({ endpoint, sinceMs: silent.get(endpoint)! })),
  };
}

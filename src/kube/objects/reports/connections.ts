// Connections that a node proxy has counted, by service and the cluster that they went to, as its Lease carries them. Exact and only
// rising while the proxy runs. Pure.

import { isObject } from '../../../base/json.ts';

/** In the Lease of a node proxy: `{"shop/web":{"east":[120,118,1]}}`, tried, answered and reset. */
export const connectionsAnnotation = 'portolan.dev/connections';

export interface ConnectionCounts {
  /** Attempts: a client that asks again counts again. */
  readonly tried: number;
  readonly answered: number;
  /** Ended by the endpoint with a reset after it had answered. */
  readonly reset: number;
}

export const noConnections: ConnectionCounts = { tried: 0, answered: 0, reset: 0 };

/** By cluster. */
export type CountsByCluster = ReadonlyMap<string, ConnectionCounts>;

/** So many services are counted, each to so many clusters: a Lease stays small. */
export const countedServicesMax = 20;
const clustersMax = 100;

export function formatConnections(report: ReadonlyMap<string, CountsByCluster>): string {
  return JSON.stringify(
    Object.fromEntries(
      [...report]
        .slice(0, countedServicesMax)
        .map(([service, clusters]) => [
          service,
          Object.fromEntries(
            [...clusters]
              .slice(0, clustersMax)
              .map(([cluster, { tried, answered, reset }]) => [cluster, [tried, answered, reset]]),
          ),
        ]),
    ),
  );
}

/** Counts of one service; empty if there are none, or the text is invalid. */
export function readConnections(text: string | undefined, service: string): CountsByCluster {
  if (text === undefined) return new Map();
  try {
    const all: unknown = JSON.parse(text);
    const one = isObject(all) && Object.hasOwn(all, service) ? all[service] : undefined;
    if (!isObject(one)) return new Map();
    return new Map(Object.entries(one).flatMap(([cluster, counts]) => entryOf(cluster, counts)));
  } catch {
    return new Map();
  }
}

function entryOf(cluster: string, counts: unknown): [string, ConnectionCounts][] {
  if (!Array.isArray(counts) || counts.length !== 3 || !counts.every(isCount)) return [];
  const [tried, answered, reset] = counts as [number, number, number];
  return [[cluster, { tried, answered, reset }]];
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** What has come since `before`. Counters that are smaller than before have begun again. */
export function countsSince(before: ConnectionCounts, now: ConnectionCounts): ConnectionCounts {
  const isNew = now.tried < before.tried || now.answered < before.answered || now.reset < before.reset;
  if (isNew) return now;
  return {
    tried: now.tried - before.tried,
    answered: now.answered - before.answered,
    reset: now.reset - before.reset,
  };
}

export function addCounts(one: ConnectionCounts, other: ConnectionCounts): ConnectionCounts {
  return {
    tried: one.tried + other.tried,
    answered: one.answered + other.answered,
    reset: one.reset + other.reset,
  };
}

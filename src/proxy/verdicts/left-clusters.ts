// Which endpoints of a service are left now, by cluster, and what the Lease says of it. Pure.

import { compareText } from '../../base/compare-text.ts';
import type { SilentReport } from '../../kube/objects/reports/silent-clusters.ts';
import type { PortChoice } from '../port-choice.ts';

interface LeftCluster {
  /** Addresses and ports, in order. */
  readonly endpoints: readonly string[];
  /** Ready endpoints of the cluster, with those. */
  readonly of: number;
  /** Since when the first of them does not answer. */
  readonly sinceMs: number;
}

/** By cluster. */
export type LeftClusters = ReadonlyMap<string, LeftCluster>;

export function leftIn(ports: readonly PortChoice[]): LeftClusters {
  const clusters = new Map<string, { left: Map<string, number>; all: Set<string> }>();
  for (const { left = [], backends, later = [] } of ports) {
    const named = new Set(left.map(({ endpoint }) => endpoint.cluster));
    if (named.size === 0) continue;
    const of = (cluster: string) => {
      const known = clusters.get(cluster) ?? { left: new Map<string, number>(), all: new Set<string>() };
      clusters.set(cluster, known);
      return known;
    };
    for (const { endpoint, sinceMs } of left) {
      const key = `${endpoint.address} ${endpoint.port}`;
      of(endpoint.cluster).left.set(key, sinceMs);
      of(endpoint.cluster).all.add(key);
    }
    for (const { address, port, cluster } of [...backends, ...later.flat()])
      if (named.has(cluster)) of(cluster).all.add(`${address} ${port}`);
  }
  return new Map(
    [...clusters]
      .sort(([one], [other]) => compareText(one, other))
      .map(([cluster, { left, all }]) => {
        const endpoints = [...left.keys()].sort();
        return [cluster, { endpoints, of: all.size, sinceMs: Math.min(...left.values()) }];
      }),
  );
}

/** `offsetMs` leads from the clock of these times to milliseconds since 1970. */
export function silentReport(left: ReadonlyMap<string, LeftClusters>, offsetMs: number): SilentReport {
  return new Map(
    [...left].map(([service, clusters]) => [
      service,
      new Map(
        [...clusters].map(([cluster, { endpoints, of, sinceMs }]) => [
          cluster,
          { left: endpoints.length, of, sinceMs: Math.round((sinceMs + offsetMs) / 1000) * 1000 },
        ]),
      ),
    ]),
  );
}

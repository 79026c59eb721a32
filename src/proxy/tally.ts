// Sums of connections by service and cluster.

import {
  addCounts,
  type ConnectionCounts,
  type CountsByCluster,
  noConnections,
} from '../kube/objects/reports/connections.ts';

export class Tally {
  readonly #services = new Map<string, Map<string, ConnectionCounts>>();

  add(service: string, cluster: string, counts: Partial<ConnectionCounts>): void {
    const clusters = this.#services.get(service) ?? new Map<string, ConnectionCounts>();
    this.#services.set(service, clusters);
    clusters.set(cluster, addCounts(clusters.get(cluster) ?? noConnections, { ...noConnections, ...counts }));
  }

  /** Counts of others are forgotten. */
  keep(services: ReadonlySet<string>): void {
    for (const service of this.#services.keys()) if (!services.has(service)) this.#services.delete(service);
  }

  report(): ReadonlyMap<string, CountsByCluster> {
    return this.#services;
  }
}

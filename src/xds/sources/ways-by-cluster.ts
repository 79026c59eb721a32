// Ways that imports need at the node's Envoy, of all imports, by the cluster whose gateway is asked.

export class WaysByCluster<Way extends { readonly cluster: string }> {
  readonly #byCluster = new Map<string, Map<string, readonly Way[]>>();
  /** Only of imports that have some: few. */
  readonly #clustersOf = new Map<string, ReadonlySet<string>>();

  /** All that an import has now; returns the clusters whose ways may have changed. */
  replace(key: string, ways: readonly Way[]): Iterable<string> {
    const before = this.#clustersOf.get(key);
    if (before === undefined && ways.length === 0) return [];
    const byCluster = Map.groupBy(ways, ({ cluster }) => cluster);
    for (const cluster of before ?? []) if (!byCluster.has(cluster)) this.#byCluster.get(cluster)?.delete(key);
    for (const [cluster, own] of byCluster) {
      const keys = this.#byCluster.get(cluster) ?? new Map<string, readonly Way[]>();
      this.#byCluster.set(cluster, keys.set(key, own));
    }
    const clusters = new Set(byCluster.keys());
    if (clusters.size === 0) this.#clustersOf.delete(key);
    else this.#clustersOf.set(key, clusters);
    return clusters.union(before ?? new Set<string>());
  }

  of(cluster: string): readonly Way[] {
    return [...(this.#byCluster.get(cluster)?.values() ?? [])].flat();
  }
}

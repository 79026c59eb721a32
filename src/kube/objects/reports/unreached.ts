// Nodes whose proxies have reported that they cannot reach a cluster of another network, by cluster. Pure.

import { compareText } from '../../../base/compare-text.ts';
import type { Lease } from '../lease.ts';
import { partAnnotations } from '../part-lease.ts';

/** In an order that the informer does not change. */
export function unreachedIn(leases: readonly Lease[]): Map<string, string[]> {
  const nodes = new Map<string, string[]>();
  for (const { metadata } of leases) {
    const node = metadata.annotations?.[partAnnotations.node] || metadata.name;
    for (const cluster of (metadata.annotations?.[partAnnotations.unreached] ?? '').split(',').filter(Boolean))
      nodes.set(cluster, [...(nodes.get(cluster) ?? []), node].sort());
  }
  return new Map([...nodes].sort(([a], [b]) => compareText(a, b)));
}

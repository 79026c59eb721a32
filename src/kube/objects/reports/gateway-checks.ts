// The gateways of clusters in other networks, as the xDS servers of a cluster tried them: for each cluster why none of its
// gateways can be used, in the Leases of the servers. Pure.

import { isObject } from '../../../base/json.ts';
import type { Lease } from '../lease.ts';
import { partLabel, partState } from '../part-lease.ts';

/** A JSON object: the cluster, and why it is not reached; empty if a gateway of it answers. */
export const gatewaysAnnotation = 'portolan.dev/xds-gateways';

const clustersMax = 50;
const textMax = 300;

export function formatGatewayChecks(checks: ReadonlyMap<string, string>): string {
  const shown = [...checks].slice(0, clustersMax).map(([cluster, why]) => [cluster, why.slice(0, textMax)]);
  return JSON.stringify(Object.fromEntries(shown));
}

/** A cluster that one server reaches is reached. Servers that are silent or say nonsense do not count. */
export function gatewayChecks(leases: Iterable<Lease>, nowMs: number): Map<string, string> {
  const found = new Map<string, string>();
  for (const lease of leases) {
    if (lease.metadata.labels?.[partLabel] !== 'xds' || partState(lease, nowMs).kind !== 'reported') continue;
    for (const [cluster, why] of checksIn(lease)) if (found.get(cluster) !== '') found.set(cluster, why);
  }
  return new Map([...found].sort(([one], [other]) => (one < other ? -1 : 1)));
}

function checksIn({ metadata }: Lease): [string, string][] {
  try {
    const value: unknown = JSON.parse(metadata.annotations?.[gatewaysAnnotation] ?? '{}');
    if (!isObject(value)) return [];
    return Object.entries(value)
      .slice(0, clustersMax)
      .flatMap(([cluster, why]) => (typeof why === 'string' ? [[cluster, why.slice(0, textMax)]] : []));
  } catch {
    return [];
  }
}

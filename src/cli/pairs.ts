// How this cluster reaches the others, read at its own home.

import type { Clock } from '../base/world.ts';
import { pairsAtHome } from '../clusterset/explain/pairs-at-home.ts';
import { listAll } from '../clusterset/explain/set-state.ts';
import { clusterSetDnsName } from '../clusterset/rules/clusterset-dns.ts';
import type { PairReach } from '../clusterset/rules/networks/pairs.ts';
import { getOrUndefined } from '../kube/client/absent.ts';
import type { Client } from '../kube/client/client.ts';
import { isForbidden } from '../kube/objects/api-error.ts';
import { type ConfigMap, configMapType } from '../kube/objects/config-map.ts';
import { type Lease, leaseType } from '../kube/objects/lease.ts';
import { systemNamespace } from '../kube/objects/ours.ts';
import { partLabel } from '../kube/objects/part-lease.ts';

export interface PairsRequest {
  readonly self: string;
  readonly clock: Pick<Clock, 'wallMs'>;
  /** Clusters whose agents know no networks. */
  readonly older?: ReadonlySet<string>;
}

/** None where all clusters share one network. */
export async function readPairs(home: Client, { self, clock, older }: PairsRequest): Promise<PairReach[]> {
  const ref = { namespace: systemNamespace, name: clusterSetDnsName };
  const options = await getOrUndefined<ConfigMap>(home, configMapType, ref);
  const query = { namespace: systemNamespace, labelSelector: `${partLabel} in (proxy,xds)` };
  const leases = await listAll<Lease>(home, leaseType, query).catch((error: unknown) => {
    if (isForbidden(error)) return [];
    throw error;
  });
  return pairsAtHome({ self, options, leases, nowMs: clock.wallMs(), ...(older && { older }) });
}

/** None where there is nothing to say. */
export function formatPairs(pairs: readonly PairReach[]): string[] {
  return pairs.map(({ cluster, text }) => `reach: ${cluster} ${text}`);
}

// From what members export at the broker to what a federation's authority answers. Pure.

import type { Cluster } from '../../clusterset/kinds/cluster.ts';
import type { ServiceShard } from '../../clusterset/kinds/service-shard.ts';
import { parseRecordName } from '../../clusterset/rules/names.ts';
import type { Federation } from '../kinds/federation.ts';
import type { ShardKey, ShardRecord } from './record.ts';

/** Undefined for a record that is not named after a service, or of a cluster outside the federation. */
export function federatedShard(
  shard: ServiceShard,
  cluster: Cluster,
  federation: Federation,
): { readonly key: ShardKey; readonly record: ShardRecord } | undefined {
  const service = parseRecordName(shard.metadata.name);
  const { clusters } = federation.spec ?? {};
  if (!service || (clusters && !clusters.includes(cluster.metadata.name))) return undefined;
  const key = {
    federation: federation.metadata.name,
    namespace: service.namespace,
    service: service.name,
    cluster: cluster.metadata.name,
  };
  return { key, record: recordOf(shard, cluster) };
}

function recordOf({ spec }: ServiceShard, { spec: place }: Cluster): ShardRecord {
  // A service exported to some clusters only must not be handed to the others: it stays its own cluster's.
  const balancers = spec.exportTo === undefined ? (spec.loadBalancer ?? []) : [];
  return {
    clusterIPs: spec.clusterIPs ?? [],
    externalIPs: balancers.flatMap(({ ip }) => (ip ? [ip] : [])),
    hostnames: balancers.flatMap(({ ip, hostname }) => (hostname && !ip ? [hostname] : [])),
    ports: (spec.ports ?? []).map(({ name = '', protocol = 'TCP', port }) => ({ name, protocol, port })),
    ...(place.zone ? { zone: place.zone } : {}),
    ...(place.region ? { region: place.region } : {}),
    isReady: (spec.readyEndpoints ?? 0) > 0,
  };
}

// Where a node's Envoy answers whether it carries connections to a cluster in another network: one path for each cluster, on
// loopback, for the node's proxy. 200 while a gateway of the cluster passes its health checks, 503 while none does, 404 for
// clusters without a way. Pure.

import type { JsonObject } from '../../base/json.ts';
import { healthPath, healthPort } from '../../clusterset/rules/networks/listener-ports.ts';
import { anyAddress, socketAddress, typed } from '../bodies.ts';
import type { XdsResource } from '../resource.ts';
import { nearSideName } from './near-side.ts';

const name = 'gateways-health';

/** `address` is the only one that the Envoy listens on, if there is one. */
export function nearHealthResources(clusters: Iterable<string>, address = anyAddress): XdsResource[] {
  const filters = [...clusters].sort().map(healthFilter);
  if (filters.length === 0) return [];
  const config = typed('filters.network.http_connection_manager.v3.HttpConnectionManager', {
    stat_prefix: name,
    route_config: { name, virtual_hosts: [] },
    generate_request_id: false,
    http_filters: [...filters, { name: 'router', typed_config: typed('filters.http.router.v3.Router') }],
  });
  const body = {
    name,
    address: socketAddress(address === anyAddress ? '127.0.0.1' : address, healthPort),
    filter_chains: [{ filters: [{ name: 'http', typed_config: config }] }],
  };
  return [{ type: 'listener', name, body, causes: [] }];
}

/** One gateway of the sixteen that a cluster may have is more than one percent. */
function healthFilter(cluster: string): JsonObject {
  const config = typed('filters.http.health_check.v3.HealthCheck', {
    pass_through_mode: false,
    cluster_min_healthy_percentages: { [nearSideName(cluster)]: { value: 1 } },
    headers: [{ name: ':path', string_match: { exact: healthPath(cluster) } }],
  });
  return { name: `health of ${cluster}`, typed_config: config };
}

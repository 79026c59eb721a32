// The way from a node to a cluster in another network: a listener to which the kernel gives connections, and a few pooled
// connections to the gateways of that cluster, over which each is carried as a stream. A stream names its service by the
// address that the client connected to, so nothing here depends on the services; where that address is another one in that
// cluster, see named-ways.ts. Pure.

import type { JsonObject } from '../../base/json.ts';
import type { GatewayAddress } from '../../clusterset/rules/networks/networks.ts';
import { tcpLog } from '../access-logs/config.ts';
import {
  anyAddress,
  edsCluster,
  listenAddress,
  secretReference,
  socketAddress,
  tcpProxy,
  typed,
  upstreamTls,
} from '../bodies.ts';
import type { XdsResource } from '../resource.ts';
import { healthPath } from './names.ts';
import { nodeSecret, remoteSecret, tls13 } from './trust.ts';

export interface RemoteCluster {
  readonly id: string;
  readonly gateways: readonly GatewayAddress[];
  /** Where the kernel sends connections to this cluster. */
  readonly listenerPort: number;
  /** Trust domain of this cluster: the gateway finds by it which member calls. */
  readonly ownDomain: string;
}

/** Name of the listener for a cluster, and of the Envoy cluster of its gateways. */
export function nearSideName(id: string): string {
  return `gateway/${id}`;
}

export function nearSideResources(remote: RemoteCluster, address = anyAddress): XdsResource[] {
  const name = nearSideName(remote.id);
  const lb_endpoints = remote.gateways.map((gateway) => {
    return { endpoint: { address: socketAddress(gateway.address, gateway.port) } };
  });
  const assignment = { cluster_name: name, endpoints: lb_endpoints.length === 0 ? [] : [{ lb_endpoints }] };
  return [
    { type: 'cluster', name, body: clusterBody(name, remote), causes: [] },
    { type: 'endpoints', name, body: assignment, causes: [] },
    { type: 'listener', name, body: listenerBody(name, remote, address), causes: [] },
  ];
}

function listenerBody(name: string, { listenerPort }: RemoteCluster, address: string): JsonObject {
  return {
    name,
    address: listenAddress(address, listenerPort),
    listener_filters: [originalDestination()],
    filter_chains: [{ filters: [tunnel(name, '%DOWNSTREAM_LOCAL_ADDRESS%')] }],
  };
}

/** The address that the client connected to, in place of the one that the kernel gave the connection to. */
export function originalDestination(): JsonObject {
  return { name: 'original', typed_config: typed('filters.listener.original_dst.v3.OriginalDst') };
}

/**
 * A cluster that has just begun to export may be known here before its gateway is: it refuses for a moment. After a second and a half
 * in all the connection is closed.
 */
const triesAgain: JsonObject = {
  max_connect_attempts: 8,
  backoff_options: { base_interval: '0.1s', max_interval: '0.4s' },
};

/** `hostname` is what the gateway is asked for. */
export function tunnel(cluster: string, hostname: string): JsonObject {
  // For the gateway's log: what this side says, nothing more.
  const header = { key: 'x-forwarded-for', value: '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%' };
  return tcpProxy(cluster, {
    ...triesAgain,
    idle_timeout: '0s',
    access_log: [tcpLog('near-side')],
    tunneling_config: { hostname, headers_to_add: [{ header }] },
  });
}

const many = { max_connections: 1_000_000, max_pending_requests: 1_000_000, max_requests: 1_000_000 };

// No outlier detection: it counts a service that refuses against the gateway, and leaves the gateway for all services.
function clusterBody(name: string, { id, ownDomain }: RemoteCluster): JsonObject {
  const keepalive = { connection_keepalive: { interval: '2s', timeout: '1s' } };
  const options = typed('upstreams.http.v3.HttpProtocolOptions', {
    explicit_http_config: { http2_protocol_options: keepalive },
  });
  return {
    ...edsCluster(name),
    connect_timeout: '1s',
    circuit_breakers: { thresholds: [many] },
    health_checks: [
      {
        // Killed: left within a second. Silent: within 2.4 s, so that the kernel has left the cluster after 3. The timeout has room
        // for three round trips to another continent.
        ...{ timeout: '1s', interval: '0.2s', no_traffic_interval: '0.2s' },
        ...{ unhealthy_threshold: 2, healthy_threshold: 1 },
        http_health_check: { host: 'gateway', path: healthPath, codec_client_type: 'HTTP2' },
      },
    ],
    // A gateway that its cluster no longer publishes is left at once, though it still answers.
    ignore_health_on_host_removal: true,
    // None that answers: connections fail at once, in place of hanging at gateways that are down.
    common_lb_config: { healthy_panic_threshold: { value: 0 } },
    typed_extension_protocol_options: { 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': options },
    transport_socket: upstreamTls({
      sni: ownDomain,
      common_tls_context: {
        alpn_protocols: ['h2'],
        tls_params: tls13,
        tls_certificate_sds_secret_configs: [secretReference(nodeSecret)],
        validation_context_sds_secret_config: secretReference(remoteSecret(id)),
      },
    }),
  };
}

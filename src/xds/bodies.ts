// Parts of Envoy's resources that several generators need. Pure.

import type { JsonObject } from '../base/json.ts';

const extensions = 'type.googleapis.com/envoy.extensions.';

export function typed(name: string, fields: JsonObject = {}): JsonObject {
  return { '@type': `${extensions}${name}`, ...fields };
}

/** Everything we serve comes over the one stream. */
export const overAds: JsonObject = { ads: {}, resource_api_version: 'V3' };

export function socketAddress(address: string, port: number): JsonObject {
  return { socket_address: { address, port_value: port } };
}

/** IPv4 too. */
export const anyAddress = '::';

/** Where a listener listens. */
export function listenAddress(address: string, port: number): JsonObject {
  const both = address === anyAddress ? { ipv4_compat: true } : {};
  return { socket_address: { address, port_value: port, ...both } };
}

export function tcpProxy(cluster: string, more: JsonObject = {}): JsonObject {
  return {
    name: 'tcp',
    typed_config: typed('filters.network.tcp_proxy.v3.TcpProxy', { stat_prefix: cluster, cluster, ...more }),
  };
}

/** What a gRPC client without a proxy resolves under its target. */
export function apiListener(target: string, routes: JsonObject): JsonObject {
  const manager = typed('filters.network.http_connection_manager.v3.HttpConnectionManager', {
    stat_prefix: target,
    ...routes,
    http_filters: [{ name: 'router', typed_config: typed('filters.http.router.v3.Router') }],
  });
  return { name: target, api_listener: { api_listener: manager } };
}

/** For a `tcpProxy` that connects when it is known who calls. Data that comes earlier waits. */
export const afterHandshake: JsonObject = {
  upstream_connect_mode: 'ON_DOWNSTREAM_TLS_HANDSHAKE',
  max_early_data_bytes: 65_536,
};

/** Leads to the internal listener of the same name, with the filter state that is shared. */
export function internalCluster(name: string): JsonObject {
  const address = { envoy_internal_address: { server_listener_name: name, endpoint_id: name } };
  const raw = { name: 'raw', typed_config: typed('transport_sockets.raw_buffer.v3.RawBuffer') };
  const inside = typed('transport_sockets.internal_upstream.v3.InternalUpstreamTransport', { transport_socket: raw });
  const unlimited = { max_connections: 1_000_000, max_pending_requests: 1_000_000, max_connection_pools: 1_000_000 };
  return {
    name,
    type: 'STATIC',
    connect_timeout: '5s',
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }] },
    // Connections are bounded at the clusters of the backends.
    circuit_breakers: { thresholds: [unlimited] },
    transport_socket: { name: 'internal', typed_config: inside },
  };
}

export function tlsInspector(): JsonObject {
  return { name: 'tls', typed_config: typed('filters.listener.tls_inspector.v3.TlsInspector') };
}

export function edsCluster(name: string): JsonObject {
  return { name, type: 'EDS', connect_timeout: '5s', eds_cluster_config: { eds_config: overAds } };
}

/** For protocols that need HTTP/2 to the endpoint. */
export function http2Options(): JsonObject {
  const options = typed('upstreams.http.v3.HttpProtocolOptions', {
    explicit_http_config: { http2_protocol_options: {} },
  });
  return { 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': options };
}

export function upstreamTls(context: JsonObject): JsonObject {
  const typed_config = typed('transport_sockets.tls.v3.UpstreamTlsContext', context);
  return { name: 'envoy.transport_sockets.tls', typed_config };
}

export function downstreamTls(context: JsonObject): JsonObject {
  const typed_config = typed('transport_sockets.tls.v3.DownstreamTlsContext', context);
  return { name: 'envoy.transport_sockets.tls', typed_config };
}

export function secretReference(name: string): JsonObject {
  return { name, sds_config: overAds };
}

/** Both are always written: Envoy's default for the upper one is lower than what many servers ask for. */
export const tls12to13: JsonObject = {
  tls_minimum_protocol_version: 'TLSv1_2',
  tls_maximum_protocol_version: 'TLSv1_3',
};

/** An action of a filter chain matcher: the chain to take. */
export function takeChain(chain: string): JsonObject {
  const typed_config = { '@type': 'type.googleapis.com/google.protobuf.StringValue', value: chain };
  return { action: { name: 'chain', typed_config } };
}

export const networkInputs = 'matching.common_inputs.network.v3';

export function matchInput(name: string): JsonObject {
  return { name, typed_config: typed(`${networkInputs}.${name}`) };
}

export function isPort(port: unknown): port is number {
  return Number.isInteger(port) && (port as number) > 0 && (port as number) < 65_536;
}

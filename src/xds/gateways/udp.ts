// What both sides of UDP between networks have in common: a listener inside an Envoy that takes streams of CONNECT-UDP, and the
// cluster that leads there. Pure.

import type { JsonObject } from '../../base/json.ts';
import { typed } from '../bodies.ts';

/** As the upgrade is called in configurations. */
export const connectUdp = 'CONNECT-UDP';

/** Takes such streams and no other request. */
export function udpManager(name: string, routes: readonly JsonObject[]): JsonObject {
  const config = typed('filters.network.http_connection_manager.v3.HttpConnectionManager', {
    stat_prefix: name,
    codec_type: 'HTTP2',
    route_config: { name, virtual_hosts: [{ name, domains: ['*'], routes: [...routes] }] },
    // The other codec ends a connection, with all sessions on it, for many that are short: see bootstrap.ts.
    http2_protocol_options: { allow_connect: true, use_oghttp2_codec: true },
    upgrade_configs: [{ upgrade_type: connectUdp }],
    stream_idle_timeout: '0s',
    generate_request_id: false,
    http_filters: [{ name: 'router', typed_config: typed('filters.http.router.v3.Router') }],
  });
  return { name: 'http', typed_config: config };
}

/** For streams of CONNECT-UDP alone. */
export function udpRoute(route: JsonObject): JsonObject {
  const isUdp = { name: 'upgrade', string_match: { exact: 'connect-udp' } };
  return { match: { connect_matcher: {}, headers: [isUdp] }, route };
}

/** Leads to the internal listener of that name by HTTP/2. Whoever uses it sets bounds. */
export function insideCluster(name: string, listener: string, more: JsonObject = {}): JsonObject {
  const raw = { name: 'raw', typed_config: typed('transport_sockets.raw_buffer.v3.RawBuffer') };
  const inside = typed('transport_sockets.internal_upstream.v3.InternalUpstreamTransport', { transport_socket: raw });
  const options = typed('upstreams.http.v3.HttpProtocolOptions', {
    explicit_http_config: { http2_protocol_options: { allow_connect: true } },
  });
  const address = { envoy_internal_address: { server_listener_name: listener, endpoint_id: listener } };
  return {
    name,
    type: 'STATIC',
    connect_timeout: '5s',
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }] },
    typed_extension_protocol_options: { 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': options },
    transport_socket: { name: 'internal', typed_config: inside },
    ...more,
  };
}

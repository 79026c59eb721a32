// The gateway of a cluster: one port with mutual TLS, where members of the clusterset ask by HTTP CONNECT for services that
// are exported to them. Each member has a filter chain of its own, found by the name it asks for in TLS: a member that is
// removed loses its connections when its chain goes. Behind the CONNECT, each service has chains of its own in an internal
// listener, so that a service that is withdrawn loses its streams and no others. Pure; the order of the input never matters.

import type { JsonObject } from '../../base/json.ts';
import { httpLog } from '../access-logs/config.ts';
import {
  anyAddress,
  downstreamTls,
  listenAddress,
  matchInput,
  networkInputs,
  overAds,
  secretReference,
  takeChain,
  tlsInspector,
  typed,
} from '../bodies.ts';
import type { Cause, XdsResource } from '../resource.ts';
import { gatewayPort, healthPath, memberDomain, shardCount, shardListener } from './names.ts';
import {
  allow,
  callerHeader,
  exportsFilter,
  type GatewayMembers,
  gatewayRoutes,
  type PortChains,
  shardMetadata,
  shardSubsets,
  udpCallerHeader,
} from './service.ts';
import { gatewaySecret, memberSecret, tls13 } from './trust.ts';
import { connectUdp, insideCluster } from './udp.ts';

export interface GatewayInput extends GatewayMembers {
  readonly port?: number;
  /** Where it listens; everywhere if absent. */
  readonly address?: string;
}

/** In the filter state of a stream: what it asked for, and who asks. */
const callerKey = 'portolan.gateway.caller';
/** Streams that one member may have open at one gateway. */
const streamsMax = 10_000;
/** Beyond that they wait for one to end, and beyond this many they are refused: Envoy counts those that are just being opened here. */
const waitingMax = 1000;
/** Connections of one member: each of its nodes has a few. */
const connectionsMax = 10_000;

/** All but the services. Nothing without members that may call. */
export function gatewayResources(input: GatewayInput): XdsResource[] {
  const callers = [...new Set(input.callers)].sort();
  if (callers.length === 0) return [];
  return [
    { type: 'listener', name: 'gateway', body: listenerBody(callers, input), causes: [] },
    { type: 'route', name: gatewayRoutes, body: routesBody, causes: [] },
    ...callers.flatMap((id) =>
      [callerBody(callerCluster(id)), udpCallerBody(udpCallerCluster(id))].map((body): XdsResource => {
        return { type: 'cluster', name: String(body['name']), body, causes: [] };
      }),
    ),
  ];
}

/** One of the internal listeners; none while no service lies in it. */
export function shardResource(shard: number, ports: readonly PortChains[], causes: readonly Cause[]): XdsResource[] {
  const name = shardListener(shard);
  const chains = ports.flatMap((port) => port.chains).sort(byName);
  const matches = ports
    .flatMap((port) => Object.entries(port.matches))
    .sort(([one], [other]) => (one < other ? -1 : 1));
  if (chains.length === 0 || matches.length === 0) return [];
  const input = { name: 'caller', typed_config: typed(`${networkInputs}.FilterStateInput`, { key: callerKey }) };
  const map = Object.fromEntries(matches);
  const body = {
    name,
    internal_listener: {},
    filter_chains: chains,
    filter_chain_matcher: { matcher_tree: { input, prefix_match_map: { map } } },
  };
  return [{ type: 'listener', name, body, causes }];
}

function byName(one: JsonObject, other: JsonObject): number {
  return String(one['name']) < String(other['name']) ? -1 : 1;
}

function listenerBody(callers: readonly string[], input: GatewayInput): JsonObject {
  const { port = gatewayPort, address = anyAddress, clusterSet } = input;
  const domains = callers.map((id) => memberDomain(id, clusterSet));
  const map = Object.fromEntries(domains.map((domain) => [domain, takeChain(domain)]));
  return {
    name: 'gateway',
    // By this `portolan xds drain` tells it from the listeners inside.
    traffic_direction: 'INBOUND',
    address: listenAddress(address, port),
    listener_filters: [tlsInspector()],
    filter_chains: callers.map((id) => chainOf(id, memberDomain(id, clusterSet))),
    filter_chain_matcher: { matcher_tree: { input: matchInput('ServerNameInput'), exact_match_map: { map } } },
  };
}

function chainOf(id: string, domain: string): JsonObject {
  const context = {
    require_client_certificate: true,
    common_tls_context: {
      alpn_protocols: ['h2'],
      tls_params: tls13,
      tls_certificate_sds_secret_configs: [secretReference(gatewaySecret)],
      validation_context_sds_secret_config: secretReference(memberSecret(id)),
    },
  };
  const limit = typed('filters.network.connection_limit.v3.ConnectionLimit', {
    stat_prefix: 'gateway',
    max_connections: connectionsMax,
  });
  return {
    name: domain,
    filters: [{ name: 'limit', typed_config: limit }, manager(id)],
    transport_socket: downstreamTls(context),
    transport_socket_connect_timeout: '10s',
  };
}

function manager(id: string): JsonObject {
  const config = typed('filters.network.http_connection_manager.v3.HttpConnectionManager', {
    stat_prefix: 'gateway',
    codec_type: 'HTTP2',
    rds: { config_source: overAds, route_config_name: gatewayRoutes },
    access_log: [httpLog('gateway', { from: id })],
    early_header_mutation_extensions: [markCaller(id)],
    http2_protocol_options: { allow_connect: true, connection_keepalive: { interval: '30s', timeout: '10s' } },
    // UDP only where a virtual host wants it.
    upgrade_configs: [{ upgrade_type: 'CONNECT' }, { upgrade_type: connectUdp, enabled: false }],
    // A connection of an application may be silent for days.
    stream_idle_timeout: '0s',
    request_headers_timeout: '10s',
    generate_request_id: false,
    http_filters: [
      // First, so that it needs no permission.
      { name: 'health', typed_config: health },
      { name: exportsFilter, typed_config: typed('filters.http.rbac.v3.RBAC', allow([])) },
      {
        name: 'caller',
        typed_config: typed('filters.http.set_filter_state.v3.Config', { on_request_headers: [caller] }),
      },
      { name: 'router', typed_config: typed('filters.http.router.v3.Router') },
    ],
  });
  return { name: 'http', typed_config: config };
}

const health = typed('filters.http.health_check.v3.HealthCheck', {
  pass_through_mode: false,
  headers: [{ name: ':path', string_match: { exact: healthPath } }],
});

const caller: JsonObject = {
  object_key: callerKey,
  // Hashable: streams with different values never share a connection to an internal listener.
  factory_key: 'envoy.hashable_string',
  format_string: { text_format_source: { inline_string: '%REQ(:AUTHORITY)% %DOWNSTREAM_PEER_URI_SAN% ' } },
  shared_with_upstream: 'ONCE',
};

function markCaller(id: string): JsonObject {
  const headers = [
    { key: callerHeader, value: callerCluster(id) },
    { key: udpCallerHeader, value: udpCallerCluster(id) },
  ];
  const mutations = headers.map((header) => ({ append: { header, append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' } }));
  return {
    name: 'caller',
    typed_config: typed('http.early_header_mutation.header_mutation.v3.HeaderMutation', { mutations }),
  };
}

// Virtual hosts come one by one.
const routesBody: JsonObject = { name: gatewayRoutes, vhds: { config_source: overAds } };

function callerCluster(id: string): string {
  return `gateway-caller/${id}`;
}

function udpCallerCluster(id: string): string {
  return `gateway-udp-caller/${id}`;
}

/**
 * Leads to the internal listeners, and bounds the streams of one member. Without it, streams of a member that was removed are
 * refused on the connections that it still has.
 */
function callerBody(name: string): JsonObject {
  const raw = { name: 'raw', typed_config: typed('transport_sockets.raw_buffer.v3.RawBuffer') };
  const inside = typed('transport_sockets.internal_upstream.v3.InternalUpstreamTransport', { transport_socket: raw });
  const bounds = { max_connections: streamsMax, max_pending_requests: waitingMax, max_requests: streamsMax };
  return {
    ...{ name, type: 'STATIC', connect_timeout: '5s' },
    ...toShards(name),
    circuit_breakers: { thresholds: [bounds] },
    transport_socket: { name: 'internal', typed_config: inside },
  };
}

/** The same for streams of UDP, which go on as streams. */
function udpCallerBody(name: string): JsonObject {
  // Each service and caller has an HTTP/2 connection of its own inside.
  const bounds = { max_connections: streamsMax, max_pending_requests: waitingMax, max_requests: streamsMax };
  return insideCluster(name, shardListener(0), { ...toShards(name), circuit_breakers: { thresholds: [bounds] } });
}

function toShards(cluster_name: string): JsonObject {
  const lb_endpoints = Array.from({ length: shardCount }, (_, shard) => ({
    endpoint: {
      address: { envoy_internal_address: { server_listener_name: shardListener(shard), endpoint_id: String(shard) } },
    },
    metadata: shardMetadata(shard),
  }));
  return {
    load_assignment: { cluster_name, endpoints: [{ lb_endpoints }] },
    lb_subset_config: shardSubsets,
  };
}

// The Envoy clusters of a target. Hostnames and literal addresses never share one: a socket path in a cluster that
// resolves names is dropped without a word, and only hostnames rewrite Host. Pure.

import type { JsonObject } from '../../base/json.ts';
import { parseIp } from '../../base/net/ip.ts';
import type { ExternalEndpoint } from '../../external/kinds/mesh-external-service.ts';
import type { Speech, Target } from '../../external/rules/target.ts';
import type { TlsPlan } from '../../external/rules/tls-plan.ts';
import { unixPrefix } from '../../external/rules/validation/destination.ts';
import { blackholeName, extension, passthroughName } from './envoy-names.ts';
import { tlsSocket } from './tls-socket.ts';

/** Clusters that share the traffic of a target; one in most cases, none if it is closed. */
export interface WeightedCluster {
  readonly name: string;
  readonly weight: number;
  readonly body: JsonObject;
}

export function clustersOf(target: Target): WeightedCluster[] {
  const { destination, name, speech } = target;
  if (destination.kind === 'closed') return [];
  if (destination.kind === 'passthrough') return [{ name, weight: 1, body: originalDestination(name, speech) }];
  if (destination.kind === 'plugin') {
    return [{ name, weight: 1, body: { ...destination.made.cluster, name, ...protocolOptions(speech) } }];
  }
  const { endpoints, tls } = destination;
  const hostnames = endpoints.filter(({ address }) => !isLiteral(address));
  const literals = endpoints.filter(({ address }) => isLiteral(address));
  const isMixed = hostnames.length > 0 && literals.length > 0;
  const cluster = (group: readonly ExternalEndpoint[], suffix: string, make: typeof dnsCluster): WeightedCluster[] => {
    const own = isMixed ? `${name}_${suffix}` : name;
    return group.length === 0 ? [] : [{ name: own, weight: group.length, body: make(target, own, group, tls) }];
  };
  return [...cluster(hostnames, 'dns', dnsCluster), ...cluster(literals, 'static', staticCluster)];
}

/**
 * Clusters of every proxy: the way on for connections without a rule, and the end of connections to the proxy itself.
 */
export function sharedClusters(): JsonObject[] {
  const blackhole = { name: blackholeName, type: 'STATIC', load_assignment: { cluster_name: blackholeName } };
  return [originalDestination(passthroughName, 'bytes'), blackhole];
}

function originalDestination(name: string, speech: Speech): JsonObject {
  const common = { type: 'ORIGINAL_DST', lb_policy: 'CLUSTER_PROVIDED', connect_timeout: '5s' };
  return { name, ...common, ...protocolOptions(speech) };
}

function dnsCluster(
  target: Target,
  name: string,
  endpoints: readonly ExternalEndpoint[],
  tls: TlsPlan | undefined,
): JsonObject {
  return {
    name,
    type: 'STRICT_DNS',
    connect_timeout: '5s',
    dns_lookup_family: 'V4_PREFERRED',
    respect_dns_ttl: true,
    // One name that cannot be resolved must not hold up a proxy that starts.
    wait_for_warm_on_init: false,
    load_assignment: assignment(
      name,
      endpoints.map((endpoint) => ({ endpoint: lbEndpoint(endpoint, target.port) })),
    ),
    ...(tls === undefined ? {} : { transport_socket: tlsSocket({ target, plan: tls, peer: { kind: 'hostname' } }) }),
    ...protocolOptions(target.speech),
  };
}

function staticCluster(
  target: Target,
  name: string,
  endpoints: readonly ExternalEndpoint[],
  tls: TlsPlan | undefined,
): JsonObject {
  const members = endpoints.map((endpoint) => ({
    endpoint: lbEndpoint(endpoint, target.port),
    ...(tls?.names === 'own' ? { metadata: { filter_metadata: { [socketMatch]: { peer: endpoint.address } } } } : {}),
  }));
  return {
    ...{ name, type: 'STATIC', connect_timeout: '5s', load_assignment: assignment(name, members) },
    ...(tls === undefined ? {} : staticTls(target, endpoints, tls)),
    ...protocolOptions(target.speech),
  };
}

const socketMatch = 'envoy.transport_socket_match';

// By default each address is verified by itself, so each needs a socket of its own.
function staticTls(target: Target, endpoints: readonly ExternalEndpoint[], plan: TlsPlan): JsonObject {
  const socketFor = (address: string) => tlsSocket({ target, plan, peer: { kind: 'address', address } });
  if (plan.names !== 'own') return { transport_socket: socketFor('') };
  const addresses = [...new Set(endpoints.map(({ address }) => address))];
  return {
    transport_socket_matches: addresses.map((address) => ({
      ...{ name: address, match: { peer: address }, transport_socket: socketFor(address) },
    })),
  };
}

function assignment(name: string, members: readonly JsonObject[]): JsonObject {
  return { cluster_name: name, endpoints: [{ lb_endpoints: members }] };
}

function lbEndpoint({ address, port }: ExternalEndpoint, defaultPort: number): JsonObject {
  if (address.startsWith(unixPrefix)) return { address: { pipe: { path: address.slice(unixPrefix.length) } } };
  return { address: { socket_address: { address, port_value: port ?? defaultPort } } };
}

function isLiteral(address: string): boolean {
  return address.startsWith(unixPrefix) || parseIp(address) !== undefined;
}

const httpOptions = 'upstreams.http.v3.HttpProtocolOptions';

/** Where the proxy does not look inside, HTTP may pass too, in the version of the client. */
function protocolOptions(speech: Speech): JsonObject {
  const http2 = { http2_protocol_options: {} };
  const how = {
    http1: { explicit_http_config: { http_protocol_options: {} } },
    http2: { explicit_http_config: http2 },
    bytes: { use_downstream_protocol_config: { http_protocol_options: {}, ...http2 } },
  }[speech];
  return {
    typed_extension_protocol_options: {
      [`envoy.extensions.${httpOptions}`]: { '@type': extension(httpOptions), ...how },
    },
  };
}

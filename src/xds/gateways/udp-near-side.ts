// UDP to a cluster in another network: for each UDP port of a service a listener, whose sessions are streams of CONNECT-UDP
// (RFC 9298) to the gateways of that cluster, over the connections that TCP uses too. Sessions pass a cluster of their listener on
// their way, which bounds them: one service cannot take the streams of another. Pure; the order of the input never matters.

import type { JsonObject } from '../../base/json.ts';
import type { OwnerFacts } from '../../catalog/facts/facts.ts';
import type { UdpWay } from '../../clusterset/rules/networks/udp-ways.ts';
import { readRouting } from '../../clusterset/rules/routing/routing.ts';
import { anyAddress, listenAddress, typed } from '../bodies.ts';
import type { Cause, XdsResource } from '../resource.ts';
import { authorityOf, udpHost } from './names.ts';
import { nearSideName } from './near-side.ts';
import { insideCluster, udpManager, udpRoute } from './udp.ts';

export interface NamedUdpWay extends UdpWay {
  /** Of the service, in the zone of clusterset names. */
  readonly host: string;
  readonly cause: Cause;
}

/** Sessions of one listener. */
export const udpSessionsMax = 2000;
/** A session without a datagram in either direction ends: kernels forget the answer to a datagram after this time too. */
const idleTimeout = '30s';
/** Larger ones are dropped. */
const datagramBytesMax = 9000;

/** As the agent has written them on the import. */
export function udpWaysOf(key: string, owner: OwnerFacts, domain: string): NamedUdpWay[] {
  const [namespace, name] = (owner.traffic?.importedFrom || key).split('/');
  const cause = causeOf(key);
  return (readRouting(owner.routing).udp ?? [])
    .filter(({ port }) => owner.ports.some((each) => each.protocol === 'UDP' && each.port === port))
    .map((way) => ({ ...way, host: `${name}.${namespace}.svc.${domain}`, cause }));
}

function causeOf(key: string): Cause {
  const [namespace, name] = key.split('/');
  return { at: 'home', kind: 'ServiceImport', namespace: namespace!, name: name! };
}

/** None without ways. A listener port that two ways have is the first one's. */
export function udpNearSideResources(id: string, ways: Iterable<NamedUdpWay>, address = anyAddress): XdsResource[] {
  const byPort = new Map<number, NamedUdpWay>();
  for (const way of [...ways].sort((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1)))
    if (!byPort.has(way.listenerPort)) byPort.set(way.listenerPort, way);
  if (byPort.size === 0) return [];
  const inside = insideName(id);
  const all = [...byPort.values()];
  const causes = [...new Map(all.map(({ cause }) => [JSON.stringify(cause), cause])).values()];
  return [
    { type: 'listener', name: inside, body: insideListener(inside, id), causes },
    ...all.flatMap((way): XdsResource[] => {
      const [name, causes] = [nameOf(way), [way.cause]];
      const cluster = { ...insideCluster(name, inside), circuit_breakers: { thresholds: [bounds] } };
      return [
        { type: 'cluster', name, body: cluster, causes },
        { type: 'listener', name, body: listenerBody(name, way, address), causes },
      ];
    }),
  ];
}

// A session counts as a connection of its cluster.
const bounds = { max_connections: udpSessionsMax, max_requests: udpSessionsMax, max_pending_requests: udpSessionsMax };

function insideName(id: string): string {
  return `gateway-udp/${id}`;
}

function nameOf({ cluster, host, port }: NamedUdpWay): string {
  return `gateway-udp/${cluster}/${authorityOf(host, port)}`;
}

/** Chooses a gateway that answers for each session, and another one if it cannot be reached. */
function insideListener(name: string, id: string): JsonObject {
  const previous = { name: 'previous', typed_config: typed('retry.host.previous_hosts.v3.PreviousHostsPredicate') };
  const route = {
    cluster: nearSideName(id),
    timeout: '0s',
    retry_policy: {
      retry_on: 'connect-failure,refused-stream',
      num_retries: 2,
      host_selection_retry_max_attempts: 3,
      retry_host_predicate: [previous],
    },
  };
  return { name, internal_listener: {}, filter_chains: [{ filters: [udpManager(name, [udpRoute(route)])] }] };
}

function listenerBody(name: string, { host, port, listenerPort }: NamedUdpWay, address: string): JsonObject {
  const target = udpHost(host);
  const action = { name: 'route', typed_config: typed('filters.udp.udp_proxy.v3.Route', { cluster: name }) };
  const proxy = typed('filters.udp.udp_proxy.v3.UdpProxyConfig', {
    stat_prefix: name,
    idle_timeout: idleTimeout,
    matcher: { on_no_match: { action } },
    session_filters: [
      { name: 'capsules', typed_config: typed('filters.udp.udp_proxy.session.http_capsule.v3.FilterConfig') },
    ],
    tunneling_config: {
      ...{ proxy_host: target, proxy_port: port, target_host: target, default_target_port: port },
      // While the way is being made.
      buffer_options: { max_buffered_datagrams: 64, max_buffered_bytes: 65_536 },
    },
  });
  const { socket_address } = listenAddress(address, listenerPort) as { socket_address: JsonObject };
  return {
    name,
    address: { socket_address: { ...socket_address, protocol: 'UDP' } },
    udp_listener_config: { downstream_socket_config: { max_rx_datagram_size: datagramBytesMax } },
    listener_filters: [{ name: 'udp', typed_config: proxy }],
  };
}

// One port of an exported service at the gateway of its cluster: the virtual host that callers name and its permissions, the
// cluster of its endpoints, and the filter chains that carry it. Pure; the order of the input never matters.

import type { JsonObject } from '../../base/json.ts';
import { mayUse } from '../../clusterset/kinds/service-shard.ts';
import { edsCluster, socketAddress, takeChain, tcpProxy, typed } from '../bodies.ts';
import type { OwnEndpoint } from '../own-endpoints.ts';
import type { Cause, XdsResource } from '../resource.ts';
import { authorityOf, memberDomain, namespaceIdentities, nodeIdentities, shardOf } from './names.ts';
import { connectUdp, udpManager, udpRoute } from './udp.ts';

export interface ExportedPort {
  readonly namespace: string;
  readonly service: string;
  readonly port: number;
  /** Asked for by CONNECT-UDP, and by name alone. */
  readonly isUdp?: boolean;
  /** Clusterset addresses of the service, as this cluster has them. */
  readonly addresses: readonly string[];
  /** Name of the service in DNS, for callers that have another address for it. */
  readonly host: string;
  /** Ids of the clusters that may call it; undefined is all. */
  readonly exportTo: readonly string[] | undefined;
  /** Of other clusters: the namespaces that may call it. */
  readonly namespaces?: ReadonlyMap<string, readonly string[]>;
}

export interface GatewayMembers {
  /** This cluster's id. */
  readonly own: string;
  readonly clusterSet: string;
  /** Ids of the clusters that connect through gateways. */
  readonly callers: readonly string[];
}

/** The name of its cluster and of its virtual host. */
export function portName({ host, port }: Pick<ExportedPort, 'host' | 'port'>): string {
  return authorityOf(host, port);
}

/** All that a stream may ask for to get this port. */
export function authoritiesOf({ addresses, host, port }: ExportedPort): string[] {
  return [...new Set([...addresses, host])].map((each) => authorityOf(each, port)).sort();
}

/** Who may call: a member with all of its proxies, or one of its namespaces. */
interface AllowedCaller {
  /** In the name of its chain. */
  readonly who: string;
  /** Beginnings of identities. */
  readonly identities: readonly string[];
}

function allowedCallers(exported: ExportedPort, { own, callers, clusterSet }: GatewayMembers): 'all' | AllowedCaller[] {
  if (exported.exportTo === undefined) return 'all';
  const domainOf = (id: string) => memberDomain(id, clusterSet);
  return [...callers].sort().flatMap((id): AllowedCaller[] => {
    const domain = domainOf(id);
    if (mayUse(exported.exportTo, { exporter: own, reader: id }))
      return [{ who: `of ${id}`, identities: [nodeIdentities(domain), namespaceIdentities(domain)] }];
    const namespaces = exported.namespaces?.get(id) ?? [];
    return namespaces.map((namespace) => {
      return { who: `of ${namespace} in ${id}`, identities: [namespaceIdentities(domain, namespace)] };
    });
  });
}

const unlimited: JsonObject = {
  thresholds: [{ max_connections: 1_000_000, max_pending_requests: 1_000_000, max_requests: 1_000_000 }],
};

/** `authorities` are those that lead to this port alone: an ambiguous one is refused. */
export function portResources(
  exported: ExportedPort,
  { authorities, members }: { readonly authorities: readonly string[]; readonly members: GatewayMembers },
): XdsResource[] {
  const causes = [causeOf(exported)];
  const name = portName(exported);
  const body = { ...edsCluster(name), connect_timeout: '1s', circuit_breakers: unlimited };
  const cluster: XdsResource = { type: 'cluster', name, body, causes };
  if (authorities.length === 0) return [cluster];
  return [cluster, { type: 'virtual-host', name: hostResource(name), body: hostBody(), causes }];

  function hostBody(): JsonObject {
    const allowed = allowedCallers(exported, members);
    const rbac = allowed === 'all' ? allowAll : allow(allowed.flatMap(({ identities }) => identities));
    return {
      name: hostResource(name),
      domains: [...authorities],
      routes: [exported.isUdp ? udpRoute(udpRouteTo(shardOf(name))) : tcpRoute(shardOf(name))],
      typed_per_filter_config: { [exportsFilter]: typed('filters.http.rbac.v3.RBACPerRoute', { rbac }) },
    };
  }
}

export function portEndpoints(exported: ExportedPort, endpoints: readonly OwnEndpoint[]): XdsResource {
  const name = portName(exported);
  const lb_endpoints = endpoints.map(({ address, port }) => ({ endpoint: { address: socketAddress(address, port) } }));
  const body = { cluster_name: name, endpoints: lb_endpoints.length === 0 ? [] : [{ lb_endpoints }] };
  return { type: 'endpoints', name, body, causes: [causeOf(exported)] };
}

/** Chains of the internal listener, and what leads to each: the beginning of `<authority> <identity of the caller>`. */
export interface PortChains {
  readonly chains: readonly JsonObject[];
  readonly matches: Readonly<Record<string, JsonObject>>;
}

/**
 * One chain for each caller that the export names, or one for all: taking one away ends the connections of that caller to
 * that service, and no others.
 */
export function portChains(
  exported: ExportedPort,
  { authorities, members }: { readonly authorities: readonly string[]; readonly members: GatewayMembers },
): PortChains {
  const cluster = portName(exported);
  const allowed = allowedCallers(exported, members);
  const callers: readonly AllowedCaller[] = allowed === 'all' ? [{ who: 'all', identities: [''] }] : allowed;
  const chains = callers.map(({ who }) => ({ name: `${cluster} ${who}`, filters: [carrier(exported)] }));
  const matches = authorities.flatMap((authority) =>
    callers.flatMap(({ who, identities }) =>
      identities.map((prefix) => [`${authority} ${prefix}`, takeChain(`${cluster} ${who}`)] as const),
    ),
  );
  return { chains, matches: Object.fromEntries(matches) };
}

/** To the endpoints. */
function carrier(exported: ExportedPort): JsonObject {
  const cluster = portName(exported);
  if (!exported.isUdp)
    return tcpProxy(cluster, { stat_prefix: 'gateway', max_connect_attempts: 3, idle_timeout: '0s' });
  const upgrade_configs = [{ upgrade_type: connectUdp, connect_config: {} }];
  return udpManager('gateway-udp', [udpRoute({ cluster, timeout: '0s', idle_timeout: udpIdle, upgrade_configs })]);
}

/** Longer than the near side keeps a session without datagrams: of one that went away nothing stays. */
const udpIdle = '60s';

export const gatewayRoutes = 'gateway';
/** The filter that a virtual host gives its permissions. */
export const exportsFilter = 'exports';
/** Names the cluster that bounds the streams of one caller; written by the gateway itself. */
export const callerHeader = 'x-portolan-caller';
/** The same for streams of UDP. */
export const udpCallerHeader = 'x-portolan-udp-caller';
const shardKey = 'shard';

export function shardMetadata(shard: number): JsonObject {
  return { filter_metadata: { 'envoy.lb': { [shardKey]: String(shard) } } };
}

export const shardSubsets: JsonObject = {
  fallback_policy: 'NO_FALLBACK',
  subset_selectors: [{ keys: [shardKey] }],
};

function tcpRoute(shard: number): JsonObject {
  const upgrade_configs = [{ upgrade_type: 'CONNECT', connect_config: {} }];
  const route = { ...routeTo(shard), cluster_header: callerHeader, upgrade_configs };
  return { match: { connect_matcher: {} }, route };
}

/** As it came: it ends behind the chain of its service, so that it can be cut there. */
function udpRouteTo(shard: number): JsonObject {
  const upgrade_configs = [{ upgrade_type: connectUdp, enabled: true }];
  return { ...routeTo(shard), cluster_header: udpCallerHeader, idle_timeout: udpIdle, upgrade_configs };
}

function routeTo(shard: number): JsonObject {
  return { metadata_match: shardMetadata(shard), timeout: '0s' };
}

const anything = { permissions: [{ any: true }] };
const allowAll: JsonObject = {
  rules: { action: 'ALLOW', policies: { all: { ...anything, principals: [{ any: true }] } } },
};

/** Identities with these beginnings, and nobody if there are none. */
export function allow(identities: readonly string[]): JsonObject {
  if (identities.length === 0) return { rules: { action: 'ALLOW', policies: {} } };
  const principals = identities.map((prefix) => ({ authenticated: { principal_name: { prefix } } }));
  return { rules: { action: 'ALLOW', policies: { callers: { ...anything, principals } } } };
}

// Envoy finds the route configuration of a virtual host by what stands before the slash.
function hostResource(name: string): string {
  return `${gatewayRoutes}/${name}`;
}

function causeOf({ namespace, service }: ExportedPort): Cause {
  return { at: 'home', kind: 'ServiceImport', namespace, name: service };
}

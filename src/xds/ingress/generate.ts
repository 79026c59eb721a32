// The ingress that peers connect to: it routes by SNI and, unless a workload does so itself, ends the mutual TLS in the
// workload's name. A connection with an unknown SNI finds no filter chain and is closed. Behind the TLS, each caller of a
// service has a filter chain of its own, in an internal listener: taking it away ends that caller's connections and no
// others. Pure; the order of the input never matters.

import type { JsonObject } from '../../base/json.ts';
import { isProxyIdentity, meshIdentity, proxyIdentityPrefix } from '../../peering/kinds/proxy-identity.ts';
import {
  afterHandshake,
  anyAddress,
  downstreamTls,
  edsCluster,
  internalCluster,
  listenAddress,
  matchInput,
  networkInputs,
  secretReference,
  socketAddress,
  takeChain,
  tcpProxy,
  tls12to13,
  tlsInspector,
  typed,
} from '../bodies.ts';
import { endpointsOf } from '../own-endpoints.ts';
import type { Cause, XdsResource } from '../resource.ts';
import type { Withheld } from '../withheld.ts';

export const ingressPort = 15_443;

/** The internal listener, and the cluster that leads to it. */
const callersName = 'ingress-callers';
/** No SNI is this, and no chain. */
const nobody = 'nobody.invalid';
/** In the filter state of a connection: its SNI and its caller. */
const callerKey = 'portolan.caller';

/** One service that is shared with peers. */
export interface SharedRoute {
  /** The ServiceID by which consumers ask for it. */
  readonly sni: string;
  /** The identity that consumers verify. */
  readonly san: string;
  readonly tls: 'terminate' | 'passthrough';
  /** Names of the peers that may call it. */
  readonly peers: readonly string[];
  readonly backend: Backend;
  readonly cause: Cause;
}

/** A Service of this cluster, and the one of its ports that peers reach. */
export interface Backend {
  readonly namespace: string;
  readonly service: string;
  readonly portName: string;
  /** Name of the port in the slices of its import; undefined if the clusterset has no such port. */
  readonly importedPortName?: string | undefined;
}

export interface IngressInput {
  readonly routes: readonly SharedRoute[];
  /** Whether a certificate for this identity can be shown. */
  readonly hasCertificate: (san: string) => boolean;
  /** Undefined while no roots are known. */
  readonly trustOf: (peer: string) => CallerTrust | undefined;
  readonly port?: number;
  /** Where it listens; everywhere if absent. */
  readonly address?: string;
  /** No new connection is admitted; those that are open go on. */
  readonly isClosed?: boolean;
}

export interface IngressOutcome {
  readonly resources: readonly XdsResource[];
  readonly withheld: readonly Withheld[];
}

export function ingressResources(input: IngressInput): IngressOutcome {
  const withheld: Withheld[] = [];
  const bySni = new Map<string, SharedRoute>();
  for (const route of [...input.routes].sort(byCause)) {
    const reason = whyNot(route, bySni.get(route.sni.toLowerCase()), input);
    if (reason === undefined) bySni.set(route.sni.toLowerCase(), route);
    else withheld.push({ cause: route.cause, reason });
  }
  const served = [...bySni].sort(([one], [other]) => (one < other ? -1 : 1));
  if (served.length === 0) return { resources: [], withheld };
  const backends = new Map(served.map(([, { backend, cause }]) => [backendName(backend), cause]));
  const causes = causesOf(served);
  const resources: XdsResource[] = [
    { type: 'listener', name: 'ingress', body: listenerBody(served, input), causes },
    ...[...backends].map(([name, cause]): XdsResource => {
      return { type: 'cluster', name, body: edsCluster(name), causes: [cause] };
    }),
  ];
  const callers = callersOf(served, input);
  if (callers.size > 0)
    resources.push(
      { type: 'cluster', name: callersName, body: internalCluster(callersName), causes },
      { type: 'listener', name: callersName, body: callersListener(callers), causes },
    );
  return { resources, withheld };
}

function backendName({ namespace, service, portName }: Backend): string {
  return `export/${namespace}/${service}/${portName}`;
}

/** `imported`: those behind its import, of every cluster that exports it. */
export function backendEndpoints(
  backend: Backend,
  slices: Parameters<typeof endpointsOf>[0],
  imported: Parameters<typeof endpointsOf>[0] = [],
): XdsResource {
  const name = backendName(backend);
  const { portName, importedPortName } = backend;
  const own = endpointsOf(slices).get(portName) ?? [];
  const others = importedPortName === undefined ? [] : (endpointsOf(imported).get(importedPortName) ?? []);
  const all = new Map([...own, ...others].map((one) => [`${one.address} ${one.port}`, one]));
  const lb_endpoints = [...all]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([, { address, port }]) => ({ endpoint: { address: socketAddress(address, port) } }));
  const cause: Cause = { at: 'home', kind: 'Service', namespace: backend.namespace, name: backend.service };
  const body = { cluster_name: name, endpoints: lb_endpoints.length === 0 ? [] : [{ lb_endpoints }] };
  return { type: 'endpoints', name, body, causes: [cause] };
}

function workloadSecret(san: string): string {
  return `ingress/workload/${san}`;
}

export function workloadResource(san: string, pair: { certificate: string; key: string }): XdsResource {
  const name = workloadSecret(san);
  const tls_certificate = {
    certificate_chain: { inline_string: pair.certificate },
    private_key: { inline_string: pair.key },
  };
  return { type: 'secret', name, body: { name, tls_certificate }, causes: [] };
}

export interface CallerTrust {
  readonly peer: string;
  readonly domain: string;
  readonly bundle: string;
  /** Any identity of the trust domain if empty. */
  readonly identities: readonly string[];
}

const callersSecret = 'ingress/callers';

/**
 * All that may call anything: the internal listener decides who may call what. One secret under one name, so that a
 * change of it is no change of a filter chain. Roots are confined to their own trust domain: those of one peer are
 * invalid for another.
 */
export function callersResource(callers: readonly CallerTrust[], causes: readonly Cause[]): XdsResource {
  const byDomain = new Map<string, CallerTrust[]>();
  for (const caller of [...callers].sort(byPeer)) {
    const same = byDomain.get(caller.domain);
    if (same === undefined) byDomain.set(caller.domain, [caller]);
    else same.push(caller);
  }
  const domains = [...byDomain].sort(([one], [other]) => (one < other ? -1 : 1));
  const trust_domains = domains.map(([name, all]) => {
    const inline_string = [...new Set(all.map(({ bundle }) => bundle))].join('');
    return { name, trust_bundle: { inline_string } };
  });
  const validator = typed('transport_sockets.tls.v3.SPIFFECertValidatorConfig', { trust_domains });
  const matchers = domains.flatMap(([domain, all]): JsonObject[] => {
    const callers = all.map(mayCall);
    const below = new Set(callers.flatMap((one) => one.below));
    if (below.has(anyOf(domain))) return [anyBelow(anyOf(domain))];
    const exact = [...new Set(callers.flatMap((one) => one.exact))].sort();
    return [...exact.map((identity) => ({ exact: identity })), ...[...below].sort().map(anyBelow)];
  });
  const validation_context = {
    match_typed_subject_alt_names: matchers.map((matcher) => ({ san_type: 'URI', matcher })),
    custom_validator_config: { name: 'envoy.tls.cert_validator.spiffe', typed_config: validator },
  };
  return { type: 'secret', name: callersSecret, body: { name: callersSecret, validation_context }, causes };
}

function anyOf(domain: string): string {
  return `spiffe://${domain}/`;
}

interface Callers {
  readonly exact: readonly string[];
  /** Beginnings of identities. */
  readonly below: readonly string[];
}

// The admin of a peer pins the identity of the mesh; its proxies call in the mesh's name, unless they are pinned one by one.
function mayCall({ domain, identities }: CallerTrust): Callers {
  if (identities.length === 0) return { exact: [], below: [anyOf(domain)] };
  const isForItsProxies = identities.includes(meshIdentity(domain)) && !identities.some(isProxyIdentity);
  return { exact: identities, below: isForItsProxies ? [proxyIdentityPrefix(domain)] : [] };
}

// A query or a fragment behind it is no part of an identity.
function anyBelow(prefix: string): JsonObject {
  return { safe_regex: { regex: `${prefix.replaceAll('.', '\\.')}[A-Za-z0-9._/-]+` } };
}

function whyNot(route: SharedRoute, other: SharedRoute | undefined, input: IngressInput): string | undefined {
  if (other !== undefined) {
    const { kind, namespace, name } = other.cause;
    return `its SNI ${route.sni} belongs to ${kind} ${namespace}/${name}; give one of them another serviceId`;
  }
  if (route.tls === 'passthrough') return undefined;
  const unknown = route.peers.filter((peer) => input.trustOf(peer) === undefined);
  if (unknown.length === route.peers.length)
    return `no roots are known for ${unknown.join(', ')}; set spec.trust of the Peer`;
  if (!input.hasCertificate(route.san))
    return `this mesh has no authority that issues ${route.san}; let the workload end the TLS (tls: passthrough)`;
  return undefined;
}

function listenerBody(served: readonly (readonly [string, SharedRoute])[], input: IngressInput): JsonObject {
  const { port = ingressPort, address = anyAddress } = input;
  // A change of the matcher alone drains no chain. An empty map would be refused.
  const admitted = input.isClosed ? [[nobody, nobody]] : served.map(([sni]) => [sni, sni]);
  const map = Object.fromEntries(admitted.map(([sni, chain]) => [sni!, takeChain(chain!)]));
  return {
    name: 'ingress',
    address: listenAddress(address, port),
    listener_filters: [tlsInspector()],
    filter_chains: served.map(([sni, route]) => chainOf(sni, route)),
    filter_chain_matcher: { matcher_tree: { input: matchInput('ServerNameInput'), exact_match_map: { map } } },
  };
}

function chainOf(name: string, { tls, san, backend }: SharedRoute): JsonObject {
  if (tls === 'passthrough') return { name, filters: [tcpProxy(backendName(backend))] };
  const context = {
    require_client_certificate: true,
    common_tls_context: {
      tls_params: tls12to13,
      tls_certificate_sds_secret_configs: [secretReference(workloadSecret(san))],
      validation_context_sds_secret_config: secretReference(callersSecret),
    },
  };
  const filters = [rememberCaller(name), tcpProxy(callersName, afterHandshake)];
  return { name, filters, transport_socket: downstreamTls(context) };
}

/** The space at the end tells an identity from a longer one that begins like it. */
function rememberCaller(sni: string): JsonObject {
  const value = {
    object_key: callerKey,
    // Hashable: connections with different values never share a connection to the internal listener.
    factory_key: 'envoy.hashable_string',
    format_string: { text_format_source: { inline_string: `${sni} %DOWNSTREAM_PEER_URI_SAN% ` } },
    read_only: true,
    shared_with_upstream: 'ONCE',
  };
  const typed_config = typed('filters.network.set_filter_state.v3.Config', { on_downstream_tls_handshake: [value] });
  return { name: 'caller', typed_config };
}

/** By the beginning of what `rememberCaller` writes: the cluster of the backend. */
function callersOf(
  served: readonly (readonly [string, SharedRoute])[],
  { trustOf }: IngressInput,
): ReadonlyMap<string, string> {
  const callers = new Map<string, string>();
  for (const [sni, { tls, peers, backend }] of served) {
    if (tls === 'passthrough') continue;
    for (const trust of peers.map(trustOf)) {
      if (trust === undefined) continue;
      const { exact, below } = mayCall(trust);
      for (const caller of [...exact.map((identity) => `${identity} `), ...below])
        callers.set(`${sni} ${caller}`, backendName(backend));
    }
  }
  return callers;
}

function callersListener(callers: ReadonlyMap<string, string>): JsonObject {
  const sorted = [...callers].sort(([one], [other]) => (one < other ? -1 : 1));
  const input = { name: 'caller', typed_config: typed(`${networkInputs}.FilterStateInput`, { key: callerKey }) };
  const map = Object.fromEntries(sorted.map(([caller]) => [caller, takeChain(caller)]));
  return {
    name: callersName,
    internal_listener: {},
    filter_chains: sorted.map(([name, backend]) => {
      return { name, filters: [tcpProxy(backend, { stat_prefix: `${backend} ${name}` })] };
    }),
    filter_chain_matcher: { matcher_tree: { input, prefix_match_map: { map } } },
  };
}

function causesOf(served: readonly (readonly [string, SharedRoute])[]): Cause[] {
  const causes = new Map(served.map(([, { cause }]) => [`${cause.namespace}/${cause.name}`, cause]));
  return [...causes.values()];
}

function byPeer(one: CallerTrust, other: CallerTrust): number {
  return one.peer < other.peer ? -1 : 1;
}

function byCause(one: SharedRoute, other: SharedRoute): number {
  const key = ({ cause, sni }: SharedRoute) => `${cause.namespace}/${cause.name}/${sni}`;
  return key(one) < key(other) ? -1 : 1;
}

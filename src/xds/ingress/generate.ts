// The ingress that peers connect to: it routes by SNI and, unless a workload does so itself, ends the mutual TLS in the
// workload's name. A connection with an unknown SNI finds no filter chain and is closed. Pure; the order of the input
// never matters.

import type { JsonObject } from '../../base/json.ts';
import { digestOf } from '../../kube/objects/bounded-name.ts';
import {
  anyAddress,
  downstreamTls,
  edsCluster,
  listenAddress,
  matchInput,
  secretReference,
  socketAddress,
  takeChain,
  tcpProxy,
  tls12to13,
  tlsInspector,
  typed,
} from '../bodies.ts';
import { endpointsOf } from '../clusterset/service.ts';
import type { Cause, XdsResource } from '../resource.ts';
import type { Withheld } from '../withheld.ts';

export const ingressPort = 15_443;

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
}

export interface IngressInput {
  readonly routes: readonly SharedRoute[];
  /** Whether a certificate for this identity can be shown. */
  readonly hasCertificate: (san: string) => boolean;
  readonly hasTrust: (peer: string) => boolean;
  readonly port?: number;
  /** Where it listens; everywhere if absent. */
  readonly address?: string;
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
  const resources: XdsResource[] = [
    { type: 'listener', name: 'ingress', body: listenerBody(served, input), causes: causesOf(served) },
    ...[...backends].map(([name, cause]): XdsResource => {
      return { type: 'cluster', name, body: edsCluster(name), causes: [cause] };
    }),
  ];
  return { resources, withheld };
}

export function backendName({ namespace, service, portName }: Backend): string {
  return `export/${namespace}/${service}/${portName}`;
}

export function backendEndpoints(backend: Backend, slices: Parameters<typeof endpointsOf>[0]): XdsResource {
  const name = backendName(backend);
  const lb_endpoints = (endpointsOf(slices).get(backend.portName) ?? []).map(({ address, port }) => ({
    endpoint: { address: socketAddress(address, port) },
  }));
  const cause: Cause = { at: 'home', kind: 'Service', namespace: backend.namespace, name: backend.service };
  const body = { cluster_name: name, endpoints: lb_endpoints.length === 0 ? [] : [{ lb_endpoints }] };
  return { type: 'endpoints', name, body, causes: [cause] };
}

export function workloadSecret(san: string): string {
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

export function callersSecret(peers: readonly string[]): string {
  return `ingress/callers/${digestOf([...peers].sort().join(' '))}`;
}

/** Roots are confined to their own trust domain: those of one peer are invalid for another. */
export function callersResource(callers: readonly CallerTrust[], cause: Cause): XdsResource {
  const name = callersSecret(callers.map(({ peer }) => peer));
  const sorted = [...callers].sort((one, other) => (one.domain < other.domain ? -1 : 1));
  const trust_domains = sorted.map(({ domain, bundle }) => ({ name: domain, trust_bundle: { inline_string: bundle } }));
  const validator = typed('transport_sockets.tls.v3.SPIFFECertValidatorConfig', { trust_domains });
  const matchers = sorted.flatMap(({ domain, identities }): JsonObject[] =>
    identities.length === 0 ? [{ prefix: `spiffe://${domain}/` }] : identities.map((exact) => ({ exact })),
  );
  const validation_context = {
    match_typed_subject_alt_names: matchers.map((matcher) => ({ san_type: 'URI', matcher })),
    custom_validator_config: { name: 'envoy.tls.cert_validator.spiffe', typed_config: validator },
  };
  return { type: 'secret', name, body: { name, validation_context }, causes: [cause] };
}

function whyNot(route: SharedRoute, other: SharedRoute | undefined, input: IngressInput): string | undefined {
  if (other !== undefined) {
    const { kind, namespace, name } = other.cause;
    return `its SNI ${route.sni} belongs to ${kind} ${namespace}/${name}; give one of them another serviceId`;
  }
  if (route.tls === 'passthrough') return undefined;
  const unknown = route.peers.filter((peer) => !input.hasTrust(peer));
  if (unknown.length === route.peers.length)
    return `no roots are known for ${unknown.join(', ')}; set spec.trust of the Peer`;
  if (!input.hasCertificate(route.san))
    return `this mesh has no authority that issues ${route.san}; let the workload end the TLS (tls: passthrough)`;
  return undefined;
}

function listenerBody(served: readonly (readonly [string, SharedRoute])[], input: IngressInput): JsonObject {
  const { port = ingressPort, address = anyAddress } = input;
  const map = Object.fromEntries(served.map(([sni]) => [sni, takeChain(sni)]));
  return {
    name: 'ingress',
    address: listenAddress(address, port),
    listener_filters: [tlsInspector()],
    filter_chains: served.map(([sni, route]) => chainOf(sni, route)),
    filter_chain_matcher: { matcher_tree: { input: matchInput('ServerNameInput'), exact_match_map: { map } } },
  };
}

function chainOf(name: string, { tls, san, peers, backend }: SharedRoute): JsonObject {
  const chain = { name, filters: [tcpProxy(backendName(backend))] };
  if (tls === 'passthrough') return chain;
  const context = {
    require_client_certificate: true,
    common_tls_context: {
      tls_params: tls12to13,
      tls_certificate_sds_secret_configs: [secretReference(workloadSecret(san))],
      validation_context_sds_secret_config: secretReference(callersSecret(peers)),
    },
  };
  return { ...chain, transport_socket: downstreamTls(context) };
}

function causesOf(served: readonly (readonly [string, SharedRoute])[]): Cause[] {
  const causes = new Map(served.map(([, { cause }]) => [`${cause.namespace}/${cause.name}`, cause]));
  return [...causes.values()];
}

function byCause(one: SharedRoute, other: SharedRoute): number {
  const key = ({ cause, sni }: SharedRoute) => `${cause.namespace}/${cause.name}/${sni}`;
  return key(one) < key(other) ? -1 : 1;
}

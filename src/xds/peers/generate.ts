// A service that a peer shares, as the consumer's proxy reaches it: mutual TLS to the owner's ingress, the SNI that
// routes there, and the one name that the workload's certificate must have. Pure.

import { isIP } from 'node:net';
import type { JsonObject } from '../../base/json.ts';
import { type PeerService, reachOf } from '../../peering/kinds/peer-service.ts';
import { authoritySecret } from '../../peering/kinds/secrets.ts';
import type { SharedEndpoint } from '../../peering/kinds/shared-service.ts';
import {
  edsCluster,
  isPort,
  overAds,
  secretReference,
  socketAddress,
  tcpProxy,
  tls12to13,
  upstreamTls,
} from '../bodies.ts';
import type { Cause, XdsResource } from '../resource.ts';

export const identitySecret = 'peering/identity';
const sniBytesMax = 255;

function trustSecret(peer: string): string {
  return `peering/trust/${peer}`;
}

export type PeerOutcome =
  | { readonly kind: 'served'; readonly resources: readonly XdsResource[] }
  /** Nothing is served rather than something unverified. */
  | { readonly kind: 'withheld'; readonly reason: string };

/** The addresses of an ingress that is a name. */
export type FoundAddresses =
  /** It was not looked up yet: proxies keep what they have. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'found'; readonly usable: readonly string[]; readonly whyNot: readonly string[] };

export interface PeerOptions {
  readonly hasTrust: (peer: string) => boolean;
  /** Whether proxies are given certificates of their own. */
  readonly hasIdentity: boolean;
  /** Where a name leads, judged; Envoy is given addresses alone, so that it connects to no other. */
  readonly addressesOf: (name: string) => FoundAddresses;
  /** The proxy listens on the service's address itself; otherwise the kernel redirects connections to it. */
  readonly isBound?: boolean;
}

export function peerServiceResources(service: PeerService, options: PeerOptions): PeerOutcome {
  const { hasTrust, hasIdentity, isBound = false } = options;
  const { peer, ingress, sni, sans, ips, state } = reachOf(service);
  const endpoints = ingress.filter(({ address, port }) => address !== '' && isPort(port));
  if (state === 'Refused') return withheld('the service was refused');
  if (endpoints.length === 0) return withheld('it has no ingress to connect to');
  if (sans.length === 0) return withheld('it names no identity by which its workload could be verified');
  if (Buffer.byteLength(sni) > sniBytesMax) return withheld(`its SNI has more than ${sniBytesMax} bytes`);
  if (!hasTrust(peer)) return withheld(`no roots are known for peer ${peer}; set spec.trust of the Peer`);
  if (!hasIdentity)
    return withheld(`this mesh has no authority that issues certificates to its proxies (Secret ${authoritySecret})`);
  const reached = reachedBy(endpoints, options.addressesOf);
  if (reached.kind === 'nowhere') return withheld(reached.reason);
  const { name, namespace = '' } = service.metadata;
  const causes: Cause[] = [{ at: 'home', kind: 'PeerService', namespace, name }];
  const cluster = `peer/${name}`;
  const make = (type: XdsResource['type'], resource: string, body: JsonObject): XdsResource => {
    return { type, name: resource, body, causes };
  };
  const tls = { transport_socket: upstreamTls(tlsContext({ peer, sni, sans })) };
  const isNamed = endpoints.some(({ address }) => isIP(address) === 0);
  const resources = [make('cluster', cluster, { ...(isNamed ? namedCluster(cluster) : edsCluster(cluster)), ...tls })];
  if (reached.kind === 'endpoints') {
    const lb_endpoints = reached.endpoints.map(lbEndpoint);
    resources.push(make('endpoints', cluster, { cluster_name: cluster, endpoints: [{ lb_endpoints }] }));
  }
  const ports = [...new Set(endpoints.map(({ port }) => port))].sort((one, other) => one - other);
  for (const ip of ips.filter((text) => isIP(text) !== 0)) {
    for (const port of ports) {
      const listener = `${cluster} ${ip} ${port}`;
      const chain = { filters: [tcpProxy(cluster)] };
      const body = { name: listener, address: socketAddress(ip, port), bind_to_port: isBound, filter_chains: [chain] };
      resources.push(make('listener', listener, body));
    }
  }
  return { kind: 'served', resources };
}

/** A proxy's own certificate, which it shows to the ingresses of peers. */
export function identityResource({ certificate, key }: { certificate: string; key: string }): XdsResource {
  const body = {
    name: identitySecret,
    tls_certificate: { certificate_chain: { inline_string: certificate }, private_key: { inline_string: key } },
  };
  return { type: 'secret', name: identitySecret, body, causes: [] };
}

export function trustResource(peer: { name: string; namespace: string; bundle: string }): XdsResource {
  const name = trustSecret(peer.name);
  const body = { name, validation_context: { trusted_ca: { inline_string: peer.bundle } } };
  return {
    type: 'secret',
    name,
    body,
    causes: [{ at: 'home', kind: 'Peer', namespace: peer.namespace, name: peer.name }],
  };
}

function withheld(reason: string): PeerOutcome {
  return { kind: 'withheld', reason };
}

function lbEndpoint({ address, port }: { readonly address: string; readonly port: number }): JsonObject {
  return { endpoint: { address: socketAddress(address, port) } };
}

type Reached =
  | { readonly kind: 'endpoints'; readonly endpoints: readonly SharedEndpoint[] }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'nowhere'; readonly reason: string };

function reachedBy(endpoints: readonly SharedEndpoint[], addressesOf: PeerOptions['addressesOf']): Reached {
  const reached: SharedEndpoint[] = [];
  const reasons: string[] = [];
  let isUnknown = false;
  for (const { address, port } of endpoints) {
    if (isIP(address) !== 0) {
      reached.push({ address, port });
      continue;
    }
    const found = addressesOf(address);
    if (found.kind === 'unknown') {
      isUnknown = true;
      continue;
    }
    for (const one of found.usable) reached.push({ address: one, port });
    if (found.usable.length === 0) reasons.push(`${address}: ${found.whyNot[0] ?? 'the name has no address'}`);
  }
  if (reached.length > 0) return { kind: 'endpoints', endpoints: reached };
  return isUnknown ? { kind: 'unknown' } : { kind: 'nowhere', reason: reasons.join('; ') };
}

// A name that was not looked up yet must not keep a starting Envoy from its listeners.
function namedCluster(name: string): JsonObject {
  return { ...edsCluster(name), eds_cluster_config: { eds_config: { ...overAds, initial_fetch_timeout: '1s' } } };
}

function tlsContext({ peer, sni, sans }: { peer: string; sni: string; sans: readonly string[] }): JsonObject {
  return {
    sni,
    common_tls_context: {
      tls_params: tls12to13,
      tls_certificate_sds_secret_configs: [secretReference(identitySecret)],
      combined_validation_context: {
        default_validation_context: {
          match_typed_subject_alt_names: sans.map((san) => ({ san_type: 'URI', matcher: { exact: san } })),
        },
        validation_context_sds_secret_config: secretReference(trustSecret(peer)),
      },
    },
  };
}

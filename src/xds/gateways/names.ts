// Names that a gateway and the proxies that connect to it have in common: identities of members, and how a stream names the
// service it wants. Pure.

import { createHash } from 'node:crypto';
import { isIP } from 'node:net';

/** Where a gateway accepts connections of other members. */
export const gatewayPort = 15_443;
export const healthPath = '/healthz';

/** Every member is a trust domain of its own: its root is good for no other name. */
export function memberDomain(cluster: string, clusterSet: string): string {
  return `${cluster}.${clusterSet}`;
}

export function gatewayIdentity(domain: string): string {
  return `spiffe://${domain}/gateway`;
}

/** Beginning of the identities of a member's proxies. The slash at the end tells a domain from a longer one. */
export function nodeIdentities(domain: string): string {
  return `spiffe://${domain}/node/`;
}

/** Beginning of the identities that a member's proxies have for Pods of one of its namespaces, or of any. */
export function namespaceIdentities(domain: string, namespace?: string): string {
  return `spiffe://${domain}/ns/${namespace === undefined ? '' : `${namespace}/`}`;
}

/** `name` is that of the proxy: letters, digits, dots, dashes and underscores. */
export function nodeIdentity(domain: string, name: string): string {
  return `${nodeIdentities(domain)}${name}`;
}

/** As Envoy writes the destination of a connection. */
export function authorityOf(host: string, port: number): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}

/** How a stream of UDP names a service: always by name, and never as one of TCP does. */
export function udpHost(host: string): string {
  return `udp.${host}`;
}

/** The name of one endpoint of a headless service; `host` is that of the service. */
export function endpointHost(
  { label, cluster }: { readonly label: string; readonly cluster: string },
  host: string,
): string {
  return `${label}.${cluster}.${host}`;
}

/**
 * Chains of services lie in this many internal listeners, so that one that comes or goes moves a part of them. It never
 * changes: a service whose chain moved to another listener would lose its connections.
 */
export const shardCount = 64;

export function shardOf(name: string): number {
  return createHash('sha256').update(name).digest().readUInt32BE() % shardCount;
}

export function shardListener(shard: number): string {
  return `gateway-services-${shard}`;
}

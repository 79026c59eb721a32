// Endpoints of headless services in other networks: each has a virtual address at the importing cluster, and a label by which the
// gateway of its cluster is asked for it. Both sides make the same labels of the same endpoints, and carry the same of them. Pure.

import { createHash } from 'node:crypto';
import { formatIp, parseIp } from '../../../base/net/ip.ts';
import type { Endpoint } from '../../../kube/objects/endpoint-slice.ts';

/** For one service in one cluster: at a gateway each takes about 56 KB, at the importing cluster an AddressClaim. */
export const virtualEndpointsMax = 100;

/** On an imported slice whose addresses are virtual: they lead through a gateway. */
export const virtualAddressesLabel = 'portolan.dev/virtual-addresses';

const hostnamePattern = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** Its hostname; for one without, a label that hides its address, which means nothing in another network. Undefined without an address. */
export function endpointLabel({ hostname, addresses }: Pick<Endpoint, 'hostname' | 'addresses'>): string | undefined {
  const address: unknown = Array.isArray(addresses) ? addresses[0] : undefined;
  if (typeof address !== 'string') return undefined;
  if (typeof hostname === 'string' && hostnamePattern.test(hostname)) return hostname;
  const ip = parseIp(address);
  const text = ip === undefined ? address : formatIp(ip);
  return `ep-${createHash('sha256').update(text).digest('hex').slice(0, 10)}`;
}

/** Those that are carried, in the order of the ordinals of a StatefulSet. */
export function carriedLabels(labels: Iterable<string>): string[] {
  return [...new Set(labels)].sort(byOrdinal).slice(0, virtualEndpointsMax);
}

function byOrdinal(one: string, other: string): number {
  return one.length - other.length || (one < other ? -1 : 1);
}

/** Addresses of the endpoints of one cluster, by `virtualKey`. */
export type VirtualAddresses = ReadonlyMap<string, string>;

export function virtualKey(family: 'IPv4' | 'IPv6', label: string): string {
  return `${family} ${label}`;
}

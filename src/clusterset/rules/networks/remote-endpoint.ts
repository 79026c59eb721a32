// An endpoint of another network as an importing home holds it: it is counted, and has no address that anybody could dial. Its
// slice is one of FQDNs, whose names end in .invalid and say only the family; it is never ready, so that no other reader of
// slices uses it, and serving where the endpoint is ready for traffic through a gateway. Pure.

import type { Endpoint } from '../../../kube/objects/endpoint-slice.ts';

const names = { IPv4: 'ipv4.gateway.invalid', IPv6: 'ipv6.gateway.invalid' } as const;

export function remoteEndpoint(family: 'IPv4' | 'IPv6', zone: string | undefined, isUsable: boolean): Endpoint {
  const conditions = { ready: false, serving: isUsable, terminating: false };
  return { addresses: [names[family]], conditions, ...(zone === undefined ? {} : { zone }) };
}

/** Undefined if the address is not that of an endpoint of another network. */
export function remoteFamily(address: unknown): 'IPv4' | 'IPv6' | undefined {
  if (address === names.IPv4) return 'IPv4';
  return address === names.IPv6 ? 'IPv6' : undefined;
}

/** Whether new connections may go to an endpoint of an import, by whichever way. */
export function isOffered(endpoint: Endpoint): boolean {
  if (remoteFamily(endpoint.addresses?.[0]) !== undefined) return isServingRemotely(endpoint);
  return endpoint.conditions?.ready !== false;
}

export function isServingRemotely({ conditions }: Endpoint): boolean {
  return conditions?.serving === true;
}

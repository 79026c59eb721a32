// An endpoint of another network as an importing home holds it: it is counted, and has no address that anybody could dial. Its
// slice is one of FQDNs, whose names end in .invalid and say only the family; it is never ready, so that no other reader of
// slices uses it, and serving where the endpoint is ready for traffic through a gateway. Pure.

import type { Endpoint } from '../../../kube/objects/endpoint-slice.ts';

const names = { IPv4: 'ipv4.gateway.invalid', IPv6: 'ipv6.gateway.invalid' } as const;
/**
 * Of endpoints that a gateway has to be asked for by name, because its cluster has another clusterset address for the service. A
 * name of their own: a data plane that knows nothing of it uses none of them, where it would otherwise ask for another service.
 */
const askedByName = { IPv4: 'ipv4.name.gateway.invalid', IPv6: 'ipv6.name.gateway.invalid' } as const;

export interface RemoteEndpointFacts {
  readonly zone?: string | undefined;
  readonly isUsable: boolean;
  readonly isAskedByName?: boolean;
}

export function remoteEndpoint(family: 'IPv4' | 'IPv6', facts: RemoteEndpointFacts): Endpoint {
  const { zone, isUsable, isAskedByName = false } = facts;
  const conditions = { ready: false, serving: isUsable, terminating: false };
  const address = (isAskedByName ? askedByName : names)[family];
  return { addresses: [address], conditions, ...(zone === undefined ? {} : { zone }) };
}

/** Undefined if the address is not that of an endpoint of another network. */
export function remoteFamily(address: unknown): 'IPv4' | 'IPv6' | undefined {
  if (address === names.IPv4 || address === askedByName.IPv4) return 'IPv4';
  return address === names.IPv6 || address === askedByName.IPv6 ? 'IPv6' : undefined;
}

export function isAskedByName(address: unknown): boolean {
  return address === askedByName.IPv4 || address === askedByName.IPv6;
}

/** Whether new connections may go to an endpoint of an import, by whichever way. */
export function isOffered(endpoint: Endpoint): boolean {
  if (remoteFamily(endpoint.addresses?.[0]) !== undefined) return isServingRemotely(endpoint);
  return endpoint.conditions?.ready !== false;
}

export function isServingRemotely({ conditions }: Endpoint): boolean {
  return conditions?.serving === true;
}

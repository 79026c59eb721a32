// AddressClaim: who holds a virtual address in this cluster. Its name is the address, so that creating it is the lock.

import { formatIp, parseIp } from '../base/net/ip.ts';
import type { KubernetesObject, ResourceType } from '../kube/objects/object.ts';

export const addressClaimType: ResourceType = {
  group: 'portolan.dev',
  version: 'v1alpha1',
  plural: 'addressclaims',
  kind: 'AddressClaim',
  isNamespaced: false,
};

export interface AddressClaim extends KubernetesObject {
  spec: {
    /** In its canonical form. */
    address: string;
    owner: { kind: string; namespace?: string; name: string };
    /** When it was released; absent while it is held. */
    releasedAt?: string;
  };
}

/** Object names hold no colons: an IPv6 address is written with all its groups and dashes between them. */
export function addressClaimName(address: string): string {
  const ip = parseIp(address);
  if (ip === undefined || ip.family === 'IPv4') return address;
  const groups = Array.from({ length: 8 }, (_, index) => (ip.value >> BigInt(112 - 16 * index)) & 0xffffn);
  return groups.map((group) => group.toString(16)).join('-');
}

/** Undefined for a name that is no address, or not the one name that an address has. */
export function addressOfClaimName(name: string): string | undefined {
  const ip = parseIp(name.replaceAll('-', ':'));
  const address = ip && formatIp(ip);
  return address !== undefined && addressClaimName(address) === name ? address : undefined;
}

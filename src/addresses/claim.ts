// PLACEHOLDER shapes until address-claim.ts lands

import { formatIp, parseIp } from '../model/ip.ts';
import type { KubernetesObject, ResourceType } from '../model/object.ts';
import { apiVersionOf } from '../model/object.ts';
import type { AddressOwner } from './candidates.ts';

export const addressClaimType: ResourceType = {
  group: 'portolan.dev',
  version: 'v1alpha1',
  plural: 'addressclaims',
  kind: 'AddressClaim',
  isNamespaced: false,
};

export type AddressPool = 'clusterset' | 'peers' | 'external';

export interface AddressClaim extends KubernetesObject {
  spec: {
    pool: AddressPool;
    owner: { group?: string; kind: string; namespace?: string; name: string };
    releasedAt?: string;
  };
}

/** Object names hold no colons: an IPv6 address is written in full, with dashes. */
export function claimName(address: string): string {
  const ip = parseIp(address);
  if (ip === undefined || ip.family === 'IPv4') return address;
  const groups = Array.from({ length: 8 }, (_, index) => (ip.value >> BigInt(112 - 16 * index)) & 0xffffn);
  return groups.map((group) => group.toString(16).padStart(4, '0')).join('-');
}

/** The address that a claim is named after, in its canonical text. */
export function claimedAddress(claim: AddressClaim): string {
  const { name } = claim.metadata;
  const ip = parseIp(name.includes('.') ? name : name.replaceAll('-', ':'));
  return ip === undefined ? name : formatIp(ip);
}

export function claimFor(owner: AddressOwner, pool: AddressPool, address: string): AddressClaim {
  const { namespace, ...rest } = owner;
  return {
    apiVersion: apiVersionOf(addressClaimType),
    kind: addressClaimType.kind,
    metadata: { name: claimName(address) },
    spec: { pool, owner: namespace === '' ? rest : owner },
  };
}

export function ownerKey({ kind, namespace, name }: AddressClaim['spec']['owner']): string {
  return `${kind}/${namespace ?? ''}/${name}`;
}

export function isClaimOf(claim: AddressClaim, owner: AddressOwner): boolean {
  return ownerKey(claim.spec.owner) === ownerKey(owner);
}

// The claims of one owner: how they are made, and how they are told from those of others. Pure.

import { formatIp, parseIp } from '../base/net/ip.ts';
import { apiVersionOf } from '../kube/objects/object.ts';
import { type AddressClaim, addressClaimName, addressClaimType } from './address-claim.ts';
import type { AddressOwner } from './candidates.ts';

export function claimFor(owner: AddressOwner, address: string): AddressClaim {
  const { namespace, ...rest } = owner;
  return {
    apiVersion: apiVersionOf(addressClaimType),
    kind: addressClaimType.kind,
    metadata: { name: addressClaimName(address) },
    spec: { address: canonicalAddress(address), owner: namespace === '' ? rest : owner },
  };
}

export function ownerKey({ kind, namespace, name }: AddressClaim['spec']['owner']): string {
  return `${kind}/${namespace ?? ''}/${name}`;
}

export function isClaimOf(claim: AddressClaim, owner: AddressOwner): boolean {
  return ownerKey(claim.spec.owner) === ownerKey(owner);
}

export function canonicalAddress(address: string): string {
  const ip = parseIp(address);
  return ip === undefined ? address : formatIp(ip);
}

// The claims of one owner: how they are made, and how they are told from those of others. Pure.

import { formatIp, parseIp } from '../base/net/ip.ts';
import { apiVersionOf } from '../kube/objects/object.ts';
import { type AddressClaim, addressClaimName, addressClaimType } from './address-claim.ts';
import type { AddressOwner } from './candidates.ts';

/** Which part of its owner a claim is for; none for the owner's own address. */
const partAnnotation = 'portolan.dev/part';

export function claimFor({ kind, namespace, name, part }: AddressOwner, address: string): AddressClaim {
  const metadata = { name: addressClaimName(address) };
  return {
    apiVersion: apiVersionOf(addressClaimType),
    kind: addressClaimType.kind,
    metadata: part === undefined ? metadata : { ...metadata, annotations: { [partAnnotation]: part } },
    spec: {
      address: canonicalAddress(address),
      owner: namespace === '' ? { kind, name } : { kind, namespace, name },
    },
  };
}

export function ownerKey({ kind, namespace, name }: AddressClaim['spec']['owner']): string {
  return `${kind}/${namespace ?? ''}/${name}`;
}

export function isClaimOf(claim: AddressClaim, owner: AddressOwner): boolean {
  return partOf(claim) === owner.part && ownerKey(claim.spec.owner) === ownerKey(owner);
}

export function partOf({ metadata }: AddressClaim): string | undefined {
  return metadata.annotations?.[partAnnotation];
}

export function canonicalAddress(address: string): string {
  const ip = parseIp(address);
  return ip === undefined ? address : formatIp(ip);
}

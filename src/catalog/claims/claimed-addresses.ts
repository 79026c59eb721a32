// Which owner each virtual address belongs to, by the AddressClaims of the home, packed into bytes: there may be a hundred
// thousand. Pure.

import { type AddressClaim, addressClaimName } from '../../addresses/address-claim.ts';
import { type AddressRight, addressRight } from '../../addresses/address-right.ts';
import { ownerKey } from '../../addresses/claim.ts';
import { type IpRange, isInRange, parseIp } from '../../base/net/ip.ts';
import { PackedMap } from '../packed/packed-map.ts';

const importKind = 'ServiceImport';
/** A claim that names no owner: its address belongs to none. */
const nobody = '//';

export class ClaimedAddresses {
  /** `ownerKey` by the name of the claim. */
  readonly #owners = new PackedMap();
  #ranges: readonly IpRange[] = [];
  #isListed = false;

  /** Ranges that agents allocate from. */
  get ranges(): readonly IpRange[] {
    return this.#ranges;
  }

  setRanges(ranges: readonly IpRange[]): void {
    this.#ranges = ranges;
  }

  get isListed(): boolean {
    return this.#isListed;
  }

  /** Until all claims were listed once, no address counts as unclaimed. */
  setListed(): void {
    this.#isListed = true;
  }

  upsert(claim: AddressClaim): void {
    this.#owners.setText(claim.metadata.name, Buffer.from(ownerOf(claim)));
  }

  remove(name: string): void {
    this.#owners.deleteText(name);
  }

  keys(): IterableIterator<string> {
    return this.#owners.textKeys();
  }

  compact(): void {
    this.#owners.compact();
  }

  get memoryBytes(): number {
    return this.#owners.memoryBytes;
  }

  /** `namespace/name` of the import that the claim of this name is for; undefined if there is none. */
  importOf(name: string): string | undefined {
    return importKeyOf(this.#ownerOf(name));
  }

  rightOf(address: string, importKey: string): AddressRight {
    const claimedBy = this.#ownerOf(addressClaimName(address));
    const isAllocated = claimedBy === undefined && this.isAllocated(address);
    return addressRight({ owner: `${importKind}/${importKey}`, claimedBy, isAllocated });
  }

  /** Whether agents allocate from its range; not known before all claims were listed. */
  isAllocated(address: string): boolean {
    if (!this.#isListed || this.#ranges.length === 0) return false;
    const ip = parseIp(address);
    return ip !== undefined && this.#ranges.some((range) => isInRange(ip, range));
  }

  #ownerOf(name: string): string | undefined {
    const bytes = this.#owners.get(Buffer.from(name));
    return bytes && Buffer.from(bytes).toString();
  }
}

/** `namespace/name` of the import that a claim is for; undefined if it is for something else. */
export function importOfClaim(claim: AddressClaim): string | undefined {
  return importKeyOf(ownerOf(claim));
}

function ownerOf({ spec }: AddressClaim): string {
  const owner = spec?.owner;
  return owner?.name ? ownerKey(owner) : nobody;
}

function importKeyOf(owner: string | undefined): string | undefined {
  return owner?.startsWith(`${importKind}/`) ? owner.slice(importKind.length + 1) : undefined;
}

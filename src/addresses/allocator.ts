// Holds virtual IPs for owners by AddressClaims in one home. Correct by one thing alone: a claim is named after its
// address, so two can never be created. Everything else here only chooses good addresses and keeps them.

import type { Log } from '../base/log.ts';
import { type IpFamily, type IpRange, parseIp } from '../base/net/ip.ts';
import type { World } from '../base/world.ts';
import { deleteIfPresent, getOrUndefined } from '../kube/client/absent.ts';
import type { Client } from '../kube/client/client.ts';
import type { InformerReader } from '../kube/controller/informer.ts';
import { isAlreadyExists, isConflict } from '../kube/objects/api-error.ts';
import { formatTime } from '../kube/objects/conditions.ts';
import { addressHoldMs } from '../kube/objects/ours.ts';
import { type AddressClaim, addressClaimName, addressClaimType, addressOfClaimName } from './address-claim.ts';
import { type AddressOwner, candidates } from './candidates.ts';
import { canonicalAddress, claimFor, isClaimOf, ownerKey, partOf } from './claim.ts';

export interface AllocatorOptions {
  readonly home: Client;
  readonly world: Pick<World, 'clock'>;
  readonly log: Log;
  /** With the index `claimsByOwner`. */
  readonly claims: InformerReader<AddressClaim>;
  /** How long a released address is kept for its owner; `addressHoldMs` if absent. */
  readonly holdMs?: () => number;
}

interface HoldRequest {
  readonly owner: AddressOwner;
  readonly range: IpRange;
  /** Addresses in the owner's object: its users know them. */
  readonly present: readonly string[];
  /** Addresses that it would like, in the order in which they are tried, after those that are reserved for it. */
  readonly wishes: readonly string[];
}

type Held = { readonly kind: 'held'; readonly address: string } | { readonly kind: 'exhausted' };

/** Index of the claims informer: claims by their owner. */
export const claimsByOwner = 'owner';

export class Allocator {
  readonly #home: AllocatorOptions['home'];
  readonly #world: AllocatorOptions['world'];
  readonly #claims: AllocatorOptions['claims'];
  readonly #holdMs: () => number;

  constructor(options: AllocatorOptions) {
    this.#home = options.home;
    this.#world = options.world;
    this.#claims = options.claims;
    this.#holdMs = options.holdMs ?? (() => addressHoldMs);
  }

  /**
   * Returns the address that the owner holds, taking one of the range if it has none of that family. One it holds
   * stays although the range may have changed since: its users would notice.
   */
  async hold(request: HoldRequest): Promise<Held> {
    const { owner, range, present, wishes } = request;
    const live = this.holding(owner, range.family, [...present, ...wishes]);
    if (live !== undefined) return { kind: 'held', address: live };
    const preferred = [...present, ...this.#claimsOf(owner).map(claimedAddress), ...wishes];
    for (const address of candidates({ owner, range, preferred, isTaken: this.#isTakenBySomebodyElse(owner) })) {
      if (await this.#take(owner, address)) return { kind: 'held', address };
    }
    return { kind: 'exhausted' };
  }

  #claimsOf(owner: AddressOwner): AddressClaim[] {
    return this.#claims
      .byIndex(claimsByOwner, ownerKey(owner))
      .filter((claim) => partOf(claim) === owner.part)
      .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  }

  /**
   * The address of that family that the owner holds, if any; the most preferred one if it holds several. A claim in force
   * outranks what the owner's object says: that may have been edited by hand.
   */
  holding(owner: AddressOwner, family: IpFamily, preferred: readonly string[]): string | undefined {
    const live = this.#claimsOf(owner)
      .filter(({ spec }) => spec.releasedAt === undefined)
      .map(claimedAddress)
      .filter((address) => parseIp(address)?.family === family);
    return preferred.map(canonicalAddress).find((address) => live.includes(address)) ?? live[0];
  }

  #isTakenBySomebodyElse(owner: AddressOwner): (address: string) => boolean {
    return (address) => {
      const claim = this.#claims.get(addressClaimName(address));
      return claim !== undefined && !isClaimOf(claim, owner);
    };
  }

  async #take(owner: AddressOwner, address: string): Promise<boolean> {
    if (this.#isTakenBySomebodyElse(owner)(address)) return false;
    try {
      await this.#home.create(addressClaimType, claimFor(owner, address));
      return true;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    return this.#takeBack(owner, address);
  }

  /** Somebody has a claim of that name: perhaps ourselves, from before. */
  async #takeBack(owner: AddressOwner, address: string): Promise<boolean> {
    const ref = { name: addressClaimName(address) };
    const present = await getOrUndefined<AddressClaim>(this.#home, addressClaimType, ref);
    // Swept away this very moment: then it is free.
    if (present === undefined) return this.#take(owner, address);
    if (!isClaimOf(present, owner)) return false;
    if (present.spec.releasedAt === undefined) return true;
    const { releasedAt: _releasedAt, ...spec } = present.spec;
    await this.#home.update(addressClaimType, { ...present, spec });
    return true;
  }

  /** Gives up the claims of the owner and of its parts but those kept; they stay reserved for it for the hold time. */
  async release(owner: AddressOwner, keep: readonly string[] = []): Promise<void> {
    const kept = new Set(keep.map((address) => canonicalAddress(address)));
    for (const claim of this.#claims.byIndex(claimsByOwner, ownerKey(owner))) {
      if (claim.spec.releasedAt !== undefined || kept.has(claimedAddress(claim))) continue;
      const releasedAt = formatTime(this.#world.clock.wallMs());
      await this.#home.update(addressClaimType, { ...claim, spec: { ...claim.spec, releasedAt } });
    }
  }

  /** Removes claims whose hold time is over. Returns when the next one will be, if any is waiting. */
  async sweep(): Promise<number | undefined> {
    let nextMs: number | undefined;
    for (const claim of [...this.#claims.values()]) {
      if (claim.spec.releasedAt === undefined) continue;
      const leftMs = Date.parse(claim.spec.releasedAt) + this.#holdMs() - this.#world.clock.wallMs();
      if (leftMs <= 0 || Number.isNaN(leftMs)) await this.#remove(claim);
      else nextMs = Math.min(nextMs ?? leftMs, leftMs);
    }
    return nextMs;
  }

  // Its owner may be taking it back this very moment: then the revision differs, and the claim stays.
  async #remove(claim: AddressClaim): Promise<void> {
    const { name, resourceVersion } = claim.metadata;
    try {
      await deleteIfPresent(this.#home, addressClaimType, { name }, { resourceVersion });
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
}

/** The name counts, not what the claim says: the name is what was locked. */
function claimedAddress(claim: AddressClaim): string {
  return addressOfClaimName(claim.metadata.name) ?? '';
}

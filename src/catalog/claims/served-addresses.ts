// Which imports may be served at which addresses, for the data planes: the claims of the home, and which imports use an
// address. Pure.

import { type AddressClaim, addressOfClaimName } from '../../addresses/address-claim.ts';
import { addressProblem, noOthers, type OtherUsers } from '../../addresses/address-right.ts';
import { formatRange, type IpRange } from '../../base/net/ip.ts';
import { ClaimedAddresses } from './claimed-addresses.ts';

const rivalsTold = 4;

export class ServedAddresses {
  readonly #claims = new ClaimedAddresses();
  /** Keys of imports by the address that they name; nearly always one. */
  readonly #users = new Map<string, string | Set<string>>();
  readonly #used = new Map<string, readonly string[]>();
  readonly #onChange: (importKey: string) => void;

  /** `onChange` is called for each import whose addresses must be judged again. */
  constructor(onChange: (importKey: string) => void) {
    this.#onChange = onChange;
  }

  /** The addresses of an import, in their shortest form; none if it is gone. */
  use(key: string, addresses: readonly string[]): void {
    const before = this.#used.get(key) ?? [];
    if (before.length === addresses.length && before.every((address, index) => address === addresses[index])) return;
    for (const address of before) {
      const users = this.#users.get(address);
      if (users === key) this.#users.delete(address);
      else if (users instanceof Set) {
        users.delete(key);
        if (users.size === 1) this.#users.set(address, [...users][0]!);
        this.#rivalsChanged(address, key);
      }
    }
    if (addresses.length === 0) this.#used.delete(key);
    else this.#used.set(key, addresses);
    for (const address of addresses) {
      const users = this.#users.get(address);
      if (users === undefined || users === key) this.#users.set(address, key);
      else this.#users.set(address, users instanceof Set ? users.add(key) : new Set([users, key]));
      this.#rivalsChanged(address, key);
    }
  }

  /** Why the import is not served at this address; undefined if it is. */
  problemOf(address: string, key: string): string | undefined {
    const right = this.#claims.rightOf(address, key);
    return addressProblem(address, right, right.kind === 'free' ? this.#othersThan(key, address) : noOthers);
  }

  /** The import that is served at this address, in its shortest form; undefined if none is. */
  holderOf(address: string): string | undefined {
    const users = this.#users.get(address);
    if (typeof users === 'string') return this.problemOf(address, users) === undefined ? users : undefined;
    return this.#usersOf(address).find((key) => this.problemOf(address, key) === undefined);
  }

  #othersThan(key: string, address: string): OtherUsers {
    const users = this.#users.get(address);
    if (!(users instanceof Set)) return noOthers;
    const some: string[] = [];
    for (const other of users) {
      if (other !== key) some.push(other);
      if (some.length === rivalsTold) break;
    }
    return { count: users.size - 1, some };
  }

  upsertClaim(claim: AddressClaim): void {
    this.#claims.upsert(claim);
    this.#changed(addressOfClaimName(claim.metadata.name));
  }

  removeClaim(name: string): void {
    this.#claims.remove(name);
    this.#changed(addressOfClaimName(name));
  }

  claimKeys(): IterableIterator<string> {
    return this.#claims.keys();
  }

  setListed(): void {
    if (this.#claims.isListed) return;
    this.#claims.setListed();
    this.#allChanged();
  }

  /** Ranges that agents allocate from. */
  setRanges(ranges: readonly IpRange[]): void {
    if (ranges.map(formatRange).join() === this.#claims.ranges.map(formatRange).join()) return;
    this.#claims.setRanges(ranges);
    this.#allChanged();
  }

  /** Whether an address is used by one or by several is all that counts: with many, one more or less changes nothing. */
  #rivalsChanged(address: string, key: string): void {
    const users = this.#users.get(address);
    if (users instanceof Set && users.size > rivalsTold) return;
    for (const other of this.#usersOf(address)) if (other !== key) this.#onChange(other);
  }

  #changed(address: string | undefined): void {
    for (const key of this.#usersOf(address ?? '')) this.#onChange(key);
  }

  #usersOf(address: string): readonly string[] {
    const users = this.#users.get(address);
    if (users === undefined) return [];
    return users instanceof Set ? [...users] : [users];
  }

  #allChanged(): void {
    for (const key of this.#used.keys()) this.#onChange(key);
  }
}

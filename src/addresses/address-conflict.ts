// Conflicts about the addresses that an import names: they belong to another, or another names them too. Pure. Agents
// write it as a condition, doctor reports it.

import { addressClaimName } from './address-claim.ts';
import { addressProblem, addressRight, formatUsers, type OtherUsers } from './address-right.ts';
import { canonicalAddress, ownerKey } from './claim.ts';

export interface AddressFacts {
  /** `ownerKey` of the owner that the claim of this name is for. */
  readonly claimedBy: (claimName: string) => string | undefined;
  /** Keys of all imports that name the address. */
  readonly usersOf: (address: string) => readonly string[];
  /** Whether agents allocate from the range of the address. */
  readonly isAllocated: (address: string) => boolean;
}

export interface AddressConflict {
  readonly reason: 'HeldByAnother' | 'NotClaimed' | 'NamedByOthers';
  readonly message: string;
}

const addressesMax = 2;

/** Undefined if the import alone names its addresses, and they are its own. */
export function addressConflict(
  { namespace, name }: { readonly namespace?: string; readonly name: string },
  addresses: readonly unknown[] | null | undefined,
  { claimedBy, usersOf, isAllocated }: AddressFacts,
): AddressConflict | undefined {
  const key = `${namespace ?? ''}/${name}`;
  const owner = ownerKey({ kind: 'ServiceImport', namespace, name });
  let ofOthers: AddressConflict | undefined;
  for (const each of (addresses ?? []).slice(0, addressesMax)) {
    const address = canonicalAddress(String(each));
    const right = addressRight({
      owner,
      claimedBy: claimedBy(addressClaimName(address)),
      isAllocated: isAllocated(address),
    });
    const others = othersOf(key, usersOf(address));
    const message = addressProblem(address, right, others);
    if (message !== undefined && right.kind === 'lost') return { reason: 'HeldByAnother', message };
    if (message !== undefined && right.kind === 'unclaimed') return { reason: 'NotClaimed', message };
    if (message !== undefined) return { reason: 'NamedByOthers', message };
    if (right.kind === 'held' && others.count > 0)
      ofOthers = {
        reason: 'NamedByOthers',
        message: `${address} belongs to this import, as its AddressClaim says; ${formatUsers(others)} names it too, and is not served there`,
      };
  }
  return ofOthers;
}

const looked = 16;

function othersOf(key: string, users: readonly string[]): OtherUsers {
  const some = users.slice(0, looked).filter((user) => user !== key);
  const isAmong = some.length < Math.min(users.length, looked) || users.includes(key);
  return { count: users.length - (isAmong ? 1 : 0), some: some.sort() };
}

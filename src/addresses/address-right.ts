// Whether an owner may be served at a virtual address. Pure. The node proxy, DNS, xDS, agents and doctor all ask this. The
// AddressClaim decides: an address in a ServiceImport may have been written by any tenant of its namespace.

export type AddressRight =
  /** Its claim names this owner. */
  | { readonly kind: 'held' }
  /** Its claim names another owner. */
  | { readonly kind: 'lost'; readonly holder: string }
  /** An agent allocates from its range, and there is no claim. */
  | { readonly kind: 'unclaimed' }
  /** Allocated otherwise: derived Services, other implementations, a home without an agent. */
  | { readonly kind: 'free' };

export interface AddressQuestion {
  /** Its `ownerKey`. */
  readonly owner: string;
  /** That of the claim's owner; undefined without a claim. A released claim counts: the address is still reserved. */
  readonly claimedBy: string | undefined;
  /** Whether agents allocate from the range that it lies in, and their claims are known. */
  readonly isAllocated: boolean;
}

const held: AddressRight = { kind: 'held' };
const unclaimed: AddressRight = { kind: 'unclaimed' };
const free: AddressRight = { kind: 'free' };

export function addressRight({ owner, claimedBy, isAllocated }: AddressQuestion): AddressRight {
  if (claimedBy === undefined) return isAllocated ? unclaimed : free;
  return claimedBy === owner ? held : { kind: 'lost', holder: claimedBy };
}

/** Other imports that name an address. */
export interface OtherUsers {
  readonly count: number;
  /** A few of them. */
  readonly some: readonly string[];
}

export const noOthers: OtherUsers = { count: 0, some: [] };

/** Why the address is not served for this owner; undefined if it is. A free one is served while one owner alone names it. */
export function addressProblem(address: string, right: AddressRight, others: OtherUsers): string | undefined {
  if (right.kind === 'held') return undefined;
  if (right.kind === 'lost') return `${address} belongs to ${formatHolder(right.holder)}, as its AddressClaim says`;
  if (right.kind === 'unclaimed')
    return `${address} is in a range of the clusterset, and no AddressClaim gives it to this import`;
  if (others.count === 0) return undefined;
  return `${address} is in ${formatUsers(others)} too, and no AddressClaim says whose it is: it is served for none`;
}

/** `ServiceImport shop/checkout`. */
function formatHolder(key: string): string {
  const [kind = '', namespace = '', name = ''] = key.split('/');
  return namespace === '' ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
}

const usersShown = 3;

/** `ServiceImport shop/a, shop/b and 2 more`. */
export function formatUsers({ count, some }: OtherUsers): string {
  const shown = some.slice(0, usersShown);
  const more = count - shown.length;
  return `ServiceImport ${shown.join(', ')}${more === 0 ? '' : ` and ${more} more`}`;
}

// The members, bindings and accounts of a snapshot: all of them get their rights back with it, also those that were removed
// since. Pure.

import type { SnapshotEntry } from '../../home/snapshot/content.ts';

export interface Returned {
  readonly what: 'member' | 'binding' | 'account';
  readonly name: string;
  readonly detail: string;
  readonly uid: string;
}

const prefixes = [
  ['/registry/portolan.dev/clusters/', 'member'],
  ['/registry/rbac.authorization.k8s.io/clusterrolebindings/', 'binding'],
  ['/registry/rbac.authorization.k8s.io/rolebindings/', 'binding'],
  ['/registry/core/serviceaccounts/', 'account'],
] as const;

export const returnedPrefixes: readonly string[] = prefixes.map(([prefix]) => prefix);

interface StoredParts {
  readonly metadata?: { readonly uid?: string; readonly labels?: Record<string, string> };
  readonly roleRef?: { readonly kind?: string; readonly name?: string };
  readonly subjects?: readonly { readonly kind?: string; readonly namespace?: string; readonly name?: string }[] | null;
}

/** Undefined for anything else, and for what every home has from its first start on. */
export function returnedIn({ key, value }: Pick<SnapshotEntry, 'key' | 'value'>): Returned | undefined {
  const found = prefixes.find(([prefix]) => key.startsWith(prefix));
  if (found === undefined) return undefined;
  const [prefix, what] = found;
  const { metadata, roleRef, subjects } = parse(value);
  if (metadata?.labels?.['kubernetes.io/bootstrapping'] !== undefined) return undefined;
  // Every namespace has one; what it may do is in the bindings.
  if (what === 'account' && key.endsWith('/default')) return undefined;
  const who = (subjects ?? []).map(
    (one) => `${one?.kind} ${one?.namespace === undefined ? '' : `${one.namespace}/`}${one?.name}`,
  );
  const detail = what === 'binding' ? `${roleRef?.kind} ${roleRef?.name} for ${who.join(', ') || 'nobody'}` : '';
  return { what, name: key.slice(prefix.length), detail, uid: metadata?.uid ?? '' };
}

function parse(value: Uint8Array): StoredParts {
  try {
    return (JSON.parse(Buffer.from(value).toString('utf8')) ?? {}) as StoredParts;
  } catch {
    return {};
  }
}

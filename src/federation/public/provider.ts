// What a DNS provider must be able to do. Small on purpose, so that others can be added beside RFC 2136.

import type { NameChange, ZoneSet } from './difference.ts';

export type ChangeResult =
  | { readonly kind: 'done' }
  /** Somebody else changed the name meanwhile; the next run looks again. */
  | { readonly kind: 'conflict' }
  | { readonly kind: 'failed'; readonly why: string };

export interface Provider {
  /** Everything in the zone, as it is now. */
  read(): Promise<readonly ZoneSet[]>;
  /** Each change whole or not at all, and only if the name is still free or ours, as the change says. */
  apply(changes: readonly NameChange[]): Promise<readonly ChangeResult[]>;
}

// Decides who has a name that several claim, for external services, services of peers and the resolver. A claim that was
// settled before goes first, then the older one; between claims of one age, names and keys decide. Pure.

import { compareText } from './compare-text.ts';

export interface NameRight {
  /** Whether it has the name by an earlier decision. */
  readonly isSettled?: boolean;
  readonly sinceMs: number;
  /** The name that people gave the claimant, where they did. */
  readonly name?: string;
  /** Unique among the claimants. */
  readonly key: string;
}

/** The one that has the name first; the same for every order of the input. */
export function compareRights(one: NameRight, other: NameRight): number {
  const [a, b] = [one.isSettled ?? false, other.isSettled ?? false];
  if (a !== b) return a ? -1 : 1;
  return (
    one.sinceMs - other.sinceMs || compareText(one.name ?? '', other.name ?? '') || compareText(one.key, other.key)
  );
}

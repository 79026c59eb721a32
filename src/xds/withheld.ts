// Objects for which nothing is served, and why: what their conditions must say.

import type { Cause } from './resource.ts';

export interface Withheld {
  readonly cause: Cause;
  readonly reason: string;
}

export class WithheldList {
  readonly #byOwner = new Map<string, readonly Withheld[]>();
  readonly #listeners = new Set<() => void>();

  /** All that one owner withholds, in place of what it did. */
  set(owner: string, list: readonly Withheld[]): void {
    const before = this.#byOwner.get(owner) ?? [];
    if (JSON.stringify(before) === JSON.stringify(list)) return;
    if (list.length === 0) this.#byOwner.delete(owner);
    else this.#byOwner.set(owner, list);
    for (const listener of this.#listeners) listener();
  }

  *values(): Iterable<Withheld> {
    for (const list of this.#byOwner.values()) yield* list;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

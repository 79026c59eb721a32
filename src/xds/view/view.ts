// All that proxies of one role at one place are served: several sets of resources seen as one. Sets are shared between
// views; only what depends on the place is made for each.

import type { XdsType } from '../resource.ts';
import type { Entry } from './entry.ts';
import type { ResourceChange, ResourceSet } from './resource-set.ts';

export class View {
  readonly #sets: readonly ResourceSet[];

  constructor(sets: readonly ResourceSet[]) {
    this.#sets = sets;
  }

  get(type: XdsType, name: string): Entry | undefined {
    for (const set of this.#sets) {
      const entry = set.get(type, name);
      if (entry !== undefined) return entry;
    }
    return undefined;
  }

  *entries(type: XdsType): Iterable<Entry> {
    for (const set of this.#sets) yield* set.entries(type);
  }

  count(type: XdsType): number {
    return this.#sets.reduce((sum, set) => sum + set.count(type), 0);
  }

  onChange(listener: (changes: readonly ResourceChange[]) => void): () => void {
    const offs = this.#sets.map((set) => set.onChange(listener));
    return () => {
      for (const off of offs) off();
    };
  }
}

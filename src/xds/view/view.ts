// All that proxies of one role at one place are served: several sets of resources seen as one. Sets are shared between
// views; only what depends on the place is made for each.

import type { XdsType } from '../resource.ts';
import type { Entry } from './entry.ts';
import type { ResourceChange, ResourceSet } from './resource-set.ts';

export interface ViewSets {
  /** Sent to every proxy that asks for everything. */
  readonly wildcard: readonly ResourceSet[];
  /** Sent only to those who name a resource. */
  readonly byName: readonly ResourceSet[];
}

export class View {
  readonly #sets: readonly ResourceSet[];
  readonly #wildcard: readonly ResourceSet[];

  constructor({ wildcard, byName }: ViewSets) {
    this.#sets = [...wildcard, ...byName];
    this.#wildcard = wildcard;
  }

  get(type: XdsType, name: string): Entry | undefined {
    return find(this.#sets, type, name);
  }

  /** Whether a proxy that asks for everything gets it. */
  isInWildcard(type: XdsType, name: string): boolean {
    return find(this.#wildcard, type, name)?.isByNameOnly === false;
  }

  *wildcard(type: XdsType): Iterable<Entry> {
    for (const set of this.#wildcard) {
      for (const entry of set.entries(type)) if (!entry.isByNameOnly) yield entry;
    }
  }

  onChange(listener: (changes: readonly ResourceChange[]) => void): () => void {
    const offs = this.#sets.map((set) => set.onChange(listener));
    return () => {
      for (const off of offs) off();
    };
  }
}

function find(sets: readonly ResourceSet[], type: XdsType, name: string): Entry | undefined {
  for (const set of sets) {
    const entry = set.get(type, name);
    if (entry !== undefined) return entry;
  }
  return undefined;
}

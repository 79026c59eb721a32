// Resources by type and name, replaced owner by owner. A change costs what its owner has, not what all have, and reports
// only what came out different.

import type { XdsResource, XdsType } from '../resource.ts';
import { xdsTypes } from '../resource.ts';
import { type Entry, makeEntry } from './entry.ts';

export interface ResourceChange {
  readonly type: XdsType;
  readonly name: string;
}

export class ResourceSet {
  readonly #entries = new Map(xdsTypes.map((type) => [type, new Map<string, Entry>()]));
  readonly #owned = new Map<string, readonly Entry[]>();
  readonly #listeners = new Set<(changes: readonly ResourceChange[]) => void>();

  get(type: XdsType, name: string): Entry | undefined {
    return this.#entries.get(type)!.get(name);
  }

  entries(type: XdsType): Iterable<Entry> {
    return this.#entries.get(type)!.values();
  }

  owners(): Iterable<string> {
    return this.#owned.keys();
  }

  onChange(listener: (changes: readonly ResourceChange[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** All resources of one owner, in place of those it had. Throws before anything is changed if one cannot be encoded. */
  replace(owner: string, resources: readonly XdsResource[]): void {
    const before = this.#owned.get(owner) ?? [];
    const made = resources.map((resource) => this.#reuse(makeEntry(resource)));
    const kept = new Set(made.map(keyOf));
    const changes: ResourceChange[] = [];
    for (const entry of before) {
      if (kept.has(keyOf(entry))) continue;
      this.#entries.get(entry.type)!.delete(entry.name);
      changes.push({ type: entry.type, name: entry.name });
    }
    for (const entry of made) {
      const entries = this.#entries.get(entry.type)!;
      if (entries.get(entry.name)?.version !== entry.version) changes.push({ type: entry.type, name: entry.name });
      entries.set(entry.name, entry);
    }
    if (made.length === 0) this.#owned.delete(owner);
    else this.#owned.set(owner, made);
    if (changes.length > 0) for (const listener of this.#listeners) listener(changes);
  }

  // An entry that came out as it was stays the same object, because what was proven of it is known by its identity.
  #reuse(entry: Entry): Entry {
    const known = this.#entries.get(entry.type)!.get(entry.name);
    return known?.version === entry.version && isSameCauses(known, entry) ? known : entry;
  }
}

function keyOf({ type, name }: Entry): string {
  return `${type}:${name}`;
}

function isSameCauses(one: Entry, other: Entry): boolean {
  return JSON.stringify(one.causes) === JSON.stringify(other.causes);
}

// The local copy an informer keeps: objects by key, and indexes that follow each change at the cost of that change.
// Knows nothing of lists and watches.

export interface StoredEntry<Kept> {
  readonly value: Kept;
  readonly uid: string;
  readonly resourceVersion: string;
  /** The number of the list that last saw this key, or that was the last when a watch brought it. */
  listNumber: number;
}

export type IndexFunctions<Kept> = Readonly<Record<string, (value: Kept, key: string) => Iterable<string>>>;

/** Most index values have one key: that one is held without a set around it. */
type Keys = string | Set<string>;

export class InformerStore<Kept> {
  readonly #entries = new Map<string, StoredEntry<Kept>>();
  readonly #indexes = new Map<
    string,
    { of: (value: Kept, key: string) => Iterable<string>; keys: Map<string, Keys> }
  >();

  constructor(indexes: IndexFunctions<Kept>) {
    for (const [name, of] of Object.entries(indexes)) this.#indexes.set(name, { of, keys: new Map() });
  }

  get size(): number {
    return this.#entries.size;
  }

  entry(key: string): StoredEntry<Kept> | undefined {
    return this.#entries.get(key);
  }

  entries(): IterableIterator<[string, StoredEntry<Kept>]> {
    return this.#entries.entries();
  }

  keys(): IterableIterator<string> {
    return this.#entries.keys();
  }

  set(key: string, entry: StoredEntry<Kept>): void {
    const previous = this.#entries.get(key);
    if (previous !== undefined) this.#unindex(key, previous.value);
    this.#entries.set(key, entry);
    for (const { of, keys } of this.#indexes.values()) {
      for (const value of of(entry.value, key)) addKey(keys, value, key);
    }
  }

  delete(key: string): void {
    const previous = this.#entries.get(key);
    if (previous === undefined) return;
    this.#unindex(key, previous.value);
    this.#entries.delete(key);
  }

  keysByIndex(name: string, value: string): Iterable<string> {
    const keys = this.#index(name).get(value);
    if (keys === undefined) return [];
    return typeof keys === 'string' ? [keys] : keys;
  }

  countByIndex(name: string, value: string): number {
    const keys = this.#index(name).get(value);
    if (keys === undefined) return 0;
    return typeof keys === 'string' ? 1 : keys.size;
  }

  #index(name: string): Map<string, Keys> {
    const index = this.#indexes.get(name);
    if (index === undefined) throw new Error(`informer: no index ${JSON.stringify(name)} was declared`);
    return index.keys;
  }

  #unindex(key: string, value: Kept): void {
    for (const { of, keys } of this.#indexes.values()) {
      for (const indexed of of(value, key)) removeKey(keys, indexed, key);
    }
  }
}

function addKey(index: Map<string, Keys>, value: string, key: string): void {
  const keys = index.get(value);
  if (keys === undefined) index.set(value, key);
  else if (typeof keys !== 'string') keys.add(key);
  else if (keys !== key) index.set(value, new Set([keys, key]));
}

function removeKey(index: Map<string, Keys>, value: string, key: string): void {
  const keys = index.get(value);
  if (keys === key) index.delete(value);
  else if (keys instanceof Set && keys.delete(key) && keys.size === 0) index.delete(value);
}

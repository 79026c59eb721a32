// The rows that were sent last, and what has changed since: a row is sent again only if its text differs. Pure.

import { type Changes, type CollectionName, type Collections, collectionNames } from './wire/rows.ts';

export class RowStore {
  readonly #sent = new Map<CollectionName, Map<string, string>>(collectionNames.map((name) => [name, new Map()]));
  #pending = new Map<CollectionName, Map<string, string | null>>();

  put<Name extends CollectionName>(name: Name, key: string, row: Collections[Name] | undefined): boolean {
    const rows = this.#sent.get(name)!;
    const text = row === undefined ? undefined : JSON.stringify(row);
    if (rows.get(key) === text) return false;
    if (text === undefined) rows.delete(key);
    else rows.set(key, text);
    const pending = this.#pending.get(name) ?? new Map<string, string | null>();
    pending.set(key, text ?? null);
    this.#pending.set(name, pending);
    return true;
  }

  /** All rows of a collection: those that are not among them are gone. */
  replace<Name extends CollectionName>(name: Name, rows: readonly (readonly [string, Collections[Name]])[]): void {
    const keys = new Set(rows.map(([key]) => key));
    for (const key of [...this.#sent.get(name)!.keys()]) if (!keys.has(key)) this.put(name, key, undefined);
    for (const [key, row] of rows) this.put(name, key, row);
  }

  get<Name extends CollectionName>(name: Name, key: string): Collections[Name] | undefined {
    const text = this.#sent.get(name)!.get(key);
    return text === undefined ? undefined : (JSON.parse(text) as Collections[Name]);
  }

  keys(name: CollectionName): Iterable<string> {
    return this.#sent.get(name)!.keys();
  }

  size(): number {
    return [...this.#sent.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** JSON of the changes since the last call; undefined if there are none. */
  takeChanges(): string | undefined {
    if (this.#pending.size === 0) return undefined;
    const text = format(this.#pending);
    this.#pending = new Map();
    return text;
  }

  /** JSON of everything. */
  snapshot(): string {
    return format(this.#sent);
  }
}

function format(collections: ReadonlyMap<CollectionName, ReadonlyMap<string, string | null>>): string {
  const parts = [...collections].map(([name, rows]) => {
    const entries = [...rows].map(([key, text]) => `${JSON.stringify(key)}:${text}`);
    return `${JSON.stringify(name satisfies keyof Changes)}:{${entries.join(',')}}`;
  });
  return `{${parts.join(',')}}`;
}

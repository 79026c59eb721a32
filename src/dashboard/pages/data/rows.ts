// Rows by collection as the page holds them: sorted by key, and a new list only when something in it changed.

import { type Changes, type CollectionName, type Collections, collectionNames } from '../../wire/rows.ts';

interface Held<Row> {
  readonly rows: Map<string, Row>;
  list: readonly Row[];
  isStale: boolean;
}

export class Rows {
  #held = empty();

  list<Name extends CollectionName>(name: Name): readonly Collections[Name][] {
    const held = this.#held[name] as unknown as Held<Collections[Name]>;
    if (held.isStale) {
      const entries = [...held.rows].sort(([a], [b]) => (a < b ? -1 : 1));
      held.list = entries.map(([, row]) => row);
      held.isStale = false;
    }
    return held.list;
  }

  get<Name extends CollectionName>(name: Name, key: string): Collections[Name] | undefined {
    return this.#held[name].rows.get(key) as Collections[Name] | undefined;
  }

  /** A snapshot replaces everything. */
  take(changes: Changes, isSnapshot: boolean): void {
    if (isSnapshot) this.#held = empty();
    for (const name of collectionNames) {
      const changed = changes[name];
      if (changed === undefined) continue;
      const held = this.#held[name] as unknown as Held<unknown>;
      for (const [key, row] of Object.entries(changed)) {
        if (row === null) held.rows.delete(key);
        else held.rows.set(key, row);
      }
      held.isStale = true;
    }
  }
}

function empty(): Record<CollectionName, Held<never>> {
  const made = () => ({ rows: new Map(), list: [], isStale: false });
  return Object.fromEntries(collectionNames.map((name) => [name, made()])) as unknown as Record<
    CollectionName,
    Held<never>
  >;
}

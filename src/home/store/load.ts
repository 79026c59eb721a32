// Rebuilds what a store keeps in memory from the rows of its journal, and names the rows that should not be there.

import { StoredEntry, StoredEvent } from './entry.ts';
import { History } from './history.ts';
import type { JournalRow } from './journal.ts';
import { Keyspace } from './keyspace.ts';

export interface Loaded {
  readonly keyspace: Keyspace;
  readonly history: History;
  readonly revision: number;
  readonly floor: number;
  readonly nextRow: number;
  /** Rows at or below the floor that were superseded there: they can never be read. */
  readonly strayRows: readonly number[];
}

export class Loader {
  readonly #floor: number;
  readonly #keyspace = new Keyspace();
  // Rows above the floor wait until the state at the floor is whole: moved rows may come after them.
  readonly #above: JournalRow[] = [];
  readonly #strayRows: number[] = [];
  #nextRow = 1;

  constructor(floor: number) {
    this.#floor = floor;
  }

  add(row: JournalRow): void {
    this.#nextRow = Math.max(this.#nextRow, row.row + 1);
    if (row.revision > this.#floor) this.#above.push(row);
    else this.#addBase(row);
  }

  finish(): Loaded {
    const history = new History();
    for (const row of this.#above) history.push(this.#replay(row));
    return {
      keyspace: this.#keyspace,
      history,
      revision: Math.max(this.#floor, this.#above.at(-1)?.revision ?? 0),
      floor: this.#floor,
      nextRow: this.#nextRow,
      strayRows: this.#strayRows,
    };
  }

  // A batch forgets what it supersedes, so each key has one row here. Should there be more, the newest one counts.
  #addBase(row: JournalRow): void {
    const other = this.#keyspace.get(row.key);
    if (other !== undefined && other.revision > row.revision) {
      this.#strayRows.push(row.row);
      return;
    }
    if (other !== undefined) this.#strayRows.push(other.row);
    if (row.value !== undefined) this.#keyspace.put(entryOf(row, row.value), other);
    else {
      this.#strayRows.push(row.row);
      if (other !== undefined) this.#keyspace.remove(other);
    }
  }

  #replay(row: JournalRow): StoredEvent {
    const { revision, key } = row;
    const previous = this.#keyspace.get(key);
    const entry = row.value === undefined ? undefined : entryOf(row, row.value);
    if (entry !== undefined) this.#keyspace.put(entry, previous);
    else if (previous !== undefined) this.#keyspace.remove(previous);
    return new StoredEvent({ revision, key, entry, previous, tombstoneRow: row.row });
  }
}

function entryOf(row: JournalRow, value: Uint8Array): StoredEntry {
  const { key, createRevision, revision } = row;
  return new StoredEntry({ key, value, createRevision, revision, row: row.row });
}

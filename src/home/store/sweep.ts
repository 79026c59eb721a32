// One walk through all keys that rewrites each entry's row at the end of the journal, some with every batch, so that
// pages with few rows in them become free. Rows above the floor stay: they must keep their order, and lie close anyway.

import type { StoredEntry } from './entry.ts';
import type { RowMove } from './journal.ts';
import type { Keyspace } from './keyspace.ts';

const movesPerBatchMax = 256;
const bytesPerBatchMax = 1024 * 1024;

export class Sweep {
  readonly #keyspace: Keyspace;
  #lastKey: string | undefined;
  #isDone = false;

  constructor(keyspace: Keyspace) {
    this.#keyspace = keyspace;
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  /** The next entries to move, to the row given and the ones after it. */
  next(firstRow: number, floor: number): (RowMove & { readonly entry: StoredEntry })[] {
    const moves: (RowMove & { readonly entry: StoredEntry })[] = [];
    let sizeBytes = 0;
    for (const entry of this.#keyspace.entriesAfter(this.#lastKey)) {
      if (moves.length >= movesPerBatchMax || sizeBytes >= bytesPerBatchMax) return moves;
      this.#lastKey = entry.key;
      if (entry.revision > floor) continue;
      moves.push({ entry, from: entry.row, to: firstRow + moves.length });
      sizeBytes += entry.sizeBytes;
    }
    this.#isDone = true;
    return moves;
  }
}

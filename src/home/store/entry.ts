// The part of a journal row that the store keeps in memory. Both classes look like the plain Entry and StoreEvent of
// the contract; the journal row they lie in is known only here, so that it can be forgotten or moved.

import type { Entry, StoreEvent } from './store.ts';

/** Overhead of a row beside its key and value, in memory and on disk, as a round number. */
const overheadBytes = 64;

export interface EntryFields {
  readonly key: string;
  readonly value: Uint8Array;
  readonly createRevision: number;
  readonly revision: number;
  readonly row: number;
}

export class StoredEntry implements Entry {
  readonly key: string;
  readonly createRevision: number;
  readonly revision: number;
  /** A text takes its length and little more, an array of bytes 300 bytes beside its own. */
  readonly latin1: string;
  #row: number;

  constructor(fields: EntryFields) {
    this.key = fields.key;
    this.latin1 = bufferOf(fields.value).toString('latin1');
    this.createRevision = fields.createRevision;
    this.revision = fields.revision;
    this.#row = fields.row;
  }

  /** Made anew each time. */
  get value(): Uint8Array {
    return Buffer.from(this.latin1, 'latin1');
  }

  get row(): number {
    return this.#row;
  }

  /** The journal has moved this entry to another row. */
  movedTo(row: number): void {
    this.#row = row;
  }

  get sizeBytes(): number {
    return this.key.length + this.latin1.length + overheadBytes;
  }
}

export interface EventFields {
  readonly revision: number;
  readonly key: string;
  readonly entry: StoredEntry | undefined;
  readonly previous: StoredEntry | undefined;
  /** Where the deletion lies; of no meaning when there is an entry. */
  readonly tombstoneRow: number;
}

export class StoredEvent implements StoreEvent {
  readonly revision: number;
  readonly key: string;
  readonly entry: StoredEntry | undefined;
  readonly previous: StoredEntry | undefined;
  readonly #tombstoneRow: number;

  constructor(fields: EventFields) {
    this.revision = fields.revision;
    this.key = fields.key;
    this.entry = fields.entry;
    this.previous = fields.previous;
    this.#tombstoneRow = fields.tombstoneRow;
  }

  /** Rows that are obsolete once this event is below the floor. */
  supersededRows(): number[] {
    const rows = this.previous === undefined ? [] : [this.previous.row];
    if (this.entry === undefined) rows.push(this.#tombstoneRow);
    return rows;
  }

  /** Bytes kept only for this event: the replaced value, and the deletion itself. */
  get historyBytes(): number {
    const replaced = this.previous === undefined ? 0 : this.previous.sizeBytes;
    return replaced + (this.entry === undefined ? this.key.length + overheadBytes : 0);
  }
}

export function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

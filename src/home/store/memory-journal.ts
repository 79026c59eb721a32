// A journal without a disk, for simulation: what was appended stays in a MemoryDisk that outlives the process. Settles
// by microtasks alone, so a run replays exactly.

import type { DiskUse, Journal, JournalBatch, JournalContents, JournalRow } from './journal.ts';

export class MemoryDisk {
  readonly rows = new Map<number, JournalRow>();
  floor = 0;
  /** Counts the openings: an earlier opener has lost it, as a killed process has. */
  openings = 0;
}

export class MemoryJournal implements Journal {
  readonly #disk: MemoryDisk;
  readonly #opening: number;

  constructor(disk: MemoryDisk) {
    this.#disk = disk;
    this.#opening = ++disk.openings;
  }

  contents(): JournalContents {
    const rows = [...this.#disk.rows.values()].sort((a, b) => a.row - b.row);
    return { floor: this.#disk.floor, rows };
  }

  append({ moves, rows, forget, floor }: JournalBatch): Promise<DiskUse> {
    const disk = this.#disk;
    if (disk.openings !== this.#opening) return new Promise(() => {});
    for (const { from, to } of moves) {
      disk.rows.set(to, { ...rowOf(disk.rows.get(from)!), row: to });
      disk.rows.delete(from);
    }
    // Plain copies: an entry's row may change later, and nothing of the process may be on the disk.
    for (const row of rows) disk.rows.set(row.row, rowOf(row));
    for (const row of forget) disk.rows.delete(row);
    disk.floor = floor;
    return Promise.resolve({ fileBytes: 0, usedBytes: 0 });
  }

  probe(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

function rowOf({ row, revision, createRevision, key, value }: JournalRow): JournalRow {
  return { row, revision, createRevision, key, value };
}

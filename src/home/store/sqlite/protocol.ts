// The messages between the main thread and the database's thread: one request at a time, one answer each. A trouble
// may also come unasked, when tidying up fails.

import type { DiskUse, RowMove } from '../journal.ts';
import type { PackedRows } from './rows.ts';

export interface DatabaseOptions {
  readonly path: string;
  /** The log file is cut back when it is larger. */
  readonly logBytesMax: number;
  /** Free pages beyond this are given back to the file system. */
  readonly freeBytesMax: number;
  /** Values below this key are JSON, and one that is not is refused when the rows are read; not looked at if absent. */
  readonly jsonBelow?: string | undefined;
  /** The database takes no more pages than this: a disk that is full early, for tests. */
  readonly pagesMax?: number;
}

export interface PackedBatch {
  readonly moves: readonly RowMove[];
  readonly rows: PackedRows;
  readonly forget: readonly number[];
  readonly floor: number;
}

export type Request =
  | { readonly kind: 'open'; readonly options: DatabaseOptions }
  /** Some of the rows after the one given, in order; none when there are no more. */
  | { readonly kind: 'read'; readonly afterRow: number }
  | { readonly kind: 'append'; readonly batch: PackedBatch }
  | { readonly kind: 'probe' }
  | { readonly kind: 'close' };

export type Answer =
  | { readonly kind: 'opened'; readonly floor: number }
  | { readonly kind: 'rows'; readonly rows: PackedRows; readonly lastRow: number | undefined }
  | { readonly kind: 'appended'; readonly use: DiskUse }
  | { readonly kind: 'done' }
  | { readonly kind: 'trouble'; readonly trouble: Trouble };

export interface Trouble {
  /** full: rolled back, can be tried again. locked: another process has it. broken: everything else. */
  readonly kind: 'full' | 'locked' | 'broken';
  readonly message: string;
}

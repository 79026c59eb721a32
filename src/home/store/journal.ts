// Where a LogStore keeps its rows. A journal knows no keys' meaning: it appends rows, forgets and moves rows by number,
// and everything in one batch is on disk together when the promise resolves. One call at a time.

export interface JournalRow {
  /** Grows with every row; never used twice. */
  readonly row: number;
  readonly revision: number;
  /** The revision at which the key came to be; 0 in a deletion. */
  readonly createRevision: number;
  readonly key: string;
  /** Absent in a deletion. */
  readonly value: Uint8Array | undefined;
}

export interface RowMove {
  readonly from: number;
  /** Above every row there is, and below the rows appended in the same batch. */
  readonly to: number;
}

export interface JournalBatch {
  readonly moves: readonly RowMove[];
  /** In the order of their revisions. */
  readonly rows: readonly JournalRow[];
  readonly forget: readonly number[];
  /** Never goes back. No row above it is ever forgotten, so it also keeps the revision when all rows are gone. */
  readonly floor: number;
}

export interface DiskUse {
  /** Database and log files together. */
  readonly fileBytes: number;
  /** Pages of the database that hold rows, however few. */
  readonly usedBytes: number;
}

export interface Journal {
  append(batch: JournalBatch): Promise<DiskUse>;
  /** Resolves if there is room to write again; changes nothing. */
  probe(): Promise<void>;
  close(): Promise<void>;
  /** The size of a commit that it can take; any if absent. */
  readonly commitMax?: { readonly keys: number; readonly bytes: number };
  /** Set while what is in memory may be older than what is stored; resolves when it is not, or is refused. */
  untilReadable?(): Promise<void> | undefined;
  /** Why reads are not even waited for; never if absent. */
  readRefusal?(): Error | undefined;
  /** Set by the user of the journal: called when it breaks, also between two calls. */
  onBroken?: ((error: JournalBrokenError) => void) | undefined;
  /** Set by the user: an append takes longer, because nobody answers. Its outcome is not known yet. */
  onStalled?: ((error: Error) => void) | undefined;
  /** Set by the user: an answer has come. */
  onRecovered?: (() => void) | undefined;
}

/** Contents of a journal when it was opened. */
export interface JournalContents {
  readonly floor: number;
  /** Rows above the floor come in the order of their revisions. */
  readonly rows: Iterable<JournalRow>;
}

/** There was no room. The batch was rolled back as a whole, and the journal can go on once there is room. */
export class JournalFullError extends Error {}

/** It is unknown which part of the batch is on disk. The journal takes nothing more until it is opened anew. */
export class JournalBrokenError extends Error {}

/** Another process has it open. */
export class JournalLockedError extends Error {}

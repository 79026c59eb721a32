// The contract of a revisioned key-value log. `contract.ts` is its suite; every implementation must pass it.
//
// - A revision is a positive integer that grows by one with every commit that changed something.
// - A commit changes all of its keys at one revision, or none of them. When it resolves it is on disk, and every
//   later read sees it. A read never shows what is not on disk.
// - A watch delivers every change above its revision under its prefix once, in order, commits whole. From a revision
//   that has not happened yet it waits. It is never refused by a throw: what ends it comes through onEnd.
// - History below the compaction floor is gone: reading or watching there fails with CompactedError. Reading may fail so
//   above the floor as well, where very many keys have changed since.

export interface Entry {
  readonly key: string;
  /** A store may make a copy at each call. */
  readonly value: Uint8Array;
  /** The same bytes, one character each: for what looks at many values without keeping them. */
  readonly latin1: string;
  readonly createRevision: number;
  readonly revision: number;
}

export interface RangeRequest {
  readonly prefix: string;
  /** Only keys after this one, which need not exist. */
  readonly after?: string;
  readonly limit?: number;
  /** Counting of the remainder stops here; absent counts to the end, at the cost of all entries. */
  readonly countMax?: number;
  /** Read as of this revision; the newest when absent. A revision above the newest fails with FutureRevisionError. */
  readonly revision?: number;
}

export interface RangeResult {
  /** The revision this was read at: the one asked for, else the newest. */
  readonly revision: number;
  /** Ordered by key, in the order of UTF-16 code units. */
  readonly entries: readonly Entry[];
  /** How many keys under the prefix come after the last one returned; at most `countMax`. */
  readonly remaining: number;
}

export interface Write {
  readonly key: string;
  /**
   * Absent: delete the key. Deleting a key that is not there changes nothing. The bytes are given away: they must not
   * be changed afterwards, and neither must those returned by reads and watches.
   */
  readonly value?: Uint8Array;
}

export interface Compare {
  readonly key: string;
  /** The revision of the key's last change; 0 says that it must not exist. */
  readonly revision: number;
}

export interface CommitRequest {
  readonly compares: readonly Compare[];
  /** Each key at most once. */
  readonly writes: readonly Write[];
}

export type CommitResult =
  | { readonly kind: 'committed'; readonly revision: number }
  /** The first compare that failed, and what is there instead. */
  | { readonly kind: 'conflict'; readonly key: string; readonly current: Entry | undefined };

export interface StoreEvent {
  readonly revision: number;
  readonly key: string;
  /** Absent when the key was deleted. */
  readonly entry: Entry | undefined;
  /** The previous entry; absent when the key was created. */
  readonly previous: Entry | undefined;
}

export interface WatchRequest {
  readonly prefix: string;
  /** Changes after this revision, which must not be below the floor. */
  readonly afterRevision: number;
  /** Called with the changes of one or more whole commits, never during `watch` itself. It must not throw. */
  readonly onEvents: (events: readonly StoreEvent[]) => void;
  /** Called each time the store's revision moved on, after the events up to it were delivered. */
  readonly onProgress?: (revision: number) => void;
  /** Called once if the watch cannot go on, never during `watch` itself: afterRevision is below the floor
   *  (CompactedError), or the store was closed. */
  readonly onEnd: (error: Error) => void;
}

export interface StoreWatch {
  cancel(): void;
}

export interface StoreSnapshot {
  readonly revision: number;
  /** In the order of `range`. It can be read once, with any pauses. */
  readonly entries: Iterable<Entry>;
}

export interface Store {
  /** The newest revision that is on disk. */
  revision(): number;
  /** The oldest revision that can still be read. */
  floor(): number;
  get(key: string): Promise<Entry | undefined>;
  range(request: RangeRequest): Promise<RangeResult>;
  commit(request: CommitRequest): Promise<CommitResult>;
  watch(request: WatchRequest): StoreWatch;
  /** Everything as it is now. Writes made while it is read are not in it, and neither wait for it. */
  snapshot(): StoreSnapshot;
  /** Forgets what was superseded at or before the revision; a revision below the floor forgets nothing more. */
  compact(revision: number): Promise<void>;
  /** Undefined while writes are taken; otherwise why they are refused. */
  writeFailure(): Error | undefined;
  /** Finishes what was acknowledged. */
  close(): Promise<void>;
}

export class CompactedError extends Error {
  readonly floor: number;
  constructor(revision: number, floor: number) {
    super(`revision ${revision} has been compacted, the oldest one kept is ${floor}`);
    this.floor = floor;
  }
}

export class FutureRevisionError extends Error {
  readonly newest: number;
  constructor(revision: number, newest: number) {
    super(`revision ${revision} has not happened yet, the newest is ${newest}`);
    this.newest = newest;
  }
}

/** The write may not have happened: the disk is full or failing. Nothing acknowledged before is affected. */
export class StoreUnavailableError extends Error {}

/** Nothing was written: an implementation may bound what one commit takes. */
export class CommitTooLargeError extends Error {}

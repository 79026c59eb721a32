// The window of events above the floor, in order. From it watches are replayed and older revisions are read.

import type { StoredEntry, StoredEvent } from './entry.ts';
import type { Undo } from './keyspace.ts';

export interface Eviction {
  /** How many events leave the window: whole commits, the oldest first. */
  readonly count: number;
  /** The floor once they have left. */
  readonly floor: number;
  /** Journal rows that are obsolete then. */
  readonly rows: readonly number[];
}

export class History {
  // Evicted events stay in front until there are many of them: shifting an array costs its length.
  #events: (StoredEvent | undefined)[] = [];
  #head = 0;
  #sizeBytes = 0;

  get length(): number {
    return this.#events.length - this.#head;
  }

  /** Bytes kept only for the history. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  push(event: StoredEvent): void {
    this.#events.push(event);
    this.#sizeBytes += event.historyBytes;
  }

  at(index: number): StoredEvent | undefined {
    return this.#events[this.#head + index];
  }

  /** All events above the revision, which is not below the floor. */
  *after(revision: number): Iterable<StoredEvent> {
    for (let index = this.#firstAfter(revision); index < this.#events.length; index++) yield this.#events[index]!;
  }

  /** Previous values, at the revision, of keys under the prefix that changed since. */
  undo(prefix: string, revision: number): Undo {
    const undo = new Map<string, StoredEntry | undefined>();
    for (let index = this.#firstAfter(revision); index < this.#events.length; index++) {
      const { key, previous } = this.#events[index]!;
      if (key.startsWith(prefix) && !undo.has(key)) undo.set(key, previous);
    }
    return undo;
  }

  /** Plans to evict whole commits from the front as long as they are wanted gone, up to about `countMax` events. */
  planEviction(isUnwanted: (event: StoredEvent, left: HistoryLeft) => boolean, countMax: number): Eviction {
    const rows: number[] = [];
    let count = 0;
    let floor = 0;
    let sizeBytes = this.#sizeBytes;
    for (let event = this.at(0); event !== undefined; event = this.at(count)) {
      const isSameCommit = event.revision === floor;
      const left = { length: this.length - count, sizeBytes };
      if (!isSameCommit && (count >= countMax || !isUnwanted(event, left))) break;
      rows.push(...event.supersededRows());
      sizeBytes -= event.historyBytes;
      floor = event.revision;
      count += 1;
    }
    return { count, floor, rows };
  }

  evict(count: number): void {
    for (let evicted = 0; evicted < count; evicted++) {
      this.#sizeBytes -= this.#events[this.#head]!.historyBytes;
      this.#events[this.#head++] = undefined;
    }
    if (this.#head > 1024 && this.#head * 2 > this.#events.length) {
      this.#events = this.#events.slice(this.#head);
      this.#head = 0;
    }
  }

  #firstAfter(revision: number): number {
    let low = this.#head;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#events[middle]!.revision <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

export interface HistoryLeft {
  readonly length: number;
  readonly sizeBytes: number;
}

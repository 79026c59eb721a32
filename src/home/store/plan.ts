// Decides what one batch of commits does: compares are evaluated in order, against the state on disk and what the
// commits before them in the batch have changed. Pure: nothing is visible until the batch is on disk.

import { StoredEntry, StoredEvent } from './entry.ts';
import type { Journal, JournalRow } from './journal.ts';
import { type CommitRequest, type CommitResult, CommitTooLargeError } from './store.ts';

export interface PlanBase {
  readonly revision: number;
  /** The first row number to use. */
  readonly nextRow: number;
  readonly get: (key: string) => StoredEntry | undefined;
}

export class BatchPlan {
  readonly rows: JournalRow[] = [];
  readonly events: StoredEvent[] = [];
  readonly results: CommitResult[] = [];
  readonly #get: PlanBase['get'];
  readonly #changed = new Map<string, StoredEntry | undefined>();
  #revision: number;
  #nextRow: number;

  constructor(base: PlanBase) {
    this.#get = base.get;
    this.#revision = base.revision;
    this.#nextRow = base.nextRow;
  }

  /** The revision once the batch is on disk. */
  get revision(): number {
    return this.#revision;
  }

  get nextRow(): number {
    return this.#nextRow;
  }

  add(request: CommitRequest): void {
    this.results.push(this.#conflict(request) ?? this.#apply(request));
  }

  #conflict({ compares }: CommitRequest): CommitResult | undefined {
    for (const { key, revision } of compares) {
      const current = this.#current(key);
      if ((current?.revision ?? 0) !== revision) return { kind: 'conflict', key, current };
    }
    return undefined;
  }

  #apply({ writes }: CommitRequest): CommitResult {
    const revision = this.#revision + 1;
    for (const { key, value } of writes) {
      const previous = this.#current(key);
      if (value !== undefined) this.#put(key, value, previous, revision);
      else if (previous !== undefined) this.#remove(key, previous, revision);
    }
    if (this.events.at(-1)?.revision === revision) this.#revision = revision;
    return { kind: 'committed', revision: this.#revision };
  }

  #put(key: string, value: Uint8Array, previous: StoredEntry | undefined, revision: number): void {
    const createRevision = previous?.createRevision ?? revision;
    const row = { key, value, createRevision, revision, row: this.#nextRow++ };
    const entry = new StoredEntry(row);
    this.rows.push(row);
    this.#record(new StoredEvent({ revision, key, entry, previous, tombstoneRow: 0 }));
  }

  #remove(key: string, previous: StoredEntry, revision: number): void {
    const tombstoneRow = this.#nextRow++;
    this.rows.push({ row: tombstoneRow, revision, createRevision: 0, key, value: undefined });
    this.#record(new StoredEvent({ revision, key, entry: undefined, previous, tombstoneRow }));
  }

  #record(event: StoredEvent): void {
    this.events.push(event);
    this.#changed.set(event.key, event.entry);
  }

  #current(key: string): StoredEntry | undefined {
    return this.#changed.has(key) ? this.#changed.get(key) : this.#get(key);
  }
}

/** Refuses what no implementation could store, before it is queued. */
export function checkCommit({ compares, writes }: CommitRequest, max?: Journal['commitMax']): void {
  if (max !== undefined) checkSize(writes, max);
  for (const { key } of writes) checkKey(key);
  for (const { key } of compares) checkKey(key);
  if (writes.length < 2) return;
  const written = new Set<string>();
  for (const { key } of writes) {
    if (written.has(key)) throw new Error(`commit writes key ${JSON.stringify(key)} twice; write each key once`);
    written.add(key);
  }
}

function checkSize(writes: CommitRequest['writes'], max: NonNullable<Journal['commitMax']>): void {
  if (writes.length > max.keys)
    throw new CommitTooLargeError(`commit writes ${writes.length} keys, at most ${max.keys} are possible`);
  const bytes = writes.reduce((sum, { key, value }) => sum + key.length * 3 + (value?.length ?? 0) + 200, 0);
  if (bytes > max.bytes)
    throw new CommitTooLargeError(`it has ${bytes} bytes; the store takes at most ${max.bytes} at once`);
}

function checkKey(key: string): void {
  if (key === '') throw new Error('commit names an empty key; give it a name');
  // A lone surrogate has no UTF-8 form: on disk it would become another key.
  if (!key.isWellFormed()) throw new Error(`commit names key ${JSON.stringify(key)}, which is not well-formed Unicode`);
}

// A journal in etcd. Each transaction compares the lock and the one before it, so that transactions of one process come in
// order and none comes after another process took over. If the outcome of one is unknown, the tip says what happened: it
// holds the id of the last transaction. Before a batch is sent again the tip is moved, so that the first can come no more.

import { Backoff } from '../../../base/backoff.ts';
import { codes } from '../../../base/grpc/status.ts';
import { errorText, type Log } from '../../../base/log.ts';
import { sleep, type Timer, type World } from '../../../base/world.ts';
import {
  type DiskUse,
  type Journal,
  type JournalBatch,
  JournalBrokenError,
  JournalFullError,
  type JournalRow,
} from '../journal.ts';
import { brokenRecord, canParse } from '../json-record.ts';
import { type EtcdClient, EtcdError, OtherClusterError } from './client.ts';
import type { EtcdLock } from './lock.ts';
import type { KeyValue, Operation, TxnAnswer } from './messages.ts';
import {
  decodeRow,
  decodeTip,
  decodeValue,
  encodeRow,
  encodeTip,
  encodeValue,
  isCurrentForm,
  type Layout,
  type Tip,
} from './rows.ts';
import type { Seal } from './seal.ts';

export interface EtcdJournalOptions {
  readonly client: EtcdClient;
  readonly lock: EtcdLock;
  readonly layout: Layout;
  readonly world: Pick<World, 'timers' | 'random'>;
  readonly log: Log;
  readonly seal?: Seal | undefined;
  /** Values below this key are JSON: a home with one that is not cannot be read. */
  readonly jsonBelow?: string | undefined;
  /** Older states of etcd are given up this often; never if absent, where somebody else does it. */
  readonly compactEveryMs?: number | undefined;
}

/** etcd takes 128 operations and 1.5 MiB; the tip and the head of each need some of it. */
const operationsMax = 120;
const bytesMax = 1_400_000;
const pageLength = 500;

export class EtcdJournal implements Journal {
  onBroken: Journal['onBroken'];
  onStalled: Journal['onStalled'];
  onRecovered: Journal['onRecovered'];
  /** A commit is one transaction. */
  readonly commitMax = { keys: operationsMax, bytes: bytesMax };
  readonly #options: EtcdJournalOptions;
  readonly #backoff: Backoff;
  #tip: Tip;
  #tipRevision: number;
  #transactions = 0;
  #isStalled = false;
  #isClosed = false;
  #broken: JournalBrokenError | undefined;
  #compactTimer: Timer | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(options: EtcdJournalOptions, tip: Tip, tipRevision: number) {
    this.#options = options;
    this.#tip = tip;
    this.#tipRevision = tipRevision;
    this.#backoff = new Backoff(options.world.random, { firstMs: 100, delayMsMax: 1_000 });
    options.lock.onLost = (error) => this.#break(error.message);
    options.lock.isUnchanged = () => this.#isOurs();
    this.#compactLater(tipRevision);
  }

  /** The lock is held. Nothing of an earlier process can come after this. */
  static async open(options: EtcdJournalOptions): Promise<EtcdJournal> {
    const { client, layout } = options;
    const found = (await client.range({ key: layout.tip })).entries[0];
    const tip = found === undefined ? { id: '', floor: 0, revision: 0, format: 1 } : decodeTip(layout.tip, found.value);
    return new EtcdJournal(options, tip, found?.modRevision ?? 0);
  }

  async readAll(take: (row: JournalRow) => void): Promise<void> {
    const { client, layout, seal } = this.#options;
    let key = layout.row(0);
    for (;;) {
      const { entries, hasMore } = await client.range({ key, until: layout.rowsEnd, limit: pageLength });
      const outdated: JournalRow[] = [];
      for (const entry of entries) {
        const row = rowOf(entry, seal);
        this.#refuseUnlessJson(entry, row);
        if (!isCurrentForm(entry.value, seal)) outdated.push(row);
        take(row);
      }
      // After a key was put in front of the others, or encryption begun: all is stored as new rows are.
      for (const part of partsOf(outdated))
        await this.#write(
          part.map((row) => this.#put(row)),
          {},
        );
      const last = entries.at(-1);
      if (!hasMore || last === undefined) return;
      key = `${last.key}\0`;
    }
  }

  #refuseUnlessJson(entry: KeyValue, { key, value }: JournalRow): void {
    const { jsonBelow } = this.#options;
    if (jsonBelow === undefined || value === undefined || !key.startsWith(jsonBelow) || canParse(value)) return;
    throw brokenRecord(key, { place: `etcd key ${entry.key}`, remedy: 'delete that key' });
  }

  /** Small values beside the rows, such as whose rows they are. */
  async readAside(name: string): Promise<Uint8Array | undefined> {
    const { client, layout, seal } = this.#options;
    const key = layout.aside(name);
    const found = (await client.range({ key })).entries[0];
    if (found === undefined) return undefined;
    const value = decodeValue(key, found.value, seal);
    // As with rows: the key that it was encrypted with may go.
    if (!isCurrentForm(found.value, seal)) await this.writeAside(name, value);
    return value;
  }

  async writeAside(name: string, value: Uint8Array): Promise<void> {
    const key = this.#options.layout.aside(name);
    await this.#write([{ put: key, value: encodeValue(key, value, this.#options.seal) }], {});
  }

  async append({ moves, rows, forget, floor }: JournalBatch): Promise<DiskUse> {
    if (moves.length > 0) throw new JournalBrokenError('rows in etcd cannot be moved');
    const written: JournalRow[] = [];
    try {
      for (const part of partsOf(rows)) {
        await this.#write(
          part.map((row) => this.#put(row)),
          { revision: part.at(-1)!.revision },
        );
        written.push(...part);
      }
    } catch (error) {
      if (error instanceof JournalFullError) await this.#inTurn(() => this.#takeBack(written));
      throw error;
    }
    // Last, and only then: nothing is given up for a batch that does not come.
    for (const part of pieces(this.#removals(forget), operationsMax)) await this.#write(part, { floor });
    if (forget.length === 0 && floor > this.#tip.floor) await this.#write([], { floor });
    return { fileBytes: 0, usedBytes: 0 };
  }

  async probe(): Promise<void> {
    await this.#write([], {});
  }

  /** From here on the home lives elsewhere, or is on its way here: its rows go, and none is read. */
  async moveOut(to: string): Promise<void> {
    const { layout } = this.#options;
    await this.#write([{ remove: layout.row(0), until: layout.rowsEnd }], { movedTo: to, revision: 0, floor: 0 });
  }

  /** The revision of a home that has moved in, below which nothing is known. */
  async moveIn(revision: number): Promise<void> {
    await this.#write([], { revision, floor: revision, movedTo: undefined });
  }

  /** From here on rows are written in this format, and a process that does not read it is refused. */
  async raiseFormat(format: number): Promise<void> {
    await this.#write([], { format });
  }

  get tip(): Tip {
    return this.#tip;
  }

  untilReadable(): Promise<void> | undefined {
    return this.#broken === undefined ? this.#options.lock.untilCertain() : undefined;
  }

  readRefusal(): Error | undefined {
    if (this.#broken !== undefined) return this.#broken;
    if (!this.#options.lock.isStale) return undefined;
    return new Error('etcd does not answer: whether another process has taken over is not known');
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#compactTimer?.cancel();
    await this.#options.lock.release();
    this.#options.client.close();
  }

  #put(row: JournalRow): Operation {
    const key = this.#options.layout.row(row.row);
    return { put: key, value: encodeValue(key, encodeRow(row), this.#options.seal) };
  }

  /** Rows that lie beside each other go with one operation. */
  #removals(rows: readonly number[]): Operation[] {
    const { layout } = this.#options;
    const sorted = [...rows].sort((one, other) => one - other);
    const operations: Operation[] = [];
    for (let from = 0; from < sorted.length; ) {
      let end = from + 1;
      while (end < sorted.length && sorted[end]! <= sorted[end - 1]! + 1) end++;
      operations.push({ remove: layout.row(sorted[from]!), until: layout.row(sorted[end - 1]! + 1) });
      from = end;
    }
    return operations;
  }

  /** The batch is refused as a whole: its first parts must not come back with the next start. Deleting needs no room. */
  async #takeBack(rows: readonly JournalRow[]): Promise<void> {
    const { client } = this.#options;
    for (const operations of pieces(this.#removals(rows.map(({ row }) => row)), operationsMax)) {
      for (;;) {
        try {
          const { hasSucceeded } = await client.txn({ conditions: this.#conditions(), operations });
          if (hasSucceeded) break;
          await this.#explain();
        } catch (error) {
          if (!(error instanceof EtcdError)) throw error;
          await this.#pause(error);
        }
      }
    }
  }

  #conditions() {
    return [this.#options.lock.condition, { key: this.#options.layout.tip, modRevision: this.#tipRevision }];
  }

  /** One at a time: each is compared with the one before it. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => undefined);
    return done;
  }

  #write(operations: readonly Operation[], change: Partial<Tip>): Promise<void> {
    return this.#inTurn(() => this.#writeNow(operations, change));
  }

  async #writeNow(operations: readonly Operation[], change: Partial<Tip>): Promise<void> {
    for (;;) {
      if (this.#broken !== undefined) throw this.#broken;
      const tip = { ...this.#tip, ...change, id: this.#nextId() };
      try {
        const { hasSucceeded, revision } = await this.#send(tip, operations);
        if (!hasSucceeded) {
          await this.#explain();
          continue;
        }
        this.#took(tip, revision);
        return;
      } catch (error) {
        if (!isUnknown(error)) throw this.#refusalOf(error);
        await this.#pause(error as Error);
        if (await this.#settle(tip)) return;
      }
    }
  }

  #nextId(): string {
    return `${this.#options.lock.id}.${++this.#transactions}`;
  }

  #send(tip: Tip, operations: readonly Operation[]): Promise<TxnAnswer> {
    const put = { put: this.#options.layout.tip, value: encodeTip(tip) };
    return this.#options.client.txn({ conditions: this.#conditions(), operations: [put, ...operations] });
  }

  /** Whether the transaction with this tip was carried out. If not, it never will be. */
  async #settle(sent: Tip): Promise<boolean> {
    const fences = new Set<string>();
    for (;;) {
      if (this.#broken !== undefined) throw this.#broken;
      try {
        const { found, holder } = await this.#look();
        const id = found?.tip.id ?? '';
        if (holder === undefined) await this.#options.lock.takeAgain();
        if (holder === undefined) throw lockEnded();
        if (holder.id !== this.#options.lock.id) throw this.#break(takenOver(holder.address));
        if (found !== undefined && (id === sent.id || fences.has(id))) {
          this.#took(found.tip, found.modRevision);
          return id === sent.id;
        }
        if (id !== this.#tip.id) throw this.#break(changedBehind);
        const fence = { ...this.#tip, id: this.#nextId() };
        fences.add(fence.id);
        const { hasSucceeded, revision } = await this.#send(fence, []);
        // Otherwise the one or the other has come meanwhile: look again.
        if (!hasSucceeded) continue;
        this.#took(fence, revision);
        return false;
      } catch (error) {
        if (!isUnknown(error) && !(error instanceof EtcdError && error.isRefusal)) throw this.#refusalOf(error);
        await this.#pause(error as Error);
      }
    }
  }

  async #look() {
    const { client, layout, lock } = this.#options;
    const entry = (await client.range({ key: layout.tip })).entries[0];
    const found = entry && { tip: decodeTip(layout.tip, entry.value), modRevision: entry.modRevision };
    return { found, holder: await lock.holder() };
  }

  #took(tip: Tip, revision: number): void {
    this.#tip = tip;
    this.#tipRevision = revision;
    this.#backoff.reset();
    if (this.#isStalled) this.onRecovered?.();
    this.#isStalled = false;
  }

  async #pause(error: Error): Promise<void> {
    if (!this.#isStalled && !this.#isClosed) this.onStalled?.(error);
    this.#isStalled = true;
    await sleep(this.#options.world.timers, this.#backoff.nextMs());
  }

  /** A comparison failed that holds as long as only this process writes. Returns if it may be tried again. */
  async #explain(): Promise<void> {
    const { found, holder } = await this.#look();
    if (holder !== undefined && holder.id !== this.#options.lock.id) throw this.#break(takenOver(holder.address));
    if ((found?.tip.id ?? '') !== this.#tip.id) throw this.#break(changedBehind);
    if (holder === undefined) await this.#options.lock.takeAgain();
    await this.#pause(lockEnded());
    if (this.#broken !== undefined) throw this.#broken;
  }

  /** The last transaction is one of this process, or the one that it found. */
  async #isOurs(): Promise<boolean> {
    const { found } = await this.#look();
    const id = found?.tip.id ?? '';
    return id === this.#tip.id || id.startsWith(`${this.#options.lock.id}.`);
  }

  #refusalOf(error: unknown): Error {
    if (error instanceof JournalBrokenError) return error;
    if (error instanceof OtherClusterError) return this.#break(error.message);
    if (error instanceof EtcdError && error.isRefusal && !error.message.includes('too large'))
      return new JournalFullError(error.isAboutSpace ? `etcd is full: ${error.message}` : error.message);
    return this.#break(errorText(error));
  }

  #break(reason: string): JournalBrokenError {
    if (this.#broken !== undefined) return this.#broken;
    this.#broken = new JournalBrokenError(reason);
    if (!this.#isClosed) this.onBroken?.(this.#broken);
    return this.#broken;
  }

  #compactLater(revision: number): void {
    const { compactEveryMs, world, client, log } = this.#options;
    if (compactEveryMs === undefined || this.#isClosed) return;
    this.#compactTimer = world.timers.after(compactEveryMs, () => {
      const next = this.#tipRevision;
      const done = revision > 0 ? client.compact(revision) : Promise.resolve();
      // Somebody else may have done it; then there is nothing left to do.
      done.catch((error) => log.debug('etcd was not compacted', { error: errorText(error) }));
      this.#compactLater(next);
    });
  }
}

const changedBehind = 'etcd was changed behind this process: was it restored from a backup?';

function takenOver(address: string): string {
  return `another process writes this home now, at ${address}`;
}

function lockEnded(): EtcdError {
  return new EtcdError(codes.unavailable, 'etcd: the lock of this process has ended; it is taken again if it is free');
}

function isUnknown(error: unknown): boolean {
  return error instanceof EtcdError && !error.isRefusal;
}

function rowOf({ key, value }: KeyValue, seal: Seal | undefined): JournalRow {
  return decodeRow(key, decodeValue(key, value, seal));
}

/** Rows for one transaction each; those of one revision stay together. */
function* partsOf(rows: readonly JournalRow[]): Iterable<JournalRow[]> {
  let part: JournalRow[] = [];
  let bytes = 0;
  for (let from = 0; from < rows.length; ) {
    let end = from;
    let size = 0;
    for (; end < rows.length && rows[end]!.revision === rows[from]!.revision; end++) size += sizeOf(rows[end]!);
    if (part.length > 0 && (part.length + end - from > operationsMax || bytes + size > bytesMax)) {
      yield part;
      [part, bytes] = [[], 0];
    }
    for (; from < end; from++) part.push(rows[from]!);
    bytes += size;
  }
  if (part.length > 0) yield part;
}

function sizeOf({ key, value }: JournalRow): number {
  return key.length * 3 + (value?.length ?? 0) + 200;
}

function* pieces<T>(items: readonly T[], length: number): Iterable<readonly T[]> {
  for (let from = 0; from < items.length; from += length) yield items.slice(from, from + length);
}

// The store over any journal. All state and the history above the floor are in memory; commits that wait while the
// journal writes form the next batch, and become visible together once the journal says that they are on disk.
// Deciding is left to plan.ts and retention.ts, telling watchers to watchers.ts, the disk to the journal.

import { Backoff } from '../../base/backoff.ts';
import { errorText, type Log } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import type { StoredEntry } from './entry.ts';
import type { Eviction, History } from './history.ts';
import { type DiskUse, type Journal, type JournalBatch, JournalFullError, type RowMove } from './journal.ts';
import type { Keyspace } from './keyspace.ts';
import type { Loaded } from './load.ts';
import { BatchPlan, checkCommit } from './plan.ts';
import { type Limits, Retention } from './retention.ts';
import {
  type CommitRequest,
  type CommitResult,
  CompactedError,
  type Entry,
  FutureRevisionError,
  type RangeRequest,
  type RangeResult,
  type Store,
  type StoreEvent,
  type StoreSnapshot,
  StoreUnavailableError,
  type StoreWatch,
  type WatchRequest,
} from './store.ts';
import type { LandedBatch, StoreStats } from './store-metrics.ts';
import { Sweep } from './sweep.ts';
import { Watcher, Watchers } from './watchers.ts';

/** Limit of one batch, unless a single commit is larger. It also bounds how long the others wait. */
const batchBytesMax = 4 * 1024 * 1024;
const evictionsPerBatchMax = 4096;
/** A client is told no later that the outcome of its write is not known. */
const unknownMsMax = 8_000;
/** Keys that a read of an older revision may find changed since: they are put back in order at every page. */
const undoneMax = 20_000;

export interface LogStoreOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly journal: Journal;
  readonly loaded: Loaded;
  readonly limits: Limits;
  readonly onBatch?: ((batch: LandedBatch) => void) | undefined;
}

interface QueuedCommit {
  readonly request: CommitRequest;
  readonly resolve: (result: CommitResult) => void;
  readonly reject: (error: Error) => void;
}

interface QueuedCompaction {
  readonly revision: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

type Health =
  | { readonly kind: 'writable' }
  /** Probed until there is room again. */
  | { readonly kind: 'full'; readonly error: Error }
  /** The journal waits for an answer; what is under way comes or not, new commits are refused meanwhile. */
  | { readonly kind: 'stalled'; readonly error: Error }
  /** For good: what is on disk beyond what was acknowledged is not known. */
  | { readonly kind: 'broken'; readonly error: Error };

/** One batch on its way to the disk. */
interface Flight {
  readonly commits: readonly QueuedCommit[];
  readonly plan: BatchPlan;
  readonly moves: readonly (RowMove & { readonly entry: StoredEntry })[];
  readonly eviction: Eviction;
  readonly strayRows: readonly number[];
}

const noEviction: Eviction = { count: 0, floor: 0, rows: [] };

export class LogStore implements Store {
  readonly #world: LogStoreOptions['world'];
  readonly #log: Log;
  readonly #journal: Journal;
  readonly #limits: Limits;
  readonly #keyspace: Keyspace;
  readonly #history: History;
  readonly #retention: Retention;
  readonly #watchers: Watchers;
  readonly #probeBackoff: Backoff;
  readonly #onBatch: LogStoreOptions['onBatch'];
  #diskBytes = 0;
  #revision: number;
  #floor: number;
  #nextRow: number;
  #strayRows: readonly number[];
  #commits: QueuedCommit[] = [];
  #compactions: QueuedCompaction[] = [];
  #sweep: Sweep | undefined;
  #health: Health = { kind: 'writable' };
  /** A batch is under way, or about to be. */
  #isPumping = false;
  #closing: Promise<void> | undefined;
  #haveWatchesEnded = false;
  #onIdle: (() => void) | undefined;
  #retentionTimer: Timer | undefined;
  #probeTimer: Timer | undefined;
  #unknownTimer: Timer | undefined;
  #flying: readonly QueuedCommit[] = [];
  /** Set by its user: it takes no more writes, until it is opened anew. */
  onBroken: ((error: Error) => void) | undefined;

  constructor(options: LogStoreOptions) {
    const { world, log, journal, loaded, limits } = options;
    this.#world = world;
    this.#log = log;
    this.#journal = journal;
    this.#limits = limits;
    this.#onBatch = options.onBatch;
    this.#keyspace = loaded.keyspace;
    this.#history = loaded.history;
    this.#revision = loaded.revision;
    this.#floor = loaded.floor;
    this.#nextRow = loaded.nextRow;
    this.#strayRows = loaded.strayRows;
    this.#retention = new Retention(limits, world.clock);
    this.#watchers = new Watchers(log);
    this.#probeBackoff = new Backoff(world.random, { firstMs: 200, delayMsMax: 10_000 });
    journal.onBroken = (error) => this.#break(error);
    journal.onStalled = (error) => this.#stall(error);
    journal.onRecovered = () => this.#recover();
    if (this.#history.length > 0) this.#retention.mark(this.#revision);
    this.#armRetention();
  }

  revision(): number {
    return this.#revision;
  }

  floor(): number {
    return this.#floor;
  }

  stats(): StoreStats {
    return {
      revision: this.#revision,
      floor: this.#floor,
      liveBytes: this.#keyspace.sizeBytes,
      diskBytes: this.#diskBytes,
      isWritable: this.#health.kind === 'writable',
    };
  }

  async get(key: string): Promise<Entry | undefined> {
    for (let wait = this.#untilReadable(); wait !== undefined; wait = this.#untilReadable()) await wait;
    this.#checkReadable();
    return this.#keyspace.get(key);
  }

  async range(request: RangeRequest): Promise<RangeResult> {
    for (let wait = this.#untilReadable(); wait !== undefined; wait = this.#untilReadable()) await wait;
    this.#checkReadable();
    const { prefix, after, limit = Number.POSITIVE_INFINITY, countMax, revision = this.#revision } = request;
    if (revision > this.#revision) throw new FutureRevisionError(revision, this.#revision);
    if (revision < this.#floor) throw new CompactedError(revision, this.#floor);
    const undo = revision === this.#revision ? undefined : this.#history.undo(prefix, revision);
    if (undo !== undefined && undo.size > undoneMax) throw new CompactedError(revision, this.#revision);
    return { revision, ...this.#keyspace.page({ prefix, after, limit, countMax, undo }) };
  }

  commit(request: CommitRequest): Promise<CommitResult> {
    return new Promise((resolve, reject) => {
      checkCommit(request, this.#journal.commitMax);
      this.#checkWritable();
      this.#commits.push({ request, resolve, reject });
      this.#pump();
    });
  }

  compact(revision: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#checkWritable();
      if (revision > this.#revision) throw new FutureRevisionError(revision, this.#revision);
      if (revision <= this.#floor) return resolve();
      this.#compactions.push({ revision, resolve, reject });
      this.#pump();
    });
  }

  watch(request: WatchRequest): StoreWatch {
    const watcher = new Watcher(request);
    Promise.resolve().then(() => this.#startWatch(watcher));
    return { cancel: () => this.#watchers.remove(watcher) };
  }

  snapshot(): StoreSnapshot {
    this.#checkOpen();
    return { revision: this.#revision, entries: this.#keyspace.frozen() };
  }

  /** Why nothing can be read just now. */
  readFailure(): Error | undefined {
    return this.#journal.readRefusal?.();
  }

  writeFailure(): Error | undefined {
    return this.#health.kind === 'writable' ? this.readFailure() : this.#health.error;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  #startWatch(watcher: Watcher): void {
    if (!watcher.isActive) return;
    const { prefix, afterRevision } = watcher.request;
    const refusal = this.#watchRefusal(afterRevision);
    if (refusal !== undefined) {
      this.#watchers.end(watcher, refusal);
      return;
    }
    const replay: StoreEvent[] = [];
    for (const event of this.#history.after(afterRevision)) if (event.key.startsWith(prefix)) replay.push(event);
    this.#watchers.add(watcher);
    if (replay.length > 0) this.#watchers.deliver(watcher, replay);
    this.#watchers.progress(watcher, this.#revision);
  }

  #watchRefusal(afterRevision: number): Error | undefined {
    if (this.#haveWatchesEnded) return closedError();
    return afterRevision < this.#floor ? new CompactedError(afterRevision, this.#floor) : undefined;
  }

  /** Starts the next batch unless one is under way. It begins a little later, so that what comes now comes with it. */
  #pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    Promise.resolve().then(() => this.#run());
  }

  async #run(): Promise<void> {
    while (this.#health.kind === 'writable') {
      const flight = this.#takeOff();
      if (flight === undefined) break;
      this.#flying = flight.commits;
      try {
        const startMs = this.#world.clock.monotonicMs();
        const use = isEmpty(flight) ? undefined : await this.#journal.append(this.#batchOf(flight));
        this.#report(flight, this.#world.clock.monotonicMs() - startMs);
        this.#land(flight, use);
      } catch (error) {
        this.#crash(flight.commits, error);
      }
    }
    this.#isPumping = false;
    this.#onIdle?.();
  }

  #takeOff(): Flight | undefined {
    const isClosing = this.#closing !== undefined;
    const moves = isClosing ? [] : (this.#sweep?.next(this.#nextRow, this.#floor) ?? []);
    this.#nextRow += moves.length;
    const plan = new BatchPlan({
      revision: this.#revision,
      nextRow: this.#nextRow,
      get: (key) => this.#keyspace.get(key),
    });
    const commits = this.#takeCommits(plan);
    this.#nextRow = plan.nextRow;
    const eviction = isClosing && this.#compactions.length === 0 ? noEviction : this.#planEviction();
    const flight = { commits, plan, moves, eviction, strayRows: this.#strayRows };
    return commits.length === 0 && isEmpty(flight) ? undefined : flight;
  }

  #takeCommits(plan: BatchPlan): QueuedCommit[] {
    let sizeBytes = 0;
    let count = 0;
    for (; count < this.#commits.length && sizeBytes < batchBytesMax; count++) {
      const { request } = this.#commits[count]!;
      plan.add(request);
      for (const { key, value } of request.writes) sizeBytes += key.length + (value?.byteLength ?? 0);
    }
    return this.#commits.splice(0, count);
  }

  #planEviction(): Eviction {
    const asked = this.#compactions.reduce((highest, { revision }) => Math.max(highest, revision), 0);
    const floorWanted = Math.max(asked, this.#retention.expiredRevision());
    return this.#history.planEviction(
      (event, left) => this.#retention.isUnwanted(event, left, floorWanted),
      evictionsPerBatchMax,
    );
  }

  #batchOf({ plan, moves, eviction, strayRows }: Flight): JournalBatch {
    return {
      moves,
      rows: plan.rows,
      forget: strayRows.length === 0 ? eviction.rows : [...strayRows, ...eviction.rows],
      floor: Math.max(this.#floor, eviction.floor),
    };
  }

  /** The batch is on disk: now, and only now, it is seen. */
  #land(flight: Flight, use: DiskUse | undefined): void {
    const { plan, moves, commits } = flight;
    for (const { entry, to } of moves) entry.movedTo(to);
    for (const event of plan.events) {
      if (event.entry !== undefined) this.#keyspace.put(event.entry, event.previous);
      else this.#keyspace.remove(event.previous!);
      this.#history.push(event);
    }
    if (plan.events.length > 0) this.#retention.mark((this.#revision = plan.revision));
    this.#forget(flight);
    if (use !== undefined) this.#planSweep(use);
    if (plan.events.length > 0) this.#watchers.publish(plan.events, this.#revision);
    for (const [index, { resolve }] of commits.entries()) resolve(plan.results[index]!);
    this.#armRetention();
  }

  #report({ commits, eviction }: Flight, durationMs: number): void {
    this.#onBatch?.({ commits: commits.length, durationMs, hasCompacted: eviction.count > 0 });
  }

  #forget({ eviction, strayRows }: Flight): void {
    if (strayRows.length > 0) this.#strayRows = [];
    if (eviction.count > 0) {
      const before = this.#history.sizeBytes;
      this.#history.evict(eviction.count);
      this.#floor = eviction.floor;
      this.#retention.forgot(this.#floor, before - this.#history.sizeBytes);
    }
    const done = this.#compactions.filter(({ revision }) => revision <= this.#floor);
    if (done.length === 0) return;
    this.#compactions = this.#compactions.filter(({ revision }) => revision > this.#floor);
    for (const { resolve } of done) resolve();
  }

  #planSweep(use: DiskUse): void {
    this.#diskBytes = use.fileBytes;
    if (this.#sweep?.isDone) this.#sweep = undefined;
    const rowBytes = this.#keyspace.sizeBytes + this.#history.sizeBytes;
    if (this.#sweep !== undefined || !this.#retention.isSweepDue(use, rowBytes)) return;
    this.#log.info('rewriting the store, because its rows are fragmented', { rowBytes, usedBytes: use.usedBytes });
    this.#retention.sweepBegins();
    this.#sweep = new Sweep(this.#keyspace);
  }

  #crash(commits: readonly QueuedCommit[], error: unknown): void {
    const reason = error instanceof Error ? error : new Error(String(error));
    this.#sweep = undefined;
    if (reason instanceof JournalFullError) this.#full(reason);
    else this.#break(reason);
    this.#refuse([...commits, ...this.#commits, ...this.#compactions], reason);
    this.#commits = [];
    this.#compactions = [];
  }

  #break(error: Error): void {
    if (this.#health.kind === 'broken' || this.#closing !== undefined) return;
    this.#health = { kind: 'broken', error };
    this.#probeTimer?.cancel();
    this.#log.error('the store takes no more writes, restart it when the disk is well', { error: errorText(error) });
    this.#refuse([...this.#flying, ...this.#commits, ...this.#compactions], error);
    this.#commits = [];
    this.#compactions = [];
    this.onBroken?.(error);
  }

  /** Commits that have not left yet are refused at once; those under way when it has taken too long. */
  #stall(error: Error): void {
    if (this.#health.kind !== 'writable') return;
    this.#health = { kind: 'stalled', error };
    this.#log.warn('the store does not answer; writes are refused meanwhile', { error: errorText(error) });
    this.#refuse([...this.#commits, ...this.#compactions], error);
    this.#commits = [];
    this.#compactions = [];
    this.#unknownTimer = this.#world.timers.after(unknownMsMax, () => {
      const reason = `whether it was written is not known yet: ${errorText(error)}`;
      for (const { reject } of this.#flying) reject(new StoreUnavailableError(reason, { cause: error }));
    });
  }

  #recover(): void {
    this.#unknownTimer?.cancel();
    if (this.#health.kind !== 'stalled') return;
    this.#health = { kind: 'writable' };
    this.#log.info('the store answers again');
  }

  #full(error: Error): void {
    if (this.#health.kind === 'writable' || this.#health.kind === 'stalled') {
      this.#health = { kind: 'full', error };
      this.#log.error('the store takes no writes until there is room', { error: errorText(error) });
    }
    if (this.#closing !== undefined) return;
    this.#probeTimer = this.#world.timers.after(this.#probeBackoff.nextMs(), () => void this.#probe());
  }

  async #probe(): Promise<void> {
    this.#probeTimer = undefined;
    if (this.#closing !== undefined) return;
    this.#isPumping = true;
    try {
      await this.#journal.probe();
      this.#health = { kind: 'writable' };
      this.#probeBackoff.reset();
      this.#log.info('the store takes writes again');
    } catch (error) {
      this.#crash([], error);
    }
    await this.#run();
  }

  #refuse(waiting: readonly { readonly reject: (error: Error) => void }[], cause: Error): void {
    for (const { reject } of waiting) reject(unavailable(cause));
  }

  #armRetention(): void {
    if (this.#retentionTimer !== undefined || this.#history.length === 0 || this.#closing !== undefined) return;
    this.#retentionTimer = this.#world.timers.after(this.#limits.historyMs / 10, () => {
      this.#retentionTimer = undefined;
      if (this.#retention.expiredRevision() > this.#floor && this.#health.kind === 'writable') this.#pump();
      this.#armRetention();
    });
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw closedError();
  }

  /** Set while it is not known whether what is in memory is the newest. */
  #untilReadable(): Promise<void> | undefined {
    return this.#journal.untilReadable?.();
  }

  #checkReadable(): void {
    this.#checkOpen();
    const refusal = this.readFailure();
    if (refusal !== undefined) throw new StoreUnavailableError(`the store cannot be read: ${refusal.message}`);
  }

  #checkWritable(): void {
    this.#checkOpen();
    if (this.#health.kind !== 'writable') throw unavailable(this.#health.error);
  }

  async #close(): Promise<void> {
    this.#retentionTimer?.cancel();
    this.#probeTimer?.cancel();
    this.#unknownTimer?.cancel();
    if (this.#isPumping) await new Promise<void>((resolve) => (this.#onIdle = resolve));
    this.#haveWatchesEnded = true;
    this.#watchers.endAll(closedError());
    await this.#journal.close();
  }
}

function isEmpty({ plan, moves, eviction, strayRows }: Omit<Flight, 'commits'>): boolean {
  return plan.rows.length + moves.length + eviction.count + strayRows.length === 0;
}

function unavailable(cause: Error): StoreUnavailableError {
  return new StoreUnavailableError(`the store takes no writes: ${errorText(cause)}`, { cause });
}

function closedError(): StoreUnavailableError {
  return new StoreUnavailableError('the store is closed');
}

// List, then watch from the list's revision; resume where the last watch ended; list again only when the home says that
// revision is gone or still to come, or does not know what we last saw. Decides when to try again; leaves what objects
// mean to its sink.

import { Backoff } from '../../base/backoff.ts';
import { isSameJson } from '../../base/json.ts';
import { errorText, type Log } from '../../base/log.ts';
import { sleep, type Timer, type World } from '../../base/world.ts';
import { getOrUndefined } from '../client/absent.ts';
import type { Client, List, ListDecoder, Selection } from '../client/client.ts';
import { isServed } from '../client/discovery.ts';
import type { StatusLike, WatchEvent } from '../client/watch-stream.ts';
import { ApiError, isAhead, isForbidden, isGone, isNotFound } from '../objects/api-error.ts';
import type { KubernetesObject, ResourceType } from '../objects/object.ts';
import { KnownHistory, OtherHistory } from './known-history.ts';

export type ReflectorState =
  | { readonly kind: 'stopped' }
  | { readonly kind: 'listing' }
  | { readonly kind: 'watching' }
  /** The home does not answer as it should; what is known is kept. The code is that of its answer, if there was one. */
  | { readonly kind: 'failing'; readonly error: string; readonly code: number | undefined }
  /** The home's discovery says there is no such kind. */
  | { readonly kind: 'unserved' };

export interface ReflectorStatus {
  readonly state: ReflectorState;
  readonly lastContactMs: number | undefined;
  readonly staleSinceMs: number | undefined;
  /** How far into the home's history the copy has come, deletes included; absent while it is listed anew. */
  readonly revision: string | undefined;
}

interface ReflectorSink<T> {
  /** In another history a revision that is known may stand for something else. */
  listBegins(history: 'same' | 'other'): void;
  upsert(object: T): void;
  remove(object: T): void;
  /** Objects missing in the list are gone. `restored`: the home was, so that their owners may be about to write them. */
  listEnds(history: 'continued' | 'restored'): void;
}

export interface ReflectorOptions<T> extends Selection {
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly type: ResourceType;
  readonly pageSize?: number;
  /** Reads the pages of a list in place of JSON.parse; its items need only hold what the sink wants. */
  readonly decodeList?: ListDecoder;
  readonly sink: ReflectorSink<T>;
  readonly onState: () => void;
}

const defaultPageSize = 500;
// A member that starts while its broker is away must be back before its lease of 30 s runs out.
const backoffOptions = { firstMs: 1600, delayMsMax: 15_000 };
/** A watch that lived this long, or brought something, was a success. */
const healthyWatchMs = 5_000;
/** Watches end after a random time in this range, so that a home's watchers do not all come back at once. */
const watchMs = { min: 300_000, max: 600_000 };
/** Homes count the time of a watch in whole seconds. */
const earlyMsMax = 1_000;
/** A process that was stopped for a while finds its watches ended after this, and homes may have been put back since. */
const lateMsMax = 5_000;
/** How long a home may be late in ending a watch before we take the connection for dead. */
const watchGraceMs = 30_000;
/** Homes that send bookmarks do so about each minute: a watch that brings nothing for this long is opened anew. */
const silenceMsMax = 150_000;
/** Discovery must say "no such kind" twice, this far apart: a home that is starting may not have loaded its kinds. */
const absenceConfirmMs = 20_000;
/** Lists that expired between pages before one without pages is tried. */
const expiredListsMax = 2;
/** A page that gets no answer, as on a dead connection, is asked for again soon; a slow home gets ever more time. */
const pageMs = { first: 10_000, max: 60_000 };
/** How long a home may take to begin a watch with the event it was asked from. */
const proofMs = 10_000;

export class Reflector<T extends KubernetesObject = KubernetesObject> {
  readonly #options: ReflectorOptions<T>;
  readonly #selection: Selection;
  readonly #backoff: Backoff;
  readonly #history = new KnownHistory();
  #state: ReflectorState = { kind: 'stopped' };
  #running: AbortController | undefined;
  #lastContactMs: number | undefined;
  #staleSinceMs: number | undefined;
  #absentSinceMs: number | undefined;
  #expiredLists = 0;
  #pageMsMax = pageMs.first;
  #endWatch: (() => void) | undefined;
  /** Whether the home has sent a bookmark since the last watch that fell silent. */
  #hasBookmarks = false;

  constructor(options: ReflectorOptions<T>) {
    const { namespace, labelSelector, fieldSelector } = options;
    this.#options = options;
    this.#selection = { namespace, labelSelector, fieldSelector };
    this.#backoff = new Backoff(options.world.random, backoffOptions);
  }

  start(): void {
    if (this.#running !== undefined) return;
    this.#running = new AbortController();
    void this.#run(this.#running.signal);
  }

  stop(): void {
    this.#running?.abort(new Error('informer stopped'));
    this.#running = undefined;
    this.#enter({ kind: 'stopped' });
  }

  /** The home may have been put back to an older copy: list everything anew. */
  relist(): void {
    this.#history.doubt();
    this.#endWatch?.();
  }

  status(): ReflectorStatus {
    return {
      state: this.#state,
      lastContactMs: this.#lastContactMs,
      staleSinceMs: this.#staleSinceMs,
      revision: this.#history.revision,
    };
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const next = await this.#step(signal);
      if (signal.aborted) return;
      if (next === 'wait') await sleep(this.#options.world.timers, this.#backoff.nextMs(), signal).catch(() => {});
    }
  }

  /** One list or one watch, and what its end means for the next. */
  async #step(signal: AbortSignal): Promise<'go on' | 'wait'> {
    const history = this.#history;
    try {
      if (history.revision === undefined) {
        await this.#list(signal);
        return 'go on';
      }
      const from = history.watchBegins() ?? history.resumption(await this.#renewedUntil(signal));
      // Told to list anew meanwhile.
      if (history.revision === undefined) return 'go on';
      return (await this.#watch(from, signal)) ? 'go on' : 'wait';
    } catch (error) {
      history.stepFailed(isRefusal(error));
      if (error instanceof EndedWatch) return 'go on';
      if (error instanceof OtherHistory) {
        this.#options.log.info('listing again', { reason: error.message, revision: history.revision });
        history.doubt();
        return 'go on';
      }
      if (!signal.aborted) await this.#failed(error, signal);
      return isUnwatchable(error) && this.#isFirstFailure() ? 'go on' : 'wait';
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { world, sink } = this.#options;
    if (this.#state.kind === 'stopped') this.#enter({ kind: 'listing' });
    const startedMs = world.clock.monotonicMs();
    const isDoubted = this.#history.listBegins();
    sink.listBegins(isDoubted ? 'other' : 'same');
    try {
      await this.#takeList(signal);
    } catch (error) {
      const waitedMs = world.clock.monotonicMs() - Math.max(startedMs, this.#lastContactMs ?? 0);
      if (waitedMs >= this.#pageMsMax) this.#pageMsMax = Math.min(2 * this.#pageMsMax, pageMs.max);
      this.#history.listFailed(isDoubted);
      throw error;
    }
  }

  async #takeList(signal: AbortSignal): Promise<void> {
    const { client, type, sink, pageSize, decodeList } = this.#options;
    this.#history.pagesBegin();
    const limit = this.#expiredLists < expiredListsMax ? (pageSize ?? defaultPageSize) : 0;
    const listing = { signal, timeoutMs: this.#pageMsMax, decode: decodeList };
    let newest = '';
    for await (const page of client.listPaged<T>(type, { ...this.#selection, ...listing, limit })) {
      signal.throwIfAborted();
      this.#contact();
      this.#takePage(page);
      newest = page.metadata.resourceVersion;
    }
    sink.listEnds(this.#history.isRestored(newest) ? 'restored' : 'continued');
    this.#history.listEnds(newest, client.renewals.newest());
    this.#expiredLists = 0;
    this.#pageMsMax = pageMs.first;
    this.#absentSinceMs = undefined;
  }

  #takePage({ items, each }: List<T>): void {
    const { sink } = this.#options;
    if (each !== undefined) {
      each((item) => sink.upsert(item));
      return;
    }
    for (const item of items) sink.upsert(item);
  }

  /** Resolves when the home ended the watch in good order, to whether it was worth opening. */
  async #watch(from: string, signal: AbortSignal): Promise<boolean> {
    const { clock, timers, random } = this.#options.world;
    const timeoutMs = watchMs.min + random.float() * (watchMs.max - watchMs.min);
    const startedMs = clock.monotonicMs();
    const before = this.#history.revision!;
    const controller = new AbortController();
    const end = () => controller.abort(new EndedWatch());
    this.#endWatch = end;
    const proof = timers.after(proofMs, () => this.#history.isUnproven && controller.abort(new OtherHistory()));
    const guard = timers.after(timeoutMs + watchGraceMs, () => controller.abort(new Error('watch overdue')));
    const listening = this.#listenForSilence(end);
    const stopWatch = () => controller.abort(signal.reason);
    signal.addEventListener('abort', stopWatch, { once: true });
    const wasWorthIt = () => this.#history.revision !== before || clock.monotonicMs() - startedMs >= healthyWatchMs;
    try {
      await this.#follow(from, timeoutMs, controller.signal);
      const lateMs = clock.monotonicMs() - startedMs - timeoutMs;
      this.#history.watchEnds(lateMs >= -earlyMsMax && lateMs <= lateMsMax);
      return wasWorthIt();
    } catch (error) {
      // A transport may have words of its own for a request that we ended.
      throw controller.signal.aborted && !signal.aborted ? controller.signal.reason : error;
    } finally {
      if (wasWorthIt()) this.#backoff.reset();
      this.#endWatch = undefined;
      proof.cancel();
      guard.cancel();
      listening.cancel();
      signal.removeEventListener('abort', stopWatch);
      controller.abort(new Error('watch ended'));
    }
  }

  /** A home that has nothing to tell sends no bookmarks either, so silence proves nothing: it is a reason to ask. */
  #listenForSilence(onSilence: () => void): Pick<Timer, 'cancel'> {
    const { clock, timers } = this.#options.world;
    const startedMs = clock.monotonicMs();
    const look = () => {
      const quietMs = clock.monotonicMs() - Math.max(startedMs, this.#lastContactMs ?? 0);
      const isSilent = this.#hasBookmarks && quietMs >= silenceMsMax;
      // Never less than a moment: a clock that has not quite come as far as its timers would have us look for ever.
      const leftMs = this.#hasBookmarks ? Math.max(1, silenceMsMax - quietMs) : silenceMsMax;
      if (!isSilent) timer = timers.after(leftMs, look);
      else {
        this.#hasBookmarks = false;
        onSilence();
      }
    };
    let timer = timers.after(silenceMsMax, look);
    return { cancel: () => timer.cancel() };
  }

  async #follow(from: string, timeoutMs: number, signal: AbortSignal): Promise<void> {
    const { client, type } = this.#options;
    const events = await client.watch<T>(type, { ...this.#selection, resourceVersion: from, timeoutMs, signal });
    signal.throwIfAborted();
    this.#contact();
    this.#history.watchIsAnswered();
    this.#staleSinceMs = undefined;
    this.#enter({ kind: 'watching' });
    for await (const event of events) {
      signal.throwIfAborted();
      this.#contact();
      this.#take(event);
    }
  }

  #take(event: WatchEvent<T>): void {
    const { type, sink, client } = this.#options;
    if (event.type === 'ERROR') throw errorOfEvent(type, event.object);
    if (this.#history.isUnproven) return this.#history.prove(event);
    if (event.type === 'BOOKMARK') this.#hasBookmarks = true;
    else if (event.type === 'DELETED') sink.remove(event.object);
    else sink.upsert(event.object);
    this.#history.take(event, client.renewals.newest());
  }

  /** Up to where a renewal of ours shows the history to be the same; -1 if none does. */
  async #renewedUntil(signal: AbortSignal): Promise<number> {
    const { client } = this.#options;
    const { renewal } = this.#history;
    const before = renewal && client.renewals.successor(renewal);
    if (renewal === undefined || before === undefined) return -1;
    const { type, object } = renewal;
    const found = await getOrUndefined(client, type, object.metadata, { signal }).catch(unlessForbidden);
    const after = client.renewals.successor(renewal);
    if (found === undefined || after === undefined) return -1;
    // Later ones only show that the home still had this one.
    const isOurs = isSameJson(found, before.object) || isSameJson(found, after.object);
    return isOurs ? Number(object.metadata.resourceVersion ?? 0) : -1;
  }

  async #failed(error: unknown, signal: AbortSignal): Promise<void> {
    const { log, world } = this.#options;
    const history = this.#history;
    if (!isNotFound(error)) this.#absentSinceMs = undefined;
    if (isUnwatchable(error)) {
      log.info('revision cannot be watched from, listing again', {
        revision: history.revision,
        error: errorText(error),
      });
      if (history.revision === undefined) this.#expiredLists += 1;
      if (isAhead(error)) history.doubt();
      else history.forget();
      return;
    }
    this.#staleSinceMs ??= this.#lastContactMs ?? world.clock.monotonicMs();
    if (isNotFound(error)) {
      history.forget();
      if (await this.#confirmAbsence(signal)) return;
    }
    if (this.#state.kind !== 'failing')
      log.warn('the home does not answer, keeping the last known state', { error: errorText(error) });
    this.#enter({ kind: 'failing', error: errorText(error), code: error instanceof ApiError ? error.code : undefined });
  }

  /** Whether discovery has now said twice, far enough apart, that the kind is gone. */
  async #confirmAbsence(signal: AbortSignal): Promise<boolean> {
    const { client, type, log, world, sink } = this.#options;
    const served = await isServed(client, type, signal).catch(() => undefined);
    if (served !== false) {
      this.#absentSinceMs = undefined;
      return false;
    }
    this.#contact();
    const nowMs = world.clock.monotonicMs();
    this.#absentSinceMs ??= nowMs;
    if (nowMs - this.#absentSinceMs < absenceConfirmMs) return false;
    if (this.#state.kind !== 'unserved') log.info('kind is not served here, taking it for empty');
    this.#staleSinceMs = undefined;
    sink.listBegins('same');
    sink.listEnds('continued');
    this.#enter({ kind: 'unserved' });
    return true;
  }

  #isFirstFailure(): boolean {
    if (this.#backoff.failures > 0) return false;
    this.#backoff.nextMs();
    return true;
  }

  #enter(next: ReflectorState): void {
    const isNews = next.kind !== this.#state.kind;
    this.#state = next;
    if (isNews) this.#options.onState();
  }

  #contact(): void {
    this.#lastContactMs = this.#options.world.clock.monotonicMs();
  }
}

/** Ends a watch that may be dead, or may be of another history; what comes next tells. */
class EndedWatch extends Error {}

function unlessForbidden(error: unknown): undefined {
  if (!isForbidden(error)) throw error;
}

/** The revision is forgotten, or not known because the home was put back to an earlier state. */
function isUnwatchable(error: unknown): boolean {
  return isGone(error) || isAhead(error);
}

/** By the home itself: anything that stands before it may answer 502 or 503 while it is away. */
function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && (error.code === 403 || error.code === 429);
}

function errorOfEvent(type: ResourceType, status: StatusLike): ApiError {
  return new ApiError(`watch ${type.plural}: ${status.message ?? 'the home ended the watch with an error'}`, {
    code: status.code ?? 500,
    reason: status.reason ?? '',
  });
}

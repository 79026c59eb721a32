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
import type { Renewal } from '../client/renewals.ts';
import type { StatusLike, WatchEvent } from '../client/watch-stream.ts';
import { ApiError, isAhead, isForbidden, isGone, isNotFound } from '../objects/api-error.ts';
import type { KubernetesObject, ResourceType } from '../objects/object.ts';

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

interface Sight {
  readonly object: KubernetesObject;
  readonly isGone: boolean;
}

export interface Reflector {
  start(): void;
  stop(): void;
  /** The home may have been put back to an older copy: list everything anew. */
  relist(): void;
  status(): ReflectorStatus;
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
/** A home that is restored from a snapshot goes on this far above all revisions before, and does not come so far otherwise. */
const restoreLeap = 100_000_000;

export function createReflector<T extends KubernetesObject>(options: ReflectorOptions<T>): Reflector {
  const { client, world, log, type, sink } = options;
  const selection = {
    namespace: options.namespace,
    labelSelector: options.labelSelector,
    fieldSelector: options.fieldSelector,
  };
  const backoff = new Backoff(world.random, backoffOptions);
  let state: ReflectorState = { kind: 'stopped' };
  let running: AbortController | undefined;
  let lastContactMs: number | undefined;
  let staleSinceMs: number | undefined;
  /** Set while there is a copy that a watch can carry on from. */
  let revision: string | undefined;
  let absentSinceMs: number | undefined;
  let expiredLists = 0;
  let pageMsMax = pageMs.first;
  /** The last event; undefined if there was none since the list. */
  let last: Sight | undefined;
  /** Whether a list has just ended, or a watch at its time: nothing can have happened to the history since. */
  let isUnbroken = false;
  /** The revision of the last list. It shows nothing of what was deleted before, so the history must be the same up to here. */
  let listedAt = 0;
  /** Whether the next list may be of another history than the copy. */
  let hasDoubts = false;
  /** Where a watch begins with the event we saw last; undefined when that was in a list. */
  let beforeLast: string | undefined;
  /** The event that a watch must begin with, or it is of another history. */
  let expected: Sight | undefined;
  /** The newest of ours when the home last said something of this kind. */
  let renewal: Renewal | undefined;
  let endWatch: (() => void) | undefined;
  /** Whether the home has sent a bookmark since the last watch that fell silent. */
  let hasBookmarks = false;

  function enter(next: ReflectorState): void {
    const isNews = next.kind !== state.kind;
    state = next;
    if (isNews) options.onState();
  }

  function contact(): void {
    lastContactMs = world.clock.monotonicMs();
  }

  async function list(signal: AbortSignal): Promise<void> {
    if (state.kind === 'stopped') enter({ kind: 'listing' });
    const isDoubted = hasDoubts;
    const startedMs = world.clock.monotonicMs();
    sink.listBegins(isDoubted ? 'other' : 'same');
    hasDoubts = false;
    try {
      await takeList(signal);
    } catch (error) {
      const waitedMs = world.clock.monotonicMs() - Math.max(startedMs, lastContactMs ?? 0);
      if (waitedMs >= pageMsMax) pageMsMax = Math.min(2 * pageMsMax, pageMs.max);
      // The copy is still as it was: the next list is as doubtful.
      hasDoubts ||= isDoubted;
      throw error;
    }
  }

  async function takeList(signal: AbortSignal): Promise<void> {
    last = undefined;
    const limit = expiredLists < expiredListsMax ? (options.pageSize ?? defaultPageSize) : 0;
    const listing = { signal, timeoutMs: pageMsMax, decode: options.decodeList };
    let newest = '';
    for await (const page of client.listPaged<T>(type, { ...selection, ...listing, limit })) {
      signal.throwIfAborted();
      contact();
      takePage(page);
      newest = page.metadata.resourceVersion;
    }
    sink.listEnds(listedAt > 0 && Number(newest) - listedAt >= restoreLeap ? 'restored' : 'continued');
    // Doubts raised meanwhile concern the earlier list.
    revision = hasDoubts ? undefined : newest;
    listedAt = Number(newest);
    beforeLast = undefined;
    isUnbroken = true;
    renewal = client.renewals.newest();
    expiredLists = 0;
    pageMsMax = pageMs.first;
    absentSinceMs = undefined;
  }

  function takePage({ items, each }: List<T>): void {
    if (each !== undefined) {
      each((item) => sink.upsert(item));
      return;
    }
    for (const item of items) sink.upsert(item);
  }

  /** Resolves when the home ended the watch in good order, to whether it was worth opening. */
  async function watch(from: string, signal: AbortSignal): Promise<boolean> {
    const timeoutMs = watchMs.min + world.random.float() * (watchMs.max - watchMs.min);
    const startedMs = world.clock.monotonicMs();
    const before = revision!;
    const controller = new AbortController();
    endWatch = () => controller.abort(new EndedWatch());
    const proof = world.timers.after(proofMs, () => expected && controller.abort(new OtherHistory()));
    const guard = world.timers.after(timeoutMs + watchGraceMs, () => controller.abort(new Error('watch overdue')));
    const listening = listenForSilence(() => controller.abort(new EndedWatch()));
    const stopWatch = () => controller.abort(signal.reason);
    signal.addEventListener('abort', stopWatch, { once: true });
    const wasWorthIt = () => revision !== before || world.clock.monotonicMs() - startedMs >= healthyWatchMs;
    try {
      await follow(from, timeoutMs, controller.signal);
      const lateMs = world.clock.monotonicMs() - startedMs - timeoutMs;
      isUnbroken = lateMs >= -earlyMsMax && lateMs <= lateMsMax;
      return wasWorthIt();
    } catch (error) {
      // A transport may have words of its own for a request that we ended.
      throw controller.signal.aborted && !signal.aborted ? controller.signal.reason : error;
    } finally {
      if (wasWorthIt()) backoff.reset();
      endWatch = undefined;
      proof.cancel();
      guard.cancel();
      listening.cancel();
      signal.removeEventListener('abort', stopWatch);
      controller.abort(new Error('watch ended'));
    }
  }

  /** A home that has nothing to tell sends no bookmarks either, so silence proves nothing: it is a reason to ask. */
  function listenForSilence(onSilence: () => void): Pick<Timer, 'cancel'> {
    const startedMs = world.clock.monotonicMs();
    const look = () => {
      const quietMs = world.clock.monotonicMs() - Math.max(startedMs, lastContactMs ?? 0);
      const isSilent = hasBookmarks && quietMs >= silenceMsMax;
      // Never less than a moment: a clock that has not quite come as far as its timers would have us look for ever.
      const leftMs = hasBookmarks ? Math.max(1, silenceMsMax - quietMs) : silenceMsMax;
      if (!isSilent) timer = world.timers.after(leftMs, look);
      else {
        hasBookmarks = false;
        onSilence();
      }
    };
    let timer = world.timers.after(silenceMsMax, look);
    return { cancel: () => timer.cancel() };
  }

  async function follow(from: string, timeoutMs: number, signal: AbortSignal): Promise<void> {
    const events = await client.watch<T>(type, { ...selection, resourceVersion: from, timeoutMs, signal });
    signal.throwIfAborted();
    contact();
    isUnbroken = false;
    staleSinceMs = undefined;
    enter({ kind: 'watching' });
    for await (const event of events) {
      signal.throwIfAborted();
      contact();
      take(event);
    }
  }

  function take(event: WatchEvent<T>): void {
    if (event.type === 'ERROR') throw errorOfEvent(type, event.object);
    if (expected !== undefined) return takeFirst(event);
    if (event.type === 'BOOKMARK') hasBookmarks = true;
    else {
      const isGone = event.type === 'DELETED';
      if (isGone) sink.remove(event.object);
      else sink.upsert(event.object);
      last = { object: event.object, isGone };
      if (event.object.metadata.resourceVersion !== revision) beforeLast = revision;
    }
    revision = event.object.metadata.resourceVersion ?? revision;
    renewal = client.renewals.newest();
  }

  /** An event that we have seen before proves the history, and is not passed on again. */
  function takeFirst(event: WatchEvent<T>): void {
    const isGone = event.type === 'DELETED';
    if (event.type === 'ERROR' || event.type === 'BOOKMARK') throw new OtherHistory();
    if (isGone !== expected!.isGone || !isSameJson(event.object, expected!.object)) throw new OtherHistory();
    expected = undefined;
    hasDoubts = false;
  }

  /** One list or one watch, and what its end means for the next. */
  async function step(signal: AbortSignal): Promise<'go on' | 'wait'> {
    try {
      if (revision === undefined) {
        await list(signal);
        return 'go on';
      }
      expected = undefined;
      const from = isUnbroken ? revision : await resumption(signal);
      // Told to list anew meanwhile.
      if (revision === undefined) return 'go on';
      return (await watch(from, signal)) ? 'go on' : 'wait';
    } catch (error) {
      // A home that refuses a watch is there. It may be overloaded: a list each time would make that worse.
      isUnbroken &&= isRefusal(error);
      if (error instanceof EndedWatch) return 'go on';
      if (error instanceof OtherHistory) {
        log.info('listing again', { reason: error.message, revision });
        doubt();
        return 'go on';
      }
      if (!signal.aborted) await failed(error, signal);
      return isUnwatchable(error) && isFirstFailure() ? 'go on' : 'wait';
    }
  }

  /**
   * Where to watch from after a break, in which the home may have been put back to a copy and have written past our
   * revision. Not from there: from the newest thing that shows the history to be the same. Between the two ours has
   * nothing, another may have something.
   */
  async function resumption(signal: AbortSignal): Promise<string> {
    const proven = await renewedUntil(signal);
    if (proven >= Math.max(revisionOf(last?.object), listedAt)) return String(Math.min(proven, Number(revision)));
    if (beforeLast === undefined) throw new OtherHistory('nothing shows that the home was not put back');
    hasDoubts = true;
    expected = last;
    return beforeLast;
  }

  /** Up to where a renewal of ours shows the history to be the same; -1 if none does. */
  async function renewedUntil(signal: AbortSignal): Promise<number> {
    const before = renewal && client.renewals.successor(renewal);
    if (renewal === undefined || before === undefined) return -1;
    const found = await getOrUndefined(client, renewal.type, renewal.object.metadata, { signal }).catch(
      unlessForbidden,
    );
    const after = client.renewals.successor(renewal);
    if (found === undefined || after === undefined) return -1;
    // Later ones only show that the home still had this one.
    const isOurs = isSameJson(found, before.object) || isSameJson(found, after.object);
    return isOurs ? revisionOf(renewal.object) : -1;
  }

  function doubt(): void {
    revision = undefined;
    hasDoubts = true;
  }

  function isFirstFailure(): boolean {
    if (backoff.failures > 0) return false;
    backoff.nextMs();
    return true;
  }

  async function failed(error: unknown, signal: AbortSignal): Promise<void> {
    if (!isNotFound(error)) absentSinceMs = undefined;
    if (isUnwatchable(error)) {
      log.info('revision cannot be watched from, listing again', { revision, error: errorText(error) });
      if (revision === undefined) expiredLists += 1;
      if (isAhead(error)) doubt();
      revision = undefined;
      return;
    }
    staleSinceMs ??= lastContactMs ?? world.clock.monotonicMs();
    if (isNotFound(error)) {
      revision = undefined;
      if (await confirmAbsence(signal)) return;
    }
    if (state.kind !== 'failing')
      log.warn('the home does not answer, keeping the last known state', { error: errorText(error) });
    enter({ kind: 'failing', error: errorText(error), code: error instanceof ApiError ? error.code : undefined });
  }

  /** Whether discovery has now said twice, far enough apart, that the kind is gone. */
  async function confirmAbsence(signal: AbortSignal): Promise<boolean> {
    const served = await isServed(client, type, signal).catch(() => undefined);
    if (served !== false) {
      absentSinceMs = undefined;
      return false;
    }
    contact();
    const nowMs = world.clock.monotonicMs();
    absentSinceMs ??= nowMs;
    if (nowMs - absentSinceMs < absenceConfirmMs) return false;
    if (state.kind !== 'unserved') log.info('kind is not served here, taking it for empty');
    staleSinceMs = undefined;
    sink.listBegins('same');
    sink.listEnds('continued');
    enter({ kind: 'unserved' });
    return true;
  }

  async function run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const next = await step(signal);
      if (signal.aborted) return;
      if (next === 'wait') await sleep(world.timers, backoff.nextMs(), signal).catch(() => {});
    }
  }

  return {
    start: () => {
      if (running !== undefined) return;
      running = new AbortController();
      void run(running.signal);
    },
    stop: () => {
      running?.abort(new Error('informer stopped'));
      running = undefined;
      enter({ kind: 'stopped' });
    },
    relist: () => {
      doubt();
      endWatch?.();
    },
    status: () => ({ state, lastContactMs, staleSinceMs, revision }),
  };
}

/** 0 for nothing. */
function revisionOf(object: KubernetesObject | undefined): number {
  return Number(object?.metadata.resourceVersion ?? 0);
}

/** The home was put back to an older copy and has written since, or may have been. */
class OtherHistory extends Error {
  constructor(message = 'the home no longer has the last revision') {
    super(message);
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

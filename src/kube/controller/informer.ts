// A local copy of one kind (or of what a selector chooses of it), kept current by list and watch.
//
// - Never a missed delete: an object that vanished during an interruption is reported as deleted after the next list.
// - Fail static: while the home is away, refuses us or sends invalid data, everything known stays, and `status()` shows
//   since when it is old. If the home's discovery twice lacks the kind, its objects are reported as deleted, and the
//   informer counts as synced and empty until the kind comes back.
// - One object with one resourceVersion is reported once. Handlers run synchronously, before the next event is read.
// - A new list is applied page by page on top of the old copy and its deletes come last: during a re-list readers see a
//   mixture of old and new, never less than either, and memory peaks at one page above the copy.

import { isSameJson } from '../../base/json.ts';
import { type Log, silentLog } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import type { Client, Selection } from '../client/client.ts';
import type { AnyObject, KubernetesObject, ResourceType } from '../objects/object.ts';
import { keyOf } from '../objects/object.ts';
import { type IndexFunctions, InformerStore, type StoredEntry } from './informer-store.ts';
import { Reflector, type ReflectorState } from './reflector.ts';

/** `next` is absent when the object is gone, `previous` when it is new. */
type InformerHandler<Kept> = (key: string, next: Kept | undefined, previous: Kept | undefined) => void;

interface InformerStatus {
  readonly state: ReflectorState;
  readonly hasSynced: boolean;
  /** Monotonic time of the last sign of life from the home: an answered list or watch, an event, a bookmark. */
  readonly lastContactMs: number | undefined;
  /** Monotonic time since which the copy may be old; absent while it is current. */
  readonly staleSinceMs: number | undefined;
  /** How far into the home's history the copy has come, deletes included; absent while it is listed anew. */
  readonly revision: string | undefined;
}

/** Interface for readers of a copy; an Informer is one, and a test can be another. */
export interface InformerReader<Kept> {
  get(key: string): Kept | undefined;
  keys(): Iterable<string>;
  values(): Iterable<Kept>;
  readonly size: number;
  byIndex(name: string, value: string): Kept[];
  countByIndex(name: string, value: string): number;
  readonly hasSynced: boolean;
  whenSynced(signal?: AbortSignal): Promise<void>;
  /** The handler is first called for all known objects. Returns what takes it off again. */
  on(handler: InformerHandler<Kept>): () => void;
}

export interface Informer<Kept> extends InformerReader<Kept> {
  readonly type: ResourceType;
  /** Whether a restored home does not have it: it is shown until its writer had time to write it again. */
  isLost(key: string): boolean;
  start(): void;
  stop(): void;
  /** The home may have been restored from a backup: lists everything anew, and trusts no known revision. */
  relist(): void;
  status(): InformerStatus;
  /**
   * Called when the home is back after it failed us, and after each list but the first. Our writes in between may be
   * lost or undone without an event: writers of these objects check all their wanted objects again.
   */
  onReturn(handler: () => void): () => void;
  /** Called when the state's kind changes: `watching` to `failing` and back. */
  onStatus(handler: (status: InformerStatus) => void): () => void;
}

export interface InformerOptions<T, Kept> extends Selection {
  readonly client: Client;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log?: Log;
  readonly type: ResourceType;
  /** Retain only what is needed of an object; `undefined` leaves it out altogether. The object itself when absent. */
  readonly keep?: (object: T) => Kept | undefined;
  /** For each index the values under which an object is found. Must depend on the kept object alone. */
  readonly indexes?: IndexFunctions<Kept>;
  readonly pageSize?: number;
  /**
   * Objects that a restored home does not have stay for a while: others wrote them after the snapshot, and write them again.
   */
  readonly keepsLost?: boolean;
}

/** Enough for their writers to notice, to wait for their turn and to write. */
const lostMs = 45_000;

export function createInformer<T extends KubernetesObject = AnyObject, Kept = T>(
  options: InformerOptions<T, Kept>,
): Informer<Kept> {
  const log = (options.log ?? silentLog).with({ informer: options.type.plural });
  const keep = options.keep ?? ((object: T) => object as unknown as Kept);
  const store = new InformerStore<Kept>(options.indexes ?? {});
  const handlers = new Set<InformerHandler<Kept>>();
  const statusHandlers = new Set<(status: InformerStatus) => void>();
  const syncWaiters = new Set<() => void>();
  const returnHandlers = new Set<() => void>();
  let hasSynced = false;
  let listNumber = 0;
  let wasFailing = false;
  /** Whether a list is under way that may be of another history than what is kept. */
  let isOtherHistory = false;
  /** Objects that a restored home does not have, until their writers had time to write them again. */
  const lost = new Map<string, { readonly entry: StoredEntry<Kept>; readonly timer: Timer }>();

  function tell(key: string, next: Kept | undefined, previous: Kept | undefined): void {
    for (const handler of handlers) {
      try {
        handler(key, next, previous);
      } catch (error) {
        // One handler's fault must not make the others, or this copy, miss an event.
        log.error('informer handler failed', { key, error });
      }
    }
  }

  function remove(key: string): void {
    const previous = store.entry(key);
    if (previous === undefined) return;
    store.delete(key);
    tell(key, undefined, previous.value);
  }

  function upsert(object: T): void {
    const key = keyOf(object);
    const { uid = '', resourceVersion = '' } = object.metadata;
    const previous = store.entry(key);
    const isKnown = previous?.uid === uid && previous.resourceVersion === resourceVersion;
    if (isKnown && !isOtherHistory) {
      previous.listNumber = listNumber;
      return;
    }
    // Deleted and re-created during an interruption: the delete is reported too.
    if (previous !== undefined && previous.uid !== uid) remove(key);
    const value = tryKeep(key, object);
    if (value === undefined) {
      remove(key);
    } else {
      const known = store.entry(key)?.value;
      store.set(key, { value, uid, resourceVersion, listNumber });
      if (!isKnown || !isSameJson(value, known)) tell(key, value, known);
    }
  }

  /** An object that the hook cannot digest is left out: it must not hold up all the others. */
  function tryKeep(key: string, object: T): Kept | undefined {
    try {
      return keep(object);
    } catch (error) {
      log.error('informer cannot keep an object, leaving it out', { key, error });
      return undefined;
    }
  }

  function removeUnseen(history: 'continued' | 'restored'): void {
    for (const [key, entry] of store.entries()) {
      if (entry.listNumber === listNumber || lost.get(key)?.entry === entry) continue;
      if (history === 'restored' && options.keepsLost) removeLater(key, entry);
      else remove(key);
    }
  }

  /** Unless it comes again. */
  function removeLater(key: string, entry: StoredEntry<Kept>): void {
    const timer = options.world.timers.after(lostMs, () => {
      lost.delete(key);
      if (store.entry(key) === entry) remove(key);
    });
    lost.get(key)?.timer.cancel();
    lost.set(key, { entry, timer });
    // Its writer may be here, and looks whether it is lost.
    tell(key, entry.value, entry.value);
  }

  function stopLosing(): void {
    for (const { timer } of lost.values()) timer.cancel();
    lost.clear();
  }

  function returned(): void {
    for (const handler of returnHandlers) handler();
  }

  function synced(): void {
    if (hasSynced) return;
    hasSynced = true;
    for (const waiter of syncWaiters) waiter();
    syncWaiters.clear();
  }

  const reflector = new Reflector<T>({
    ...options,
    log,
    sink: {
      listBegins: (history) => {
        listNumber += 1;
        isOtherHistory = history === 'other';
      },
      upsert,
      remove: (object) => remove(keyOf(object)),
      listEnds: (history) => {
        isOtherHistory = false;
        removeUnseen(history);
        if (hasSynced) returned();
        synced();
      },
    },
    onState: () => {
      const { kind } = reflector.status().state;
      if (wasFailing && kind === 'watching') returned();
      wasFailing = kind === 'failing';
      for (const handler of statusHandlers) handler(informer.status());
    },
  });

  const informer: Informer<Kept> = {
    type: options.type,
    start: () => reflector.start(),
    stop: () => {
      stopLosing();
      reflector.stop();
    },
    relist: () => reflector.relist(),
    get: (key) => store.entry(key)?.value,
    isLost: (key) => lost.has(key) && lost.get(key)!.entry === store.entry(key),
    keys: () => store.keys(),
    *values() {
      for (const [, entry] of store.entries()) yield entry.value;
    },
    get size() {
      return store.size;
    },
    byIndex: (name, value) => Array.from(store.keysByIndex(name, value), (key) => store.entry(key)!.value),
    countByIndex: (name, value) => store.countByIndex(name, value),
    get hasSynced() {
      return hasSynced;
    },
    whenSynced: (signal) =>
      new Promise((resolve, reject) => {
        if (hasSynced) return resolve();
        if (signal?.aborted) return reject(signal.reason);
        const waiter = () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        };
        const onAbort = () => {
          syncWaiters.delete(waiter);
          reject(signal?.reason);
        };
        signal?.addEventListener('abort', onAbort, { once: true });
        syncWaiters.add(waiter);
      }),
    on: (handler) => {
      for (const [key, entry] of store.entries()) handler(key, entry.value, undefined);
      handlers.add(handler);
      return () => handlers.delete(handler);
    },
    status: () => ({ hasSynced, ...reflector.status() }),
    onReturn: (handler) => {
      returnHandlers.add(handler);
      return () => returnHandlers.delete(handler);
    },
    onStatus: (handler) => {
      statusHandlers.add(handler);
      return () => statusHandlers.delete(handler);
    },
  };
  return informer;
}

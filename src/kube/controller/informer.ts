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
import { shareTexts } from './shared-texts.ts';

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
  return new LocalCopy(options);
}

class LocalCopy<T extends KubernetesObject = AnyObject, Kept = T> implements Informer<Kept> {
  readonly #options: InformerOptions<T, Kept>;
  readonly #log;
  readonly #keep;
  readonly #store;
  readonly #handlers = new Set<InformerHandler<Kept>>();
  readonly #statusHandlers = new Set<(status: InformerStatus) => void>();
  readonly #syncWaiters = new Set<() => void>();
  readonly #returnHandlers = new Set<() => void>();
  #hasSynced = false;
  #listNumber = 0;
  #wasFailing = false;
  /** Whether a list is under way that may be of another history than what is kept. */
  #isOtherHistory = false;
  /** Objects that a restored home does not have, until their writers had time to write them again. */
  readonly #lost = new Map<string, { readonly entry: StoredEntry<Kept>; readonly timer: Timer }>();
  readonly #reflector;

  constructor(options: InformerOptions<T, Kept>) {
    this.#options = options;
    this.#log = (this.#options.log ?? silentLog).with({ informer: this.#options.type.plural });
    // What is made of an object by a hook is small, and may be no plain object.
    this.#keep = this.#options.keep ?? ((object: T) => shareTexts(object) as unknown as Kept);
    this.#store = new InformerStore<Kept>(this.#options.indexes ?? {});
    this.#reflector = new Reflector<T>({
      ...this.#options,
      log: this.#log,
      sink: {
        listBegins: (history) => {
          this.#listNumber += 1;
          this.#isOtherHistory = history === 'other';
        },
        upsert: (object) => this.#upsert(object),
        remove: (object) => this.#remove(keyOf(object)),
        listEnds: (history) => {
          this.#isOtherHistory = false;
          this.#removeUnseen(history);
          if (this.#hasSynced) this.#returned();
          this.#synced();
        },
      },
      onState: () => {
        const { kind } = this.#reflector.status().state;
        if (this.#wasFailing && kind === 'watching') this.#returned();
        this.#wasFailing = kind === 'failing';
        for (const handler of this.#statusHandlers)
          handler({ hasSynced: this.#hasSynced, ...this.#reflector.status() });
      },
    });
  }

  get type() {
    return this.#options.type;
  }

  start(): void {
    return this.#reflector.start();
  }

  stop(): void {
    this.#stopLosing();
    this.#reflector.stop();
  }

  relist(): void {
    return this.#reflector.relist();
  }

  get(key: string): Kept | undefined {
    return this.#store.entry(key)?.value;
  }

  isLost(key: string): boolean {
    return this.#lost.has(key) && this.#lost.get(key)!.entry === this.#store.entry(key);
  }

  keys(): Iterable<string> {
    return this.#store.keys();
  }

  *values(): Iterable<Kept> {
    for (const [, entry] of this.#store.entries()) yield entry.value;
  }

  get size(): number {
    return this.#store.size;
  }

  byIndex(name: string, value: string): Kept[] {
    return Array.from(this.#store.keysByIndex(name, value), (key) => this.#store.entry(key)!.value);
  }

  countByIndex(name: string, value: string): number {
    return this.#store.countByIndex(name, value);
  }

  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  whenSynced(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#hasSynced) return resolve();
      if (signal?.aborted) return reject(signal.reason);
      const waiter = () => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      };
      const onAbort = () => {
        this.#syncWaiters.delete(waiter);
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#syncWaiters.add(waiter);
    });
  }

  on(handler: InformerHandler<Kept>): () => void {
    for (const [key, entry] of this.#store.entries()) handler(key, entry.value, undefined);
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  status(): InformerStatus {
    return { hasSynced: this.#hasSynced, ...this.#reflector.status() };
  }

  onReturn(handler: () => void): () => void {
    this.#returnHandlers.add(handler);
    return () => this.#returnHandlers.delete(handler);
  }

  onStatus(handler: (status: InformerStatus) => void): () => void {
    this.#statusHandlers.add(handler);
    return () => this.#statusHandlers.delete(handler);
  }

  #tell(key: string, next: Kept | undefined, previous: Kept | undefined): void {
    for (const handler of this.#handlers) {
      try {
        handler(key, next, previous);
      } catch (error) {
        // One handler's fault must not make the others, or this copy, miss an event.
        this.#log.error('informer handler failed', { key, error });
      }
    }
  }

  #remove(key: string): void {
    const previous = this.#store.entry(key);
    if (previous === undefined) return;
    this.#store.delete(key);
    this.#tell(key, undefined, previous.value);
  }

  #upsert(object: T): void {
    const key = keyOf(object);
    const { uid = '', resourceVersion = '' } = object.metadata;
    const previous = this.#store.entry(key);
    const isKnown = previous?.uid === uid && previous.resourceVersion === resourceVersion;
    if (isKnown && !this.#isOtherHistory) {
      previous.listNumber = this.#listNumber;
      return;
    }
    // Deleted and re-created during an interruption: the delete is reported too.
    if (previous !== undefined && previous.uid !== uid) this.#remove(key);
    const value = this.#tryKeep(key, object);
    if (value === undefined) {
      this.#remove(key);
    } else {
      const known = this.#store.entry(key)?.value;
      this.#store.set(key, { value, uid, resourceVersion, listNumber: this.#listNumber });
      if (!isKnown || !isSameJson(value, known)) this.#tell(key, value, known);
    }
  }

  /** An object that the hook cannot digest is left out: it must not hold up all the others. */
  #tryKeep(key: string, object: T): Kept | undefined {
    try {
      return this.#keep(object);
    } catch (error) {
      this.#log.error('informer cannot keep an object, leaving it out', { key, error });
      return undefined;
    }
  }

  #removeUnseen(history: 'continued' | 'restored'): void {
    for (const [key, entry] of this.#store.entries()) {
      if (entry.listNumber === this.#listNumber || this.#lost.get(key)?.entry === entry) continue;
      if (history === 'restored' && this.#options.keepsLost) this.#removeLater(key, entry);
      else this.#remove(key);
    }
  }

  /** Unless it comes again. */
  #removeLater(key: string, entry: StoredEntry<Kept>): void {
    const timer = this.#options.world.timers.after(lostMs, () => {
      this.#lost.delete(key);
      if (this.#store.entry(key) === entry) this.#remove(key);
    });
    this.#lost.get(key)?.timer.cancel();
    this.#lost.set(key, { entry, timer });
    // Its writer may be here, and looks whether it is lost.
    this.#tell(key, entry.value, entry.value);
  }

  #stopLosing(): void {
    for (const { timer } of this.#lost.values()) timer.cancel();
    this.#lost.clear();
  }

  #returned(): void {
    for (const handler of this.#returnHandlers) handler();
  }

  #synced(): void {
    if (this.#hasSynced) return;
    this.#hasSynced = true;
    for (const waiter of this.#syncWaiters) waiter();
    this.#syncWaiters.clear();
  }
}

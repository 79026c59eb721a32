// The writing side of the table that the DNS server reads: names to packed answers, zone states, places. One writer. Readers
// in any thread get the memory once, and then only notices of new generations. It keeps empty non-terminals (RFC 8020).

import { ByteWriter } from '../../base/dns/bytes.ts';
import { recordType } from '../../base/dns/codes.ts';
import { encodeName, isWithin, NameEncoder } from '../../base/dns/name.ts';
import { PackedMap, type PackedMemory, type PackedSnapshot } from '../packed/packed-map.ts';
import { Places, type PlacesMemory } from '../packed/places.ts';
import { order, packAnswers, plainRecord, type RecordSet, unpackAnswers, zoneMark } from './answers.ts';
import type { Zone } from './zones.ts';

/** The memory that a reader in another thread needs. */
export interface CatalogMemory {
  readonly names: PackedMemory;
  readonly places: PlacesMemory;
  readonly state: SharedArrayBuffer;
  /** The copy of an earlier process, for zones that are not synced yet. None of its zones is ready; they are stale. */
  readonly old?: Omit<CatalogMemory, 'old'>;
}

/** All that a reader needs, as it was at one moment. */
export interface CatalogSnapshot {
  readonly names: PackedSnapshot;
  readonly places: ReturnType<Places['snapshot']>;
  readonly serial: number;
}

export type CatalogNews =
  /** The copy that an earlier process left is no longer wanted. */
  | { readonly kind: 'no old copy' }
  | { readonly kind: 'names'; readonly memory: PackedMemory }
  | { readonly kind: 'places'; readonly memory: PackedMemory };

/** Words of the shared state. Bits are zone ids. */
export const stateWord = { readyZones: 0, staleZones: 1, serial: 2, queryLog: 3 } as const;
const stateWords = 16;

/** Reverse names belong to this pseudo zone: the last number that leaves room for marks. */
const reverseZone = 63;

interface Parent {
  /** Held names below it; above 0. */
  count: number;
  /** It also has a writer of its own. */
  isOwn: boolean;
}

export interface NameTableOptions {
  readonly serial: number;
  /** Serials then are times of changes: those of several servers of one zone can be compared. */
  readonly nowSeconds?: () => number;
}

export class NameTable {
  readonly places: Places;
  readonly #names: PackedMap;
  readonly #stateMemory = new SharedArrayBuffer(4 * stateWords);
  readonly #state = new Int32Array(this.#stateMemory);
  readonly #writer = new ByteWriter(4096);
  readonly #encoder = new NameEncoder();
  readonly #listeners = new Set<(news: CatalogNews) => void>();
  /** Every name above a held one, below its zone. */
  readonly #parents = new Map<string, Parent>();
  #old: CatalogMemory['old'];
  readonly #nowSeconds: (() => number) | undefined;

  constructor(options: NameTableOptions) {
    this.#names = new PackedMap({ onGeneration: (memory) => this.#tell({ kind: 'names', memory }) });
    this.places = new Places((memory) => this.#tell({ kind: 'places', memory }));
    this.#state[stateWord.serial] = options.serial | 0;
    this.#nowSeconds = options.nowSeconds;
  }

  get memory(): CatalogMemory {
    const memory = { names: this.#names.memory, places: this.places.memory, state: this.#stateMemory };
    return this.#old === undefined ? memory : { ...memory, old: this.#old };
  }

  /** For new readers only; its names never enter the table itself. */
  setOld(old: NonNullable<CatalogMemory['old']>): void {
    this.#old = old;
  }

  dropOld(): void {
    if (this.#old === undefined) return;
    this.#old = undefined;
    this.#tell({ kind: 'no old copy' });
  }

  snapshot(): CatalogSnapshot {
    return { names: this.#names.snapshot(), places: this.places.snapshot(), serial: this.serial };
  }

  get size(): number {
    return this.#names.size;
  }

  get memoryBytes(): number {
    return this.#names.memoryBytes;
  }

  onNews(listener: (news: CatalogNews) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  setReady(zone: number, isReady: boolean): void {
    this.#setBit(stateWord.readyZones, zone, isReady);
  }

  setStale(zone: number, isStale: boolean): void {
    this.#setBit(stateWord.staleZones, zone, isStale);
  }

  isReady(zone: number): boolean {
    return ((this.#state[stateWord.readyZones]! >> zone) & 1) === 1;
  }

  isStale(zone: number): boolean {
    return ((this.#state[stateWord.staleZones]! >> zone) & 1) === 1;
  }

  get serial(): number {
    return this.#state[stateWord.serial]!;
  }

  /** Seen by every thread with its next query. */
  setQueryLog(isOn: boolean): void {
    Atomics.store(this.#state, stateWord.queryLog, isOn ? 1 : 0);
  }

  /** RFC 1982 wants it to go up with every change that a secondary could see. */
  bumpSerial(): void {
    const next = (this.serial >>> 0) + 1;
    Atomics.store(this.#state, stateWord.serial, Math.max(next, this.#nowSeconds?.() ?? 0) | 0);
  }

  put(name: string, zone: number, sets: readonly RecordSet[]): void {
    this.#setOwn(name, true);
    this.#putEntry(name, zone, sets);
  }

  /** Writes only what is not there yet; true if it did. */
  putIfOther(name: string, zone: number, sets: readonly RecordSet[]): boolean {
    this.#setOwn(name, true);
    const key = this.#encoder.encode(name);
    const value = packAnswers(this.#writer, zone, sets);
    const present = this.#names.get(key);
    if (present && Buffer.compare(present, value) === 0) return false;
    this.#names.set(key, value);
    return true;
  }

  /** A name with held names below it stays, without records. */
  remove(name: string): void {
    const key = this.#encoder.encode(name);
    const present = this.#setOwn(name, false) ? this.#names.get(key) : undefined;
    if (present) this.#putEntry(name, present[0]! & ~(zoneMark.singleName | zoneMark.old), []);
    else this.#names.delete(key);
  }

  /** RFC 8020: while it is held, every name between it and its zone exists. Its owner holds it once, and releases it. */
  hold(name: string, zone: Zone): void {
    for (const parent of parentsOf(name, zone)) {
      const known = this.#parents.get(parent);
      if (known) known.count += 1;
      else {
        const isOwn = this.has(parent);
        this.#parents.set(parent, { count: 1, isOwn });
        if (!isOwn) this.#putEntry(parent, zone.id, []);
      }
    }
  }

  release(name: string, zone: Zone): void {
    for (const parent of parentsOf(name, zone)) {
      const known = this.#parents.get(parent);
      if (!known) continue;
      known.count -= 1;
      if (known.count > 0) continue;
      this.#parents.delete(parent);
      if (!known.isOwn) this.#names.delete(this.#encoder.encode(parent));
    }
  }

  /** Removes the names of a zone that now lies elsewhere, `now`; either may lie in the other. */
  removeLeftBehind(before: Zone, now: Zone): void {
    if (before.name === now.name) return;
    const isBelow = isWithin(before.bytes, before.bytes.length, now.bytes);
    for (const key of this.#names.keys()) {
      const isLeft = isWithin(key, key.length, before.bytes) && (isBelow || !isWithin(key, key.length, now.bytes));
      if (isLeft && this.#names.get(key)![0] === before.id) this.#names.delete(key);
    }
  }

  has(name: string): boolean {
    const key = this.#encoder.tryEncode(name);
    return key !== undefined && this.#names.get(key) !== undefined;
  }

  get(name: string): { zone: number; sets: RecordSet[] } | undefined {
    const value = this.#names.get(this.#encoder.encode(name));
    return value && unpackAnswers(value);
  }

  /** Reverse names are shared: several services may stand behind one address. */
  changePointers(
    reverse: string,
    change: { readonly remove: readonly string[]; readonly add: readonly string[] },
  ): void {
    const removed = new Set(change.remove.map((name) => Buffer.from(encodeName(name)).toString('latin1')));
    const kept = new Map<string, Uint8Array>();
    for (const record of this.get(reverse)?.sets[0]?.records ?? []) {
      const key = Buffer.from(record.rdata).toString('latin1');
      if (!removed.has(key)) kept.set(key, record.rdata);
    }
    for (const name of change.add) {
      const bytes = encodeName(name);
      kept.set(Buffer.from(bytes).toString('latin1'), bytes);
    }
    if (kept.size === 0) {
      this.remove(reverse);
      return;
    }
    const records = [...kept.values()].map((rdata) => plainRecord(rdata));
    this.put(reverse, reverseZone, [{ type: recordType.PTR, order: order.fixed, records }]);
  }

  /** Gives back what earlier forms of names take. */
  compact(): void {
    this.#names.compact();
  }

  *nameKeys(): IterableIterator<Uint8Array> {
    yield* this.#names.keys();
  }

  #putEntry(name: string, zone: number, sets: readonly RecordSet[]): void {
    this.#names.set(this.#encoder.encode(name), packAnswers(this.#writer, zone, sets));
  }

  /** True if held names lie below the name. */
  #setOwn(name: string, isOwn: boolean): boolean {
    const parent = this.#parents.get(name);
    if (parent) parent.isOwn = isOwn;
    return parent !== undefined;
  }

  #setBit(word: number, bit: number, isSet: boolean): void {
    const mask = 1 << bit;
    Atomics.store(this.#state, word, isSet ? this.#state[word]! | mask : this.#state[word]! & ~mask);
  }

  #tell(news: CatalogNews): void {
    for (const listener of this.#listeners) listener(news);
  }
}

function* parentsOf(name: string, zone: Zone): IterableIterator<string> {
  if (!name.endsWith(`.${zone.name}`)) return;
  for (let at = name.indexOf('.') + 1; name.length - at > zone.name.length; at = name.indexOf('.', at) + 1)
    yield name.slice(at);
}

// A map from bytes to bytes in two shared blocks of memory: one thread writes, any number read at the same time.
// A slot is one word: the position of an entry in its low bits, the high bits of the key's hash in the others. How many bits
// a position takes depends on the size of the other block, and stands behind the last slot.
// An entry is written once and never changed; replacing it writes a new one and swaps one slot, so a reader sees the old
// value or the new one and nothing in between. When the blocks are full or mostly garbage the writer makes a fresh pair
// (a new generation) and tells its listener; readers keep the old pair until they have been handed the new one.

import { copyOf } from '../../base/bytes/copy.ts';
import { hashBytes } from '../../base/dns/name.ts';

export interface PackedMemory {
  readonly slots: SharedArrayBuffer;
  readonly bytes: SharedArrayBuffer;
}

/** A map as it was at one moment. */
export interface PackedSnapshot {
  /** A copy, in memory of its own. */
  readonly slots: Int32Array<ArrayBuffer>;
  /** Where the entries lie: what is there once never changes. */
  readonly bytes: Uint8Array;
}

const headerBytes = 6; // key length (2), value length (4)
const emptySlot = 0;
const deletedSlot = -1;
const slotsMin = 1024;
const bytesMin = 1 << 16;
/** A block that is no longer small is taken large at once: untouched pages cost nothing, copying does. */
const spaciousFrom = 2 << 20;
const spaciousBytes = 128 << 20;

/** The reading side: finds entries, never changes anything. */
export class PackedReader {
  bytes!: Uint8Array;
  /** The same memory, for conversion to text. */
  buffer!: Buffer;
  protected slots!: Int32Array;
  protected mask = 0;
  /** Those bits of a slot that are a position. */
  protected positionMask = 0;

  constructor(memory: PackedMemory) {
    this.adopt(memory);
  }

  adopt(memory: PackedMemory): void {
    this.slots = new Int32Array(memory.slots);
    this.bytes = new Uint8Array(memory.bytes);
    this.buffer = Buffer.from(memory.bytes);
    this.mask = this.slots.length - 2;
    this.positionMask = maskOf(this.slots[this.mask + 1]!);
  }

  /** Where the entry starts, or -1. `hash` must be `hashBytes` of the key. */
  find(key: Uint8Array, length: number, hash: number): number {
    const slots = this.slots;
    for (let slot = hash & this.mask; ; slot = (slot + 1) & this.mask) {
      const word = Atomics.load(slots, slot);
      if (word === emptySlot) return -1;
      if (this.mayBe(word, hash) && this.holds(this.entryOf(word), key, length)) return this.entryOf(word);
    }
  }

  /** Whether the hash of a slot's key begins as this one does. */
  protected mayBe(word: number, hash: number): boolean {
    return word !== deletedSlot && ((word ^ hash) & ~this.positionMask) === 0;
  }

  /** Entries start at multiples of four. Position 0 means empty, hence the -1. */
  protected entryOf(word: number): number {
    return ((word & this.positionMask) - 1) * 4;
  }

  protected holds(entry: number, key: Uint8Array, length: number): boolean {
    const bytes = this.bytes;
    if (((bytes[entry]! << 8) | bytes[entry + 1]!) !== length) return false;
    const start = entry + headerBytes;
    for (let i = 0; i < length; i++) if (bytes[start + i] !== key[i]) return false;
    return true;
  }

  valueStart(entry: number): number {
    return entry + headerBytes + ((this.bytes[entry]! << 8) | this.bytes[entry + 1]!);
  }

  valueLength(entry: number): number {
    return valueLength(this.bytes, entry);
  }

  /** All keys and values that are there now. What is written meanwhile is not among them: entries never change. */
  *all(): IterableIterator<{ readonly key: Uint8Array; readonly value: Uint8Array }> {
    const { bytes } = this;
    for (const entry of this.#entries()) {
      const [start, end] = keyRange(bytes, entry);
      yield { key: bytes.subarray(start, end), value: bytes.subarray(end, end + valueLength(bytes, entry)) };
    }
  }

  /** Where all entries start that are there now, in the order of memory: entries added together lie together. */
  #entries(): Int32Array {
    const entries = new Int32Array(this.mask + 1);
    let count = 0;
    for (let slot = 0; slot <= this.mask; slot++) {
      const word = Atomics.load(this.slots, slot);
      if (word !== emptySlot && word !== deletedSlot) entries[count++] = this.entryOf(word);
    }
    return entries.subarray(0, count).sort();
  }

  /** A view of the value, good until the next change; undefined if there is none. */
  get(key: Uint8Array): Uint8Array | undefined {
    const entry = this.find(key, key.length, hashBytes(key, 0, key.length));
    if (entry < 0) return undefined;
    const start = this.valueStart(entry);
    return this.bytes.subarray(start, start + this.valueLength(entry));
  }
}

const positionOf = (entry: number) => entry / 4 + 1;
const entryAt = (position: number) => (position - 1) * 4;
const maskOf = (bits: number) => 2 ** bits - 1;
const padded = (size: number) => (size + 3) & ~3;

export interface PackedMapOptions {
  /** Called with the new memory after every change of generation. */
  readonly onGeneration?: (memory: PackedMemory) => void;
}

export class PackedMap extends PackedReader {
  /** The key being looked for, when it was given as text; often the same is written next. */
  #key: Uint8Array = new Uint8Array(256);
  #keyText = '';
  #keyLength = 0;
  #keyHash = hashBytes(new Uint8Array(0), 0, 0);
  readonly #onGeneration: (memory: PackedMemory) => void;
  #memory: PackedMemory;
  #top = 0;
  #size = 0;
  /** Slots that are not empty, deleted ones included: they all lengthen searches. */
  #slotsTaken = 0;
  #liveBytes = 0;

  constructor(options: PackedMapOptions = {}) {
    const memory = allocate(slotsMin, bytesMin);
    super(memory);
    this.#memory = memory;
    this.#onGeneration = options.onGeneration ?? (() => {});
  }

  get size(): number {
    return this.#size;
  }

  /**
   * Bytes of the present generation: index, live entries and garbage. Untouched pages cost nothing and do not count.
   */
  get memoryBytes(): number {
    return this.#memory.slots.byteLength + this.#top;
  }

  get memory(): PackedMemory {
    return this.#memory;
  }

  /** The only thread that writes need not synchronise with itself. */
  override find(key: Uint8Array, length: number, hash: number): number {
    const { slots, mask } = this;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const word = slots[slot]!;
      if (word === emptySlot) return -1;
      if (this.mayBe(word, hash) && this.holds(this.entryOf(word), key, length)) return this.entryOf(word);
    }
  }

  snapshot(): PackedSnapshot {
    return { slots: new Int32Array(this.slots), bytes: this.bytes.subarray(0, this.#top) };
  }

  set(key: Uint8Array, value: Uint8Array): void {
    this.#set(key, key.length, hashBytes(key, 0, key.length), value);
  }

  /** The same with a key as text; no array is made of it. */
  setText(key: string, value: Uint8Array): void {
    this.#encode(key);
    this.#set(this.#key, this.#keyLength, this.#keyHash, value);
  }

  /** Where the value behind a key begins, in `bytes` and `buffer` as they are now; -1 if there is none. */
  locateText(key: string): number {
    this.#encode(key);
    const entry = this.find(this.#key, this.#keyLength, this.#keyHash);
    return entry < 0 ? -1 : this.valueStart(entry);
  }

  deleteText(key: string): boolean {
    this.#encode(key);
    return this.#delete(this.#key, this.#keyLength, this.#keyHash);
  }

  #encode(text: string): void {
    if (text === this.#keyText) return;
    this.#keyText = text;
    this.#keyLength = this.#write(text);
    this.#keyHash = hashBytes(this.#key, 0, this.#keyLength);
  }

  #write(text: string): number {
    if (this.#key.length < 3 * text.length) this.#key = new Uint8Array(6 * text.length);
    const key = this.#key;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code > 127) return Buffer.from(key.buffer).write(text);
      key[i] = code;
    }
    return text.length;
  }

  #set(key: Uint8Array, length: number, hash: number, value: Uint8Array): void {
    this.#reserve(padded(headerBytes + length + value.length));
    const entry = this.#append(key, length, value);
    const slot = this.#slotFor(key, length, hash);
    const before = this.slots[slot]!;
    if (before === emptySlot) this.#slotsTaken += 1;
    if (before === emptySlot || before === deletedSlot) this.#size += 1;
    else this.#liveBytes -= entryBytes(this.bytes, this.entryOf(before));
    Atomics.store(this.slots, slot, this.#wordOf(hash, entry));
  }

  delete(key: Uint8Array): boolean {
    return this.#delete(key, key.length, hashBytes(key, 0, key.length));
  }

  #delete(key: Uint8Array, length: number, hash: number): boolean {
    const entry = this.find(key, length, hash);
    if (entry < 0) return false;
    const slot = this.#slotFor(key, length, hash);
    this.#liveBytes -= entryBytes(this.bytes, entry);
    this.#size -= 1;
    Atomics.store(this.slots, slot, deletedSlot);
    return true;
  }

  /** Moves to fresh memory if a good part of the present one is garbage. */
  compact(): void {
    if (this.#top > bytesMin && this.#top > 1.1 * this.#liveBytes) this.#renew(0);
  }

  /** The keys that are there at the first step, in the order in which they came or last changed. */
  *keys(): IterableIterator<Uint8Array> {
    const { bytes } = this;
    for (const position of this.#positions()) yield copyOf(bytes, ...keyRange(bytes, entryAt(position)));
  }

  *textKeys(): IterableIterator<string> {
    const { bytes, buffer } = this;
    for (const position of this.#positions()) yield textOf(buffer, ...keyRange(bytes, entryAt(position)));
  }

  /** Positions of all entries in the order of memory: entries added together lie together. */
  #positions(): Int32Array {
    const positions = new Int32Array(this.#size);
    let count = 0;
    for (let slot = 0; slot <= this.mask; slot++) {
      const word = this.slots[slot]!;
      if (word !== emptySlot && word !== deletedSlot) positions[count++] = word & this.positionMask;
    }
    return positions.sort();
  }

  /** The slot that holds the key, else the first one it may take. */
  #slotFor(key: Uint8Array, length: number, hash: number): number {
    let free = -1;
    for (let slot = hash & this.mask; ; slot = (slot + 1) & this.mask) {
      const word = this.slots[slot]!;
      if (word === emptySlot) return free < 0 ? slot : free;
      if (word === deletedSlot) {
        if (free < 0) free = slot;
      } else if (this.mayBe(word, hash) && this.holds(this.entryOf(word), key, length)) {
        return slot;
      }
    }
  }

  #append(key: Uint8Array, length: number, value: Uint8Array): number {
    const entry = this.#top;
    const bytes = this.bytes;
    bytes[entry] = length >> 8;
    bytes[entry + 1] = length & 255;
    bytes[entry + 2] = value.length >>> 24;
    bytes[entry + 3] = (value.length >>> 16) & 255;
    bytes[entry + 4] = (value.length >>> 8) & 255;
    bytes[entry + 5] = value.length & 255;
    const start = entry + headerBytes;
    for (let i = 0; i < length; i++) bytes[start + i] = key[i]!;
    copyTo(bytes, start + length, value);
    const size = padded(headerBytes + length + value.length);
    this.#top += size;
    this.#liveBytes += size;
    return entry;
  }

  #reserve(more: number): void {
    // Garbage is collected when it has become half as much again as what lives, even if there were still room.
    const topMax = Math.min(this.bytes.length, Math.max(bytesMin, 1.6 * (this.#liveBytes + more)));
    const hasRoom = this.#top + more <= topMax;
    const hasSlots = 4 * (this.#slotsTaken + 1) <= 3 * (this.mask + 1);
    if (!hasRoom) this.#renew(more);
    else if (!hasSlots) this.#renewSlots();
  }

  #slotCountWanted(): number {
    let slotCount = slotsMin;
    while (slotCount < 1.45 * (this.#size + 1)) slotCount *= 2;
    return slotCount;
  }

  /** A fresh index over the same entries. */
  #renewSlots(): void {
    const { slots: old, mask, bytes } = this;
    const memory = { slots: allocateSlots(this.#slotCountWanted(), bytes.length), bytes: this.#memory.bytes };
    this.#enter(memory);
    for (let slot = 0; slot <= mask; slot++) {
      const word = old[slot]!;
      if (word === emptySlot || word === deletedSlot) continue;
      // The blocks of entries are the same, and so are the bits of positions.
      const entry = this.entryOf(word);
      const start = entry + headerBytes;
      this.#take(hashBytes(bytes, start, start + ((bytes[entry]! << 8) | bytes[entry + 1]!)), entry);
    }
    this.#onGeneration(memory);
  }

  /** Fresh blocks for both, without the garbage. */
  #renew(more: number): void {
    const liveBytes = this.#liveBytes + more;
    const bytesWanted = Math.max(bytesMin, 2 * liveBytes, liveBytes > spaciousFrom ? spaciousBytes : 0);
    const { bytes: old } = this;
    const positions = this.#positions();
    const memory = allocate(this.#slotCountWanted(), padded(bytesWanted));
    this.#enter(memory);
    this.#top = 0;
    this.#carryOver(old, positions);
    this.#onGeneration(memory);
  }

  /** Copies entries that lie side by side in one go. */
  #carryOver(old: Uint8Array, positions: Int32Array): void {
    let start = 0;
    let end = 0;
    const copyRun = () => {
      this.bytes.set(old.subarray(start, end), this.#top);
      this.#top += end - start;
    };
    for (const position of positions) {
      const entry = entryAt(position);
      if (entry !== end) {
        copyRun();
        start = entry;
      }
      const [keyStart, keyEnd] = keyRange(old, entry);
      this.#take(hashBytes(old, keyStart, keyEnd), this.#top + entry - start);
      end = entry + entryBytes(old, entry);
    }
    copyRun();
  }

  #enter(memory: PackedMemory): void {
    this.adopt(memory);
    this.#memory = memory;
    this.#slotsTaken = this.#size;
  }

  /** Puts an entry into a fresh index, where nothing is deleted and nothing is there twice. */
  #take(hash: number, entry: number): void {
    let slot = hash & this.mask;
    while (this.slots[slot] !== emptySlot) slot = (slot + 1) & this.mask;
    this.slots[slot] = this.#wordOf(hash, entry);
  }

  #wordOf(hash: number, entry: number): number {
    return (hash & ~this.positionMask) | positionOf(entry);
  }
}

function keyRange(bytes: Uint8Array, entry: number): [start: number, end: number] {
  const start = entry + headerBytes;
  return [start, start + ((bytes[entry]! << 8) | bytes[entry + 1]!)];
}

function textOf(buffer: Buffer, start: number, end: number): string {
  let all = 0;
  for (let i = start; i < end; i++) all |= buffer[i]!;
  return buffer.toString(all > 127 ? 'utf8' : 'latin1', start, end);
}

function valueLength(bytes: Uint8Array, entry: number): number {
  return ((bytes[entry + 2]! << 24) | (bytes[entry + 3]! << 16) | (bytes[entry + 4]! << 8) | bytes[entry + 5]!) >>> 0;
}

function entryBytes(bytes: Uint8Array, entry: number): number {
  const keyLength = (bytes[entry]! << 8) | bytes[entry + 1]!;
  return padded(headerBytes + keyLength + valueLength(bytes, entry));
}

/** Few bytes are copied fastest one by one. */
function copyTo(target: Uint8Array, at: number, source: Uint8Array): void {
  if (source.length > 128) target.set(source, at);
  else for (let i = 0; i < source.length; i++) target[at + i] = source[i]!;
}

/** Memory of an empty map. */
export function emptyMemory(): PackedMemory {
  return allocate(1, 0);
}

function allocate(slotCount: number, byteCount: number): PackedMemory {
  return { slots: allocateSlots(slotCount, byteCount), bytes: new SharedArrayBuffer(byteCount) };
}

function allocateSlots(slotCount: number, byteCount: number): SharedArrayBuffer {
  const slots = new SharedArrayBuffer(4 * (slotCount + 1));
  // No position has all bits set: a deleted slot has.
  const bits = 32 - Math.clz32(positionOf(padded(byteCount)) + 1);
  new Int32Array(slots)[slotCount] = bits;
  return slots;
}

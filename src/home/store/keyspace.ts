// The newest state: every key and its entry, in order. Reads at an older revision are given what to undo.

import sortedBTree from 'sorted-btree';
import type { StoredEntry } from './entry.ts';

// The package is CommonJS: its default export is one level down, except where a bundler has levelled that.
const BTree = sortedBTree.default ?? (sortedBTree as unknown as typeof sortedBTree.default);

/** Keys that were different at some older revision, and what they held then. */
export type Undo = ReadonlyMap<string, StoredEntry | undefined>;

export interface Page {
  readonly entries: StoredEntry[];
  readonly remaining: number;
}

export interface PageRequest {
  readonly prefix: string;
  readonly after: string | undefined;
  readonly limit: number;
  readonly countMax: number | undefined;
  readonly undo: Undo | undefined;
}

export class Keyspace {
  readonly #tree = new BTree<string, StoredEntry>(undefined, compareKeys);
  /** The same entries: a commit looks up every key it compares and writes, and walking the tree for it costs more than
   *  all the rest of it. */
  readonly #byKey = new Map<string, StoredEntry>();
  #sizeBytes = 0;

  /** The live data: keys, values and what a row costs. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  get(key: string): StoredEntry | undefined {
    return this.#byKey.get(key);
  }

  put(entry: StoredEntry, previous: StoredEntry | undefined): void {
    this.#sizeBytes += entry.sizeBytes - (previous?.sizeBytes ?? 0);
    this.#byKey.set(entry.key, entry);
    this.#tree.set(entry.key, entry);
  }

  remove(previous: StoredEntry): void {
    this.#sizeBytes -= previous.sizeBytes;
    this.#byKey.delete(previous.key);
    this.#tree.delete(previous.key);
  }

  /** Entries after the key, in order; all of them when it is undefined. */
  *entriesAfter(key: string | undefined): Iterable<StoredEntry> {
    for (const entry of this.#tree.values(key)) if (entry.key !== key) yield entry;
  }

  /** All entries as they are now: the tree is shared until one of the two changes, and then node by node. */
  frozen(): Iterable<StoredEntry> {
    return this.#tree.clone().values();
  }

  page(request: PageRequest): Page {
    const undone = request.undo === undefined ? [] : undoneInRange(request.undo, request);
    const { limit, countMax } = request;
    if (countMax !== undefined) {
      const entries = this.#collect({ ...request, limit: limit + countMax }, undone);
      return { entries: entries.slice(0, limit), remaining: Math.max(0, entries.length - limit) };
    }
    const entries = this.#collect(request, undone);
    const last = entries.length === 0 ? request.after : entries.at(-1)!.key;
    return { entries, remaining: entries.length < limit ? 0 : this.#countAfter(request, last, undone) };
  }

  #collect(request: PageRequest, undone: readonly Undone[]): StoredEntry[] {
    const { prefix, after, limit } = request;
    const entries: StoredEntry[] = [];
    let next = 0;
    for (const entry of this.#tree.values(startOf(prefix, after))) {
      const { key } = entry;
      if (key === after) continue;
      if (!key.startsWith(prefix) || entries.length >= limit) break;
      for (; next < undone.length && undone[next]!.key < key; next++) pushUndone(entries, undone[next]!);
      if (next < undone.length && undone[next]!.key === key) pushUndone(entries, undone[next++]!);
      else entries.push(entry);
    }
    for (; next < undone.length && entries.length < limit; next++) pushUndone(entries, undone[next]!);
    if (entries.length > limit) entries.length = limit;
    return entries;
  }

  #countAfter(request: PageRequest, last: string | undefined, undone: readonly Undone[]): number {
    let count = this.#countRange(startOf(request.prefix, last), request.prefix);
    if (last?.startsWith(request.prefix) && this.#byKey.has(last)) count -= 1;
    for (const { key, entry } of undone) {
      if (last !== undefined && key <= last) continue;
      count += (entry === undefined ? 0 : 1) - (this.#byKey.has(key) ? 1 : 0);
    }
    return count;
  }

  #countRange(from: string, prefix: string): number {
    const end = endOf(prefix);
    if (end !== undefined) return from < end ? this.#tree.forRange(from, end, false) : 0;
    const last = this.#tree.maxKey();
    return last === undefined || last < from ? 0 : this.#tree.forRange(from, last, true);
  }
}

interface Undone {
  readonly key: string;
  readonly entry: StoredEntry | undefined;
}

function undoneInRange(undo: Undo, { prefix, after }: PageRequest): Undone[] {
  const undone: Undone[] = [];
  for (const [key, entry] of undo) {
    if (key.startsWith(prefix) && (after === undefined || key > after)) undone.push({ key, entry });
  }
  return undone.sort((a, b) => compareKeys(a.key, b.key));
}

function pushUndone(entries: StoredEntry[], undone: Undone): void {
  if (undone.entry !== undefined) entries.push(undone.entry);
}

function startOf(prefix: string, after: string | undefined): string {
  return after !== undefined && after > prefix ? after : prefix;
}

/** The first string after every string that starts with the prefix; undefined when there is none. */
function endOf(prefix: string): string | undefined {
  for (let length = prefix.length; length > 0; length--) {
    const unit = prefix.charCodeAt(length - 1);
    if (unit < 0xffff) return prefix.slice(0, length - 1) + String.fromCharCode(unit + 1);
  }
  return undefined;
}

function compareKeys(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

// The payload of a snapshot: one line of JSON with facts and key files, every entry of the store, and their count. Entries
// are framed in binary, so that 100,000 of them take one pass over their bytes.

import type { Entry } from '../store/store.ts';
import { SnapshotError } from './snapshot-error.ts';

export interface SnapshotFacts {
  /** The same for all snapshots of one home. */
  readonly homeId: string;
  readonly homeName: string;
  readonly revision: number;
  readonly takenMs: number;
  /** The version of the program that took it. */
  readonly portolan: string;
}

export interface SnapshotHead extends SnapshotFacts {
  /** Keys and certificates, by their names under `pki/`. */
  readonly files: Readonly<Record<string, string>>;
}

export type SnapshotEntry = Pick<Entry, 'key' | 'value' | 'createRevision' | 'revision'>;

/** Lengths of key and value, revision, revision of creation. */
const frameBytes = 4 + 4 + 8 + 8;
/** In place of the length of a key: the count of entries follows. */
const endMark = 0xffff_ffff;
const endBytes = 4 + 8;
const chunkBytes = 64 * 1024;
const headBytesMax = 1024 * 1024;
const keyBytesMax = 16 * 1024;
const valueBytesMax = 16 * 1024 * 1024;

/** Pieces of about 64 KiB; each stays valid. */
export function* encodeContent(head: SnapshotHead, entries: Iterable<Entry>): Generator<Uint8Array> {
  yield Buffer.from(`${JSON.stringify(head)}\n`);
  let chunk = Buffer.allocUnsafe(chunkBytes);
  let used = 0;
  let count = 0;
  for (const entry of entries) {
    count += 1;
    const keyBytes = Buffer.byteLength(entry.key);
    const wanted = frameBytes + keyBytes + entry.latin1.length;
    if (used + wanted > chunk.length) {
      if (used > 0) yield chunk.subarray(0, used);
      chunk = Buffer.allocUnsafe(Math.max(chunkBytes, wanted));
      used = 0;
    }
    used = chunk.writeUInt32LE(keyBytes, used);
    used = chunk.writeUInt32LE(entry.latin1.length, used);
    used = chunk.writeDoubleLE(entry.revision, used);
    used = chunk.writeDoubleLE(entry.createRevision, used);
    used += chunk.write(entry.key, used, 'utf8');
    used += chunk.write(entry.latin1, used, 'latin1');
  }
  const end = Buffer.allocUnsafe(endBytes);
  end.writeUInt32LE(endMark, 0);
  end.writeDoubleLE(count, 4);
  yield Buffer.concat([chunk.subarray(0, used), end]);
}

export interface ContentListener {
  readonly onHead: (head: SnapshotHead) => void;
  /** The value is a view into a buffer that is not used again. */
  readonly onEntry?: ((entry: SnapshotEntry) => void) | undefined;
}

/** Takes a payload piece by piece. Throws a SnapshotError at the first thing that cannot be. */
export class ContentReader {
  readonly #listener: ContentListener;
  #pending: Buffer = Buffer.alloc(0);
  #head: SnapshotHead | undefined;
  #lastKey = '';
  #count = 0;
  #hasEnded = false;

  constructor(listener: ContentListener) {
    this.#listener = listener;
  }

  get count(): number {
    return this.#count;
  }

  push(bytes: Uint8Array): void {
    this.#pending = this.#pending.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#pending, bytes]);
    if (this.#head === undefined && !this.#readHead()) return;
    let at = 0;
    for (let next = this.#readRecord(at); next !== undefined; next = this.#readRecord(at)) at = next;
    this.#pending = this.#pending.subarray(at);
  }

  /** Call it after the last piece. */
  end(): SnapshotHead {
    if (this.#head === undefined || !this.#hasEnded) throw new SnapshotError('it is cut short: its end is missing');
    if (this.#pending.length > 0) throw damaged('there is more after its end');
    return this.#head;
  }

  #readHead(): boolean {
    const end = this.#pending.indexOf(0x0a);
    if (end < 0 && this.#pending.length <= headBytesMax) return false;
    if (end < 0 || end > headBytesMax) throw damaged('it does not begin with its facts');
    this.#head = parseHead(this.#pending.toString('utf8', 0, end));
    this.#pending = this.#pending.subarray(end + 1);
    this.#listener.onHead(this.#head);
    return true;
  }

  /** Where the next record begins; undefined if this one is not all there. */
  #readRecord(at: number): number | undefined {
    const bytes = this.#pending;
    if (bytes.length - at < endBytes || this.#hasEnded) return undefined;
    const keyBytes = bytes.readUInt32LE(at);
    if (keyBytes === endMark) return this.#readEnd(at);
    if (bytes.length - at < frameBytes) return undefined;
    const valueBytes = bytes.readUInt32LE(at + 4);
    if (keyBytes === 0 || keyBytes > keyBytesMax || valueBytes > valueBytesMax) throw damaged('an entry has no size');
    const keyAt = at + frameBytes;
    const end = keyAt + keyBytes + valueBytes;
    if (bytes.length < end) return undefined;
    const key = bytes.toString('utf8', keyAt, keyAt + keyBytes);
    const [revision, createRevision] = [bytes.readDoubleLE(at + 8), bytes.readDoubleLE(at + 16)];
    this.#check(key, revision, createRevision);
    this.#count += 1;
    this.#listener.onEntry?.({ key, value: bytes.subarray(keyAt + keyBytes, end), revision, createRevision });
    return end;
  }

  #readEnd(at: number): number {
    if (this.#pending.readDoubleLE(at + 4) !== this.#count) throw damaged('its count of entries is wrong');
    this.#hasEnded = true;
    return at + endBytes;
  }

  #check(key: string, revision: number, createRevision: number): void {
    if (this.#lastKey !== '' && key <= this.#lastKey) throw damaged(`the key ${JSON.stringify(key)} is out of order`);
    this.#lastKey = key;
    const isRevision = (value: number) => Number.isSafeInteger(value) && value > 0;
    if (!isRevision(revision) || !isRevision(createRevision) || createRevision > revision)
      throw damaged(`the revision of ${JSON.stringify(key)} is none`);
    if (revision > this.#head!.revision) throw damaged(`${JSON.stringify(key)} is newer than the snapshot`);
  }
}

function parseHead(text: string): SnapshotHead {
  let head: Partial<SnapshotHead>;
  try {
    head = JSON.parse(text);
  } catch {
    throw damaged('its facts are not JSON');
  }
  const { homeId, homeName, revision, takenMs, portolan, files } = head ?? {};
  const isWhole =
    typeof homeId === 'string' &&
    typeof homeName === 'string' &&
    typeof portolan === 'string' &&
    Number.isSafeInteger(revision) &&
    Number.isSafeInteger(takenMs) &&
    typeof files === 'object' &&
    files !== null &&
    Object.values(files).every((content) => typeof content === 'string');
  if (!isWhole) throw damaged('its facts are incomplete');
  return { homeId, homeName, revision: revision!, takenMs: takenMs!, portolan, files };
}

function damaged(why: string): SnapshotError {
  return new SnapshotError(`it is damaged: ${why}`);
}

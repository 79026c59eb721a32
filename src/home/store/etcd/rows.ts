// What lies where in etcd, below the prefix of one home, and a journal row as the value of its key. Pure.

import type { JournalRow } from '../journal.ts';
import { type Seal, SealError } from './seal.ts';

export class Layout {
  readonly prefix: string;

  /** The prefix ends with a slash. */
  constructor(prefix: string) {
    this.prefix = prefix;
  }

  /** Which process writes. */
  get lock(): string {
    return `${this.prefix}lock`;
  }

  /** Which process wants the lock of one that seems to be gone. */
  get claim(): string {
    return `${this.prefix}claim`;
  }

  /** The last transaction of the journal, and its floor. */
  get tip(): string {
    return `${this.prefix}tip`;
  }

  /** A process of this home, and which formats it reads. */
  reader(id: string): string {
    return `${this.prefix}readers/${id}`;
  }

  get readersEnd(): string {
    return `${this.prefix}readers0`;
  }

  aside(name: string): string {
    return `${this.prefix}aside/${name}`;
  }

  /** Padded, so that the order of keys is that of the rows. */
  row(row: number): string {
    return `${this.prefix}rows/${String(row).padStart(rowDigits, '0')}`;
  }

  get rowsEnd(): string {
    return `${this.prefix}rows0`;
  }
}

const rowDigits = 16;
const formats = { plain: 1, sealed: 2 } as const;
const tombstone = 1;
const headBytes = 1 + 8 + 8 + 4;

export function encodeValue(place: string, plain: Uint8Array, seal: Seal | undefined): Buffer {
  if (seal === undefined) return Buffer.concat([Buffer.of(formats.plain), plain]);
  return Buffer.concat([Buffer.of(formats.sealed), seal.seal(place, plain)]);
}

export function decodeValue(place: string, value: Uint8Array, seal: Seal | undefined): Uint8Array {
  const rest = value.subarray(1);
  if (value[0] === formats.plain) return rest;
  if (value[0] !== formats.sealed)
    throw new Error(`etcd key ${place}: unknown format ${value[0]}; is it from a newer version?`);
  if (seal === undefined) throw new SealError(`etcd key ${place}: it is encrypted; give the key file`);
  try {
    return seal.open(place, rest);
  } catch (cause) {
    throw new SealError(`etcd key ${place}: ${(cause as Error).message}`, { cause });
  }
}

/** Whether a value is stored as it would be now; otherwise it should be written again. */
export function isCurrentForm(value: Uint8Array, seal: Seal | undefined): boolean {
  if (seal === undefined) return value[0] === formats.plain;
  return value[0] === formats.sealed && seal.isCurrent(value.subarray(1));
}

export function encodeRow({ revision, createRevision, key, value }: JournalRow): Buffer {
  const keyBytes = Buffer.byteLength(key);
  const bytes = Buffer.allocUnsafe(headBytes + keyBytes + (value?.length ?? 0));
  bytes[0] = value === undefined ? tombstone : 0;
  bytes.writeDoubleLE(revision, 1);
  bytes.writeDoubleLE(createRevision, 9);
  bytes.writeUInt32LE(keyBytes, 17);
  bytes.write(key, headBytes);
  if (value !== undefined) bytes.set(value, headBytes + keyBytes);
  return bytes;
}

export function decodeRow(place: string, plain: Uint8Array): JournalRow {
  const bytes = Buffer.from(plain.buffer, plain.byteOffset, plain.byteLength);
  const row = Number(place.slice(-rowDigits));
  if (bytes.length < headBytes || !Number.isSafeInteger(row))
    throw new Error(`etcd key ${place}: this is no row of a home`);
  const keyEnd = headBytes + bytes.readUInt32LE(17);
  if (keyEnd > bytes.length) throw new Error(`etcd key ${place}: this row is cut short`);
  return {
    row,
    revision: bytes.readDoubleLE(1),
    createRevision: bytes.readDoubleLE(9),
    key: bytes.toString('utf8', headBytes, keyEnd),
    value: bytes[0] === tombstone ? undefined : bytes.subarray(keyEnd),
  };
}

export interface Tip {
  /** Id of the transaction that wrote it; never used twice. */
  readonly id: string;
  readonly floor: number;
  /** The newest revision there is. */
  readonly revision: number;
  /** The format that rows are written in; older ones may lie beside them. */
  readonly format: number;
  /** Set when the home has moved out: where to. */
  readonly movedTo?: string | undefined;
}

export function encodeTip(tip: Tip): Uint8Array {
  return Buffer.from(JSON.stringify({ v: 1, ...tip }));
}

export function decodeTip(place: string, value: Uint8Array): Tip {
  let raw: unknown;
  try {
    raw = JSON.parse(Buffer.from(value).toString());
  } catch {
    raw = undefined;
  }
  const { v, id, floor, revision, format = 1, movedTo } = (raw ?? {}) as Record<string, unknown>;
  const isTip = v === 1 && typeof id === 'string' && [floor, revision, format].every(Number.isSafeInteger);
  if (!isTip) throw new Error(`etcd key ${place}: this is not what a home writes; give a prefix of its own`);
  return {
    id: id as string,
    floor: floor as number,
    revision: revision as number,
    format: format as number,
    ...(typeof movedTo === 'string' ? { movedTo } : {}),
  };
}

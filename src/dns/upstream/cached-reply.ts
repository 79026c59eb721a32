// A reply as the cache holds it: one text, a character for each byte, with times and counts in front of the records. A text is
// one object without pointers, so that a full cache costs little more than its bytes and garbage collection passes it by; as
// objects and arrays the same took five times as much, and marking them a fifth of the CPU of a miss.

import { rcode } from '../../base/dns/codes.ts';
import type { Body } from '../message/answer.ts';
import type { Reply } from './reply.ts';

/** The words of an extended error, a TTL offset for each record, and the records follow. */
const at = {
  storedMs: 0,
  freshMs: 6,
  retryMs: 10,
  rcode: 14,
  flags: 16,
  ttlSeconds: 17,
  extendedError: 21,
  errorBytes: 23,
  counts: 25,
  rotates: 31,
  end: 37,
} as const;
const flag = { isTruncated: 1, isAuthentic: 2, isNegative: 4, hasExtendedError: 8, isRefreshed: 16 } as const;
const u32Max = 0xffff_ffff;
/** Answers carry fewer; a hostile server sends more than their length has room for. */
const wordBytesMax = 255;
/** Nearly all fit; larger ones get memory of their own. */
const scratch = Buffer.alloc(4096);

export interface KeepTimes {
  readonly storedMs: number;
  readonly freshMs: number;
}

export function packReply(reply: Reply, { storedMs, freshMs }: KeepTimes): string {
  const { bytes, recordsAt, recordsEnd, ttlOffsets, counts, rotates } = reply;
  const words = reply.extendedText === '' ? undefined : Buffer.from(reply.extendedText).subarray(0, wordBytesMax);
  const wordBytes = words?.length ?? 0;
  const total = at.end + wordBytes + 2 * ttlOffsets.length + recordsEnd - recordsAt;
  const to = total <= scratch.length ? scratch : Buffer.allocUnsafe(total);
  const stored = Math.max(0, Math.floor(storedMs));
  put16(to, at.storedMs, Math.floor(stored / 2 ** 32));
  put32(to, at.storedMs + 2, stored % 2 ** 32);
  put32(to, at.freshMs, inU32(freshMs));
  put32(to, at.retryMs, inU32(freshMs));
  put16(to, at.rcode, reply.rcode);
  to[at.flags] =
    (reply.isTruncated ? flag.isTruncated : 0) |
    (reply.isAuthentic ? flag.isAuthentic : 0) |
    (reply.isNegative ? flag.isNegative : 0) |
    (reply.extendedError >= 0 ? flag.hasExtendedError : 0);
  put32(to, at.ttlSeconds, inU32(reply.ttlSeconds));
  put16(to, at.extendedError, Math.max(0, reply.extendedError));
  put16(to, at.errorBytes, wordBytes);
  for (let i = 0; i < 3; i++) put16(to, at.counts + 2 * i, counts[i]!);
  put16(to, at.rotates, rotates?.count ?? 0);
  put16(to, at.rotates + 2, rotates?.start ?? 0);
  put16(to, at.rotates + 4, rotates?.bytesEach ?? 0);
  let end: number = at.end;
  if (words) to.set(words, end);
  end += wordBytes;
  for (let i = 0; i < ttlOffsets.length; i++, end += 2) put16(to, end, ttlOffsets[i]!);
  for (let from = recordsAt; from < recordsEnd; from++) to[end++] = bytes[from]!;
  return to.toString('latin1', 0, total);
}

/** The same text with another time for the next try. */
export function withRetry(text: string, retryAtMs: number): string {
  const bytes = Buffer.from(text, 'latin1');
  put32(bytes, at.retryMs, inU32(retryAtMs - storedMsOf(text)));
  return bytes.toString('latin1');
}

/** The same text with a mark: servers have been asked again. */
export function asRefreshed(text: string): string {
  const bytes = Buffer.from(text, 'latin1');
  bytes[at.flags]! |= flag.isRefreshed;
  return bytes.toString('latin1');
}

/** Fields read from a text; used again for the next one where nobody holds it. */
export class CachedReply implements Body {
  text = '';
  storedMs = 0;
  freshUntilMs = 0;
  /** No server could be asked again: until then it is served as stale without another try (RFC 8767 section 5). */
  retryMs = 0;
  rcode = 0;
  isTruncated = false;
  isAuthentic = false;
  isNegative = false;
  isRefreshed = false;
  ttlSeconds = 0;
  /** RFC 8914 code the other server gave, or -1. */
  extendedError = -1;
  answers = 0;
  authorities = 0;
  additionals = 0;
  recordsAt = 0;
  rotateCount = 0;
  rotateStart = 0;
  rotateBytes = 0;
  #ttlOffsetsAt = 0;

  read(text: string): this {
    this.text = text;
    this.storedMs = storedMsOf(text);
    this.freshUntilMs = this.storedMs + u32(text, at.freshMs);
    this.retryMs = this.storedMs + u32(text, at.retryMs);
    this.rcode = u16(text, at.rcode);
    const flags = text.charCodeAt(at.flags);
    this.isTruncated = (flags & flag.isTruncated) !== 0;
    this.isAuthentic = (flags & flag.isAuthentic) !== 0;
    this.isNegative = (flags & flag.isNegative) !== 0;
    this.isRefreshed = (flags & flag.isRefreshed) !== 0;
    this.ttlSeconds = u32(text, at.ttlSeconds);
    this.extendedError = flags & flag.hasExtendedError ? u16(text, at.extendedError) : -1;
    this.answers = u16(text, at.counts);
    this.authorities = u16(text, at.counts + 2);
    this.additionals = u16(text, at.counts + 4);
    this.rotateCount = u16(text, at.rotates);
    this.rotateStart = u16(text, at.rotates + 2);
    this.rotateBytes = u16(text, at.rotates + 4);
    this.#ttlOffsetsAt = at.end + u16(text, at.errorBytes);
    this.recordsAt = this.#ttlOffsetsAt + 2 * (this.answers + this.authorities + this.additionals);
    return this;
  }

  get extendedText(): string {
    return Buffer.from(this.text.slice(at.end, this.#ttlOffsetsAt), 'latin1').toString('utf8');
  }

  ttlOffset(record: number): number {
    return u16(this.text, this.#ttlOffsetsAt + 2 * record);
  }

  copy(): CachedReply {
    return new CachedReply().read(this.text);
  }
}

/** For a reply that is given out once and not kept. */
export function unkept(reply: Reply, nowMs: number): CachedReply {
  return new CachedReply().read(packReply(reply, { storedMs: nowMs, freshMs: 0 }));
}

/** A whole one: neither a failure nor cut off. */
export function isAnswer(reply: Pick<Reply, 'rcode' | 'isTruncated'>): boolean {
  return (reply.rcode === rcode.NOERROR || reply.rcode === rcode.NXDOMAIN) && !reply.isTruncated;
}

/** Whether a text may still be served, fresh or up to `staleMs` after its end. */
export function isUsable(text: string, nowMs: number, staleMs: number): boolean {
  return nowMs < storedMsOf(text) + u32(text, at.freshMs) + staleMs;
}

function storedMsOf(text: string): number {
  return u16(text, at.storedMs) * 2 ** 32 + u32(text, at.storedMs + 2);
}

function inU32(value: number): number {
  return Math.min(u32Max, Math.max(0, Math.floor(value)));
}

function u16(text: string, from: number): number {
  return (text.charCodeAt(from) << 8) | text.charCodeAt(from + 1);
}

function u32(text: string, from: number): number {
  return ((u16(text, from) << 16) | u16(text, from + 2)) >>> 0;
}

function put16(bytes: Uint8Array, to: number, value: number): void {
  bytes[to] = value >> 8;
  bytes[to + 1] = value & 255;
}

function put32(bytes: Uint8Array, to: number, value: number): void {
  put16(bytes, to, value >>> 16);
  put16(bytes, to + 2, value & 0xffff);
}

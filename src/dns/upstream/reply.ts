// A reply from another server, looked through once: what it says, how long it may be kept, and where its TTLs stand so that
// they can be counted down later. Its records stay as bytes; those that do not belong to the question are left out
// (related.ts). Pure; a reply that cannot be read is undefined.

import { rcode, recordType } from '../../base/dns/codes.ts';
import { ednsOption, headerBytes, messageBytesMax } from '../message/wire.ts';
import { type IsOfOthers, RelatedRecords, withoutUnrelated } from './related.ts';

export interface Reply {
  readonly rcode: number;
  readonly isTruncated: boolean;
  /** Records, those behind the question without OPT, lie in here. */
  readonly bytes: Uint8Array;
  readonly recordsAt: number;
  readonly recordsEnd: number;
  readonly counts: readonly [answers: number, authorities: number, additionals: number];
  /** One for each record, counted from the first record on. */
  readonly ttlOffsets: readonly number[];
  /** Smallest TTL of a positive answer, or how long a negative one may be kept (RFC 2308 section 5). */
  readonly ttlSeconds: number;
  readonly isNegative: boolean;
  /** Addresses that may be given in any order: how many, and where and how long they are in the records. */
  readonly rotates: { readonly count: number; readonly start: number; readonly bytesEach: number } | undefined;
  /** The other server has validated it (RFC 4035). */
  readonly isAuthentic: boolean;
  /** RFC 8914 code the other server gave, or -1, and its words. */
  readonly extendedError: number;
  readonly extendedText: string;
}

const flagTc = 0x0200;
const flagAd = 0x0020;
/** Upper limit of TTLs for clients, whatever an upstream sets. */
const ttlSecondsMax = 86_400;

/** Stands for a missing answer. */
export function failureOf(code: number, extendedError: number, extendedText: string): Reply {
  return { ...emptyReply, rcode: code, extendedError, extendedText };
}

const emptyReply: Reply = {
  rcode: 0,
  isTruncated: false,
  bytes: new Uint8Array(0),
  recordsAt: 0,
  recordsEnd: 0,
  counts: [0, 0, 0],
  ttlOffsets: [],
  ttlSeconds: 0,
  isNegative: false,
  rotates: undefined,
  isAuthentic: false,
  extendedError: -1,
  extendedText: '',
};

/**
 * True for a reply that is only a header, perhaps with an OPT: old servers send it for queries that they do not
 * understand.
 */
function isBareFailure(reply: Uint8Array): boolean {
  // No question, no answer, no authority.
  for (let i = 4; i < 10; i++) if (reply[i] !== 0) return false;
  const code = reply[3]! & 15;
  return code === rcode.FORMERR || code === rcode.NOTIMP || code === rcode.REFUSED;
}

/** A reply, with one question that is ours to the letter: case is part of what a forger must guess. Only a failure may come
 *  without its question, as old servers send it: all it can do is make us ask again. */
export function isReplyTo(reply: Uint8Array, message: Uint8Array): boolean {
  if ((reply[2]! & 0x80) === 0) return false;
  if (isBareFailure(reply)) return true;
  let end = headerBytes;
  while (message[end] !== 0) end += message[end]! + 1;
  end += 5;
  if (reply.length < end) return false;
  for (let i = headerBytes; i < end; i++) if (reply[i] !== message[i]) return false;
  return true;
}

export interface ReadOptions {
  readonly isOfOthers?: IsOfOthers;
  /** The order of addresses means something, as in a federation: nearest first. */
  readonly keepsOrder?: boolean;
}

/** TTLs are corrected in the bytes. */
export function readReply(bytes: Uint8Array, options: ReadOptions = {}): Reply | undefined {
  if (bytes.length < headerBytes || (bytes[2]! & 0x80) === 0) return undefined;
  const flags = u16(bytes, 2);
  if (isBareFailure(bytes)) return failureOf(flags & 15, -1, '');
  if (u16(bytes, 4) !== 1) return undefined;
  const questionEnd = skipName(bytes, headerBytes) + 4;
  if (questionEnd < headerBytes + 5 || questionEnd > bytes.length) return undefined;
  const walk = new Walk(bytes, questionEnd);
  if (!walk.readAll(new RelatedRecords(bytes, options.isOfOthers))) return undefined;
  if (walk.hasUnrelated) {
    const rest = withoutUnrelated(bytes, walk.kept);
    // The remaining records belong together and need no second check.
    return rest && readReply(rest, { keepsOrder: options.keepsOrder });
  }
  const isNegative = walk.isNegative(flags & 15);
  return {
    rcode: (flags & 15) | (walk.extendedRcode << 4),
    isTruncated: (flags & flagTc) !== 0 || walk.isCutOff,
    bytes,
    recordsAt: questionEnd,
    recordsEnd: walk.end,
    counts: walk.counts,
    ttlOffsets: walk.ttlOffsets,
    ttlSeconds: isNegative ? walk.limitNegative() : walk.ttlMin,
    isNegative,
    rotates: options.keepsOrder ? undefined : walk.rotates(),
    isAuthentic: (flags & flagAd) !== 0,
    extendedError: walk.extendedError,
    extendedText: walk.extendedText,
  };
}

function saneTtl(ttl: number): number {
  // RFC 2181 section 8: a TTL with its first bit set counts as zero.
  return ttl > 0x7fffffff ? 0 : Math.min(ttl, ttlSecondsMax);
}

/** One pass over the records of a reply. */
class Walk {
  end: number;
  readonly counts: [number, number, number] = [0, 0, 0];
  readonly ttlOffsets: number[] = [];
  ttlMin = Number.POSITIVE_INFINITY;
  extendedRcode = 0;
  extendedError = -1;
  extendedText = '';
  hasUnrelated = false;
  /** Names are written in full where unrelated records were left out: the rest may be longer than a message. */
  isCutOff = false;
  /** For every record but OPT, whether it belongs to the question; empty while all do. */
  kept: boolean[] = [];
  #records = 0;
  readonly #bytes: Uint8Array;
  readonly #start: number;
  #soaMinimum = -1;
  #soaTtlAt = 0;
  #hasAsked = false;
  readonly #askedType: number;
  /** Where the last run of equally long records of the asked type starts, how many there are, and how long. */
  #runStart = 0;
  #runCount = 0;
  #runBytes = 0;

  constructor(bytes: Uint8Array, start: number) {
    this.#bytes = bytes;
    this.#start = start;
    this.end = start;
    this.#askedType = u16(bytes, start - 4);
  }

  readAll(related: RelatedRecords): boolean {
    const bytes = this.#bytes;
    let at = this.end;
    let isBehindOpt = false;
    for (let section = 0; section < 3; section++) {
      for (let left = u16(bytes, 6 + 2 * section); left > 0; left--) {
        const fixed = skipName(bytes, at);
        if (fixed < 0 || fixed + 10 > bytes.length) return false;
        const type = u16(bytes, fixed);
        const end = fixed + 10 + u16(bytes, fixed + 8);
        if (end > bytes.length) return false;
        if (end > messageBytesMax) {
          this.isCutOff = true;
          return true;
        }
        if (type === recordType.OPT) {
          isBehindOpt = true;
          this.extendedRcode = bytes[fixed + 4]!;
          this.#readExtendedError(fixed + 10, end);
        } else if (isBehindOpt || !related.isRelated(section, at, type, fixed + 10)) {
          // Records behind an OPT could not stay where they are without it; they are only ever additional.
          if (!isBehindOpt) this.hasUnrelated = true;
          this.#leaveOut();
        } else {
          if (this.kept.length > 0) this.kept.push(true);
          this.#records += 1;
          this.#take(section, type, at, fixed, end);
        }
        at = end;
      }
    }
    return true;
  }

  #leaveOut(): void {
    while (this.kept.length < this.#records) this.kept.push(true);
    this.kept.push(false);
    this.#records += 1;
  }

  #take(section: number, type: number, start: number, fixed: number, end: number): void {
    const ttlAt = fixed + 4;
    const sent = u32(this.#bytes, ttlAt);
    const ttl = saneTtl(sent);
    if (ttl !== sent) put32(this.#bytes, ttlAt, ttl);
    this.counts[section]! += 1;
    this.ttlOffsets.push(ttlAt - this.#start);
    if (section < 2 && ttl < this.ttlMin) this.ttlMin = ttl;
    if (section === 0) this.#takeAnswer(type, start, fixed, end);
    if (section === 1 && type === recordType.SOA && end - fixed >= 30) {
      this.#soaMinimum = saneTtl(u32(this.#bytes, end - 4));
      this.#soaTtlAt = ttlAt;
    }
    this.end = end;
  }

  #takeAnswer(type: number, start: number, fixed: number, end: number): void {
    if (type === this.#askedType || this.#askedType === recordType.ANY) this.#hasAsked = true;
    const isRun = type === this.#askedType && fixed === start + 2;
    if (isRun && this.#runCount > 0 && end - start === this.#runBytes && this.#hasOwnerOfRun(start)) {
      this.#runCount += 1;
      return;
    }
    this.#runStart = start;
    this.#runBytes = end - start;
    this.#runCount = isRun ? 1 : 0;
  }

  #hasOwnerOfRun(start: number): boolean {
    return u16(this.#bytes, start) === u16(this.#bytes, this.#runStart);
  }

  /** Only addresses: what stands in them points nowhere. */
  rotates(): Reply['rotates'] {
    const type = this.#askedType;
    if (this.#runCount < 2 || (type !== recordType.A && type !== recordType.AAAA)) return undefined;
    return { count: this.#runCount, start: this.#runStart - this.#start, bytesEach: this.#runBytes };
  }

  /** No such name or no such type, also at the end of an alias. An alias alone, without word of its end, is an answer. */
  isNegative(code: number): boolean {
    if (code === rcode.NXDOMAIN) return true;
    const isFailure = code !== rcode.NOERROR;
    if (isFailure || this.#hasAsked) return false;
    return this.#soaMinimum >= 0 || this.counts[0] === 0;
  }

  /**
   * RFC 2308 section 5: kept, and passed to clients, for the smaller of the SOA's TTL and its minimum; not at all
   * without.
   */
  limitNegative(): number {
    if (this.#soaMinimum < 0) return 0;
    const ttl = Math.min(u32(this.#bytes, this.#soaTtlAt), this.#soaMinimum);
    put32(this.#bytes, this.#soaTtlAt, ttl);
    return Math.min(ttl, this.ttlMin);
  }

  #readExtendedError(start: number, end: number): void {
    const bytes = this.#bytes;
    for (let at = start; at + 4 <= end; at += 4 + u16(bytes, at + 2)) {
      const textEnd = at + 4 + u16(bytes, at + 2);
      if (u16(bytes, at) !== ednsOption.EXTENDED_ERROR || at + 6 > textEnd || textEnd > end) continue;
      this.extendedError = u16(bytes, at + 4);
      this.extendedText = Buffer.from(bytes.subarray(at + 6, textEnd)).toString('utf8');
      return;
    }
  }
}

function skipName(bytes: Uint8Array, start: number): number {
  for (let at = start; at >= 0 && at < bytes.length; ) {
    const size = bytes[at]!;
    if (size === 0) return at + 1;
    if ((size & 0xc0) === 0xc0) return at + 2;
    if (size > 63) return -1;
    at += size + 1;
  }
  return -1;
}

function u16(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!;
}

function u32(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
}

function put32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = (value >>> 16) & 255;
  bytes[at + 2] = (value >>> 8) & 255;
  bytes[at + 3] = value & 255;
}

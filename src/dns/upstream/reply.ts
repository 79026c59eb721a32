// A reply from another server, looked through once: what it says, how long it may be kept, and where its TTLs stand so that
// they can be counted down later. Its records stay as bytes. Pure; a reply that cannot be read is undefined.

import { recordType } from '../../catalog/answers.ts';
import { ednsOption, headerBytes, rcode } from '../wire.ts';

export interface Reply {
  readonly rcode: number;
  readonly isTruncated: boolean;
  /** Question and records without OPT and without a header. */
  readonly body: Uint8Array;
  /** Length of the question within the body. */
  readonly questionBytes: number;
  readonly counts: readonly [answers: number, authorities: number, additionals: number];
  /** Offsets into the body. */
  readonly ttlOffsets: readonly number[];
  /** Smallest TTL of a positive answer, or how long a negative one may be kept (RFC 2308 section 5). */
  readonly ttlSeconds: number;
  /** The other server has validated it (RFC 4035). */
  readonly isAuthentic: boolean;
  /** RFC 8914 code the other server gave, or -1, and its words. */
  readonly extendedError: number;
  readonly extendedText: string;
}

const flagTc = 0x0200;
const flagAd = 0x0020;
/** Nothing is told to clients for longer than this, whatever an upstream says. */
const ttlSecondsMax = 86_400;

/** Stands for an answer that nobody gave. */
export function failureOf(code: number, extendedError: number, extendedText: string): Reply {
  return { ...emptyReply, rcode: code, extendedError, extendedText };
}

const emptyReply: Reply = {
  rcode: 0,
  isTruncated: false,
  body: new Uint8Array(0),
  questionBytes: 0,
  counts: [0, 0, 0],
  ttlOffsets: [],
  ttlSeconds: 0,
  isAuthentic: false,
  extendedError: -1,
  extendedText: '',
};

/** Of a reply that is nothing but a header, perhaps with an OPT: what old servers say to what they do not understand. */
export function isBareFailure(reply: Uint8Array): boolean {
  const code = reply[3]! & 15;
  const isFailure = code === rcode.FORMERR || code === rcode.NOTIMP || code === rcode.REFUSED;
  // No question, no answer, no authority.
  for (let i = 4; i < 10; i++) if (reply[i] !== 0) return false;
  return isFailure;
}

export function readReply(bytes: Uint8Array): Reply | undefined {
  if (bytes.length < headerBytes) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const flags = view.getUint16(2);
  if ((flags & 0x8000) === 0) return undefined;
  if (isBareFailure(bytes)) return failureOf(flags & 15, -1, '');
  if (view.getUint16(4) !== 1) return undefined;
  const questionEnd = skipName(bytes, headerBytes) + 4;
  if (questionEnd < headerBytes + 5 || questionEnd > bytes.length) return undefined;
  const walk = walkRecords(view, questionEnd, [view.getUint16(6), view.getUint16(8), view.getUint16(10)]);
  if (!walk) return undefined;
  return {
    ...emptyReply,
    rcode: (flags & 15) | (walk.extendedRcode << 4),
    isTruncated: (flags & flagTc) !== 0,
    body: withSaneTtls(bytes.slice(headerBytes, walk.end), walk.ttlOffsets),
    questionBytes: questionEnd - headerBytes,
    counts: walk.counts,
    ttlOffsets: walk.ttlOffsets,
    ttlSeconds: keepSeconds(walk, { type: view.getUint16(questionEnd - 4), code: flags & 15 }),
    isAuthentic: (flags & flagAd) !== 0,
    extendedError: walk.extendedError,
    extendedText: walk.extendedText,
  };
}

/** RFC 2308: how long "no" may be kept is said by the SOA, also when an alias stands before it. */
function keepSeconds(walk: Walk, { type, code }: { readonly type: number; readonly code: number }): number {
  const hasAsked = walk.answerTypes.has(type) || (type === recordType.ANY && walk.answerTypes.size > 0);
  if (hasAsked && code !== rcode.NXDOMAIN) return walk.ttlMin;
  if (walk.negativeTtl !== undefined) return Math.min(walk.negativeTtl, walk.ttlMin);
  // An alias alone, without word of its end, is as good as its TTL; a plain "no" without SOA is not kept.
  return walk.answerTypes.size > 0 && code !== rcode.NXDOMAIN ? walk.ttlMin : 0;
}

function saneTtl(ttl: number): number {
  // RFC 2181 section 8: a TTL with its first bit set counts as zero.
  return ttl > 0x7fffffff ? 0 : Math.min(ttl, ttlSecondsMax);
}

/** Written where they stand: offsets are the body's. */
function withSaneTtls(body: Uint8Array, offsets: readonly number[]): Uint8Array {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  for (const at of offsets) view.setUint32(at, saneTtl(view.getUint32(at)));
  return body;
}

interface Walk {
  end: number;
  counts: [number, number, number];
  /** Offsets into the body. */
  readonly ttlOffsets: number[];
  ttlMin: number;
  /** Undefined without an SOA. */
  negativeTtl: number | undefined;
  readonly answerTypes: Set<number>;
  extendedRcode: number;
  extendedError: number;
  extendedText: string;
}

function walkRecords(view: DataView, start: number, counts: [number, number, number]): Walk | undefined {
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  const walk: Walk = {
    end: start,
    counts: [0, 0, 0],
    ttlOffsets: [],
    ttlMin: Number.POSITIVE_INFINITY,
    negativeTtl: undefined,
    answerTypes: new Set(),
    extendedRcode: 0,
    extendedError: -1,
    extendedText: '',
  };
  let at = start;
  let isBehindOpt = false;
  for (let section = 0; section < 3; section++) {
    for (let i = 0; i < counts[section]!; i++) {
      at = skipName(bytes, at);
      if (at < 0 || at + 10 > bytes.length) return undefined;
      const type = view.getUint16(at);
      const ttl = saneTtl(view.getUint32(at + 4));
      const end = at + 10 + view.getUint16(at + 8);
      if (end > bytes.length) return undefined;
      if (type === recordType.OPT) {
        isBehindOpt = true;
        walk.extendedRcode = view.getUint8(at + 4);
        readExtendedError(view, at + 10, end, walk);
      } else if (!isBehindOpt) {
        // Records behind an OPT could not stay where they are without it; they are only ever additional.
        walk.counts[section]! += 1;
        walk.ttlOffsets.push(at + 4 - headerBytes);
        if (section === 0) walk.answerTypes.add(type);
        if (section < 2) walk.ttlMin = Math.min(walk.ttlMin, ttl);
        if (type === recordType.SOA && section === 1)
          walk.negativeTtl = Math.min(ttl, saneTtl(view.getUint32(end - 4)));
        walk.end = end;
      }
      at = end;
    }
  }
  return walk;
}

function readExtendedError(view: DataView, start: number, end: number, walk: Walk): void {
  for (let at = start; at + 4 <= end; at += 4 + view.getUint16(at + 2)) {
    const textEnd = at + 4 + view.getUint16(at + 2);
    if (view.getUint16(at) !== ednsOption.EXTENDED_ERROR || at + 6 > textEnd || textEnd > end) continue;
    walk.extendedError = view.getUint16(at + 4);
    walk.extendedText = Buffer.from(view.buffer, view.byteOffset + at + 6, textEnd - at - 6).toString('utf8');
    return;
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

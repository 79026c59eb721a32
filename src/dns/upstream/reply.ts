// A reply from another server, looked through once: what it says, how long it may be kept, and where its TTLs stand so that
// they can be counted down later. Its records stay as bytes. Pure; a reply that cannot be read is undefined.

import { recordType } from '../../catalog/answers.ts';
import { ednsOption, headerBytes } from '../wire.ts';

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
  /** RFC 8914 code the other server gave, or -1. */
  readonly extendedError: number;
}

const flagTc = 0x0200;

export function readReply(bytes: Uint8Array): Reply | undefined {
  if (bytes.length < headerBytes) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const flags = view.getUint16(2);
  if ((flags & 0x8000) === 0 || view.getUint16(4) !== 1) return undefined;
  const questionEnd = skipName(bytes, headerBytes) + 4;
  if (questionEnd < headerBytes + 5 || questionEnd > bytes.length) return undefined;
  const walk = walkRecords(view, questionEnd, [view.getUint16(6), view.getUint16(8), view.getUint16(10)]);
  if (!walk) return undefined;
  const isNegative = walk.counts[0] === 0 || (flags & 15) === 3;
  return {
    rcode: (flags & 15) | (walk.extendedRcode << 4),
    isTruncated: (flags & flagTc) !== 0,
    body: bytes.slice(headerBytes, walk.end),
    questionBytes: questionEnd - headerBytes,
    counts: walk.counts,
    ttlOffsets: walk.ttlOffsets.map((at) => at - headerBytes),
    ttlSeconds: isNegative ? walk.negativeTtl : walk.ttlMin,
    extendedError: walk.extendedError,
  };
}

interface Walk {
  end: number;
  counts: [number, number, number];
  readonly ttlOffsets: number[];
  ttlMin: number;
  negativeTtl: number;
  extendedRcode: number;
  extendedError: number;
}

function walkRecords(view: DataView, start: number, counts: [number, number, number]): Walk | undefined {
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  const walk: Walk = {
    end: start,
    counts: [0, 0, 0],
    ttlOffsets: [],
    ttlMin: Number.POSITIVE_INFINITY,
    negativeTtl: 0,
    extendedRcode: 0,
    extendedError: -1,
  };
  let at = start;
  let isBehindOpt = false;
  for (let section = 0; section < 3; section++) {
    for (let i = 0; i < counts[section]!; i++) {
      at = skipName(bytes, at);
      if (at < 0 || at + 10 > bytes.length) return undefined;
      const type = view.getUint16(at);
      const ttl = view.getUint32(at + 4);
      const end = at + 10 + view.getUint16(at + 8);
      if (end > bytes.length) return undefined;
      if (type === recordType.OPT) {
        isBehindOpt = true;
        walk.extendedRcode = view.getUint8(at + 4);
        walk.extendedError = extendedErrorIn(view, at + 10, end);
      } else if (!isBehindOpt) {
        // Records behind an OPT could not stay where they are without it; they are only ever additional.
        walk.counts[section]! += 1;
        walk.ttlOffsets.push(at + 4);
        if (section < 2) walk.ttlMin = Math.min(walk.ttlMin, ttl > 0x7fffffff ? 0 : ttl);
        if (type === recordType.SOA && section === 1) walk.negativeTtl = Math.min(ttl, view.getUint32(end - 4));
        walk.end = end;
      }
      at = end;
    }
  }
  return walk;
}

function extendedErrorIn(view: DataView, start: number, end: number): number {
  for (let at = start; at + 4 <= end; at += 4 + view.getUint16(at + 2)) {
    if (view.getUint16(at) === ednsOption.EXTENDED_ERROR && at + 6 <= end) return view.getUint16(at + 4);
  }
  return -1;
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

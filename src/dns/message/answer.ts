// One answer, written into memory that is used again for the next. It knows how much the asker can take. Records that do not
// fit are left out; TC is set when they belong to the answer itself, and those that fit stay: clients without TCP use them.

import { classIn, rcode, recordType } from '../../base/dns/codes.ts';
import type { TsigKey } from '../../base/dns/tsig.ts';
import { srvHeadBytes } from '../../catalog/names/answers.ts';
import {
  clientCookieBytes,
  ednsOption,
  headerBytes,
  messageBytesMax,
  type Query,
  serverCookieBytes,
  udpPayloadMax,
  udpPayloadMin,
} from './wire.ts';

export type Section = 'answer' | 'authority' | 'additional';

const flagAa = 0x0400;
const flagTc = 0x0200;
const flagRa = 0x0080;
const flagAd = 0x0020;
const optBytes = 11;
const errorTextMax = 200;
const paddingBlock = 468;
/** A signature in an answer may be longer than in the query by the other server's time (RFC 8945 section 5.2.3). */
const tsigExtraBytes = 6;

/** Records of a message whose question is as long as ours, so that pointers stay right. */
export interface Body {
  /** A character for each byte; the records go on to its end. */
  readonly text: string;
  readonly recordsAt: number;
  readonly answers: number;
  readonly authorities: number;
  readonly additionals: number;
  /** Counted from the first record on. */
  ttlOffset(record: number): number;
  /** Records of equal length that may stand in any order. */
  readonly rotateCount: number;
  readonly rotateStart: number;
  readonly rotateBytes: number;
}

export class Answer {
  bytes: Uint8Array;
  /** Where this message starts in `bytes`. */
  start = 0;
  /** Behind the last byte written. */
  at = 0;
  rcode = 0;
  isAuthoritative = false;
  isTruncated = false;
  isRecursionAvailable = false;
  /** Another server has validated all of it. */
  isAuthentic = false;
  /** Sent if the asker speaks EDNS; 0 is a code, so -1 stands for none. */
  extendedError = -1;
  extendedText = '';
  /** For logs and metrics: the handler that answered, and its zone. */
  handler = '';
  zone = -1;
  /** How the finished message is to be signed, if the query was. */
  signature: { readonly key: TsigKey; readonly requestMac: Uint8Array; readonly timeSeconds: number } | undefined;
  /** A ready record for the very end of the message. */
  trailer: Uint8Array | undefined;
  /** Identifies this server to those who ask (RFC 5001). */
  nsid: Uint8Array = new Uint8Array(0);
  /** How long a connection stays open without a query, for those who ask (RFC 7828); 0 where there is none. */
  keepaliveMs = 0;
  /** The client's cookie and ours (RFC 7873). */
  cookie: Uint8Array | undefined;
  #counts = new Uint16Array(3);
  /** Where records must end, and where the message must. */
  #limit = 0;
  #end = 0;
  #query!: Query;

  constructor(bytes: Uint8Array = new Uint8Array(messageBytesMax)) {
    this.bytes = bytes;
  }

  get answerCount(): number {
    return this.#counts[0]!;
  }

  /** Starts a message at `start` with the question as it was asked. */
  begin(query: Query, start = 0): void {
    this.#query = query;
    this.start = start;
    this.rcode = rcode.NOERROR;
    this.isAuthoritative = false;
    this.isTruncated = false;
    this.isAuthentic = false;
    this.isRecursionAvailable = false;
    this.extendedError = -1;
    this.extendedText = '';
    this.signature = undefined;
    this.trailer = undefined;
    this.cookie = undefined;
    this.handler = '';
    this.zone = -1;
    this.#counts[0] = 0;
    this.#counts[1] = 0;
    this.#counts[2] = 0;
    const { packet, questionEnd } = query;
    const bytes = this.bytes;
    for (let i = headerBytes; i < questionEnd; i++) bytes[start + i] = packet[i]!;
    this.at = start + Math.max(headerBytes, questionEnd);
    this.#end = start + sizeMax(query);
    // Room for our OPT is set aside from the beginning.
    const reserved = query.hasEdns ? optBytes + this.#optionBytes(query) : 0;
    // The answer is signed with the same key, so its signature is as long.
    if (query.tsigAt > 0) this.#end -= query.length - query.tsigAt + tsigExtraBytes;
    this.#limit = this.#end - reserved;
  }

  #optionBytes(query: Query): number {
    const nsid = query.wantsNsid ? 4 + this.nsid.length : 0;
    const cookie = query.cookieLength < 0 ? 0 : 4 + clientCookieBytes + serverCookieBytes;
    return nsid + cookie + (query.wantsKeepalive ? 6 : 0) + (query.wantsPadding ? 4 : 0);
  }

  /** Goes on with a copy of the query it was begun with. */
  adopt(query: Query): void {
    this.#query = query;
  }

  fail(code: number, error = -1, text = ''): void {
    this.rcode = code;
    this.extendedError = error;
    this.extendedText = text;
  }

  /** A place to come back to when a record set turns out not to fit. */
  mark(): number {
    return this.at;
  }

  /** Takes back what was written since the mark. */
  rewind(mark: number, section: Section, count: number): void {
    this.at = mark;
    this.#counts[sectionIndex(section)]! -= count;
  }

  /** Takes back all records. */
  clear(): void {
    this.at = this.start + Math.max(headerBytes, this.#query.questionEnd);
    this.#counts.fill(0);
  }

  /**
   * A record owned by the name at `owner`, a compression pointer. False if it does not fit. Takes the rdata where it
   * lies: this is the hot path, and no object is allocated.
   */
  recordAt(
    section: Section,
    type: number,
    ttl: number,
    from: Uint8Array,
    start: number,
    length: number,
    owner: number,
  ): boolean {
    if (this.at + 12 + length > this.#limit) return false;
    this.bytes[this.at] = owner >> 8;
    this.bytes[this.at + 1] = owner & 255;
    this.at += 2;
    this.#body(section, type, ttl, from, start, length);
    return true;
  }

  /** An SRV record whose target lies elsewhere than its first six bytes. RFC 2782: the target is not compressed. */
  srvAt(
    section: Section,
    ttl: number,
    head: Uint8Array,
    headStart: number,
    target: Uint8Array,
    targetStart: number,
    targetLength: number,
    owner: number,
  ): boolean {
    if (this.at + 12 + srvHeadBytes + targetLength > this.#limit) return false;
    const lengthAt = this.at + 10;
    this.recordAt(section, recordType.SRV, ttl, head, headStart, srvHeadBytes, owner);
    for (let i = 0; i < targetLength; i++) this.bytes[this.at + i] = target[targetStart + i]!;
    this.at += targetLength;
    this.#put16(lengthAt, srvHeadBytes + targetLength);
    return true;
  }

  /** A record with its owner written out. False if it does not fit. */
  recordOf(section: Section, record: { owner: Uint8Array; type: number; ttl: number; rdata: Uint8Array }): boolean {
    const { owner, rdata } = record;
    if (this.at + owner.length + 10 + rdata.length > this.#limit) return false;
    this.bytes.set(owner, this.at);
    this.at += owner.length;
    this.#body(section, record.type, record.ttl, rdata, 0, rdata.length);
    return true;
  }

  /** The records another answer to the same question has so far: its pointers stay right, for it starts alike. */
  recordsOf(other: Answer): void {
    const from = other.start + Math.max(headerBytes, this.#query.questionEnd);
    this.bytes.set(other.bytes.subarray(from, other.at), this.at);
    this.at += other.at - from;
    this.#counts[0] = other.answerCount;
  }

  #body(section: Section, type: number, ttl: number, from: Uint8Array, start: number, length: number): void {
    const bytes = this.bytes;
    let at = this.at;
    bytes[at++] = type >> 8;
    bytes[at++] = type & 255;
    bytes[at++] = 0;
    bytes[at++] = classIn;
    bytes[at++] = ttl >>> 24;
    bytes[at++] = (ttl >>> 16) & 255;
    bytes[at++] = (ttl >>> 8) & 255;
    bytes[at++] = ttl & 255;
    bytes[at++] = length >> 8;
    bytes[at++] = length & 255;
    const end = start + length;
    for (let i = start; i < end; i++) bytes[at++] = from[i]!;
    this.at = at;
    this.#counts[sectionIndex(section)]! += 1;
  }

  /** Another server's records, behind our echo of the same question: their TTLs counted down by `ageSeconds`, or all of
   *  them `ttlSeconds` if that is not negative; addresses begin with another one each `turn`. */
  body(reply: Body, ageSeconds: number, ttlSeconds: number, turn: number): void {
    const { answers, authorities, additionals } = reply;
    const room = this.#limit - this.at;
    const whole = reply.text.length - reply.recordsAt;
    const count = whole <= room ? answers + authorities + additionals : recordsThatFit(reply, room);
    const length = whole <= room ? whole : lengthOf(reply, count);
    this.#copyRecords(reply, length, turn);
    for (let i = 0; i < count; i++) {
      const at = this.at + reply.ttlOffset(i);
      const { bytes } = this;
      const sent = ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
      this.#put32(at, ttlSeconds >= 0 ? ttlSeconds : Math.max(0, sent - ageSeconds));
    }
    this.at += length;
    this.#counts[0] = Math.min(count, answers);
    this.#counts[1] = Math.min(Math.max(0, count - answers), authorities);
    this.#counts[2] = Math.min(Math.max(0, count - answers - authorities), additionals);
    // RFC 2181 section 9: addresses beside the answer may be missing without a word.
    if (count < answers + authorities) this.isTruncated = true;
  }

  #copyRecords(reply: Body, length: number, turn: number): void {
    const { bytes, at: to } = this;
    const { text, recordsAt, rotateCount, rotateStart, rotateBytes } = reply;
    for (let i = 0; i < length; i++) bytes[to + i] = text.charCodeAt(recordsAt + i);
    const first = rotateCount === 0 ? 0 : turn % rotateCount;
    if (first === 0) return;
    for (let i = 0; i < rotateCount; i++) {
      const from = recordsAt + rotateStart + ((first + i) % rotateCount) * rotateBytes;
      const at = rotateStart + i * rotateBytes;
      if (at + rotateBytes > length) return;
      for (let byte = 0; byte < rotateBytes; byte++) bytes[to + at + byte] = text.charCodeAt(from + byte);
    }
  }

  /** Completes header and OPT; the message is `bytes` from `start`, as long as the result says. */
  finish(): number {
    const query = this.#query;
    const start = this.start;
    let extra = query.hasEdns ? this.#writeOpt() : 0;
    if (this.trailer && this.trailer.length > 0) {
      this.bytes.set(this.trailer, this.at);
      this.at += this.trailer.length;
      extra += 1;
    }
    let flags = 0x8000 | (query.flags & 0x7910); // opcode, RD and CD as asked
    if (this.isAuthoritative) flags |= flagAa;
    if (this.isTruncated) flags |= flagTc;
    if (this.isRecursionAvailable) flags |= flagRa;
    if (this.isAuthentic) flags |= flagAd;
    flags |= this.rcode & 15;
    this.#put16(start, query.id);
    this.#put16(start + 2, flags);
    this.#put16(start + 4, query.questionEnd > 0 ? 1 : 0);
    this.#put16(start + 6, this.#counts[0]!);
    this.#put16(start + 8, this.#counts[1]!);
    this.#put16(start + 10, this.#counts[2]! + extra);
    return this.at - start;
  }

  /** RFC 6891 section 6.1.1: an OPT answers an OPT and nothing else. */
  #writeOpt(): number {
    const bytes = this.bytes;
    const optAt = this.at;
    bytes[optAt] = 0;
    this.#put16(optAt + 1, recordType.OPT);
    this.#put16(optAt + 3, udpPayloadMax);
    bytes[optAt + 5] = this.rcode >> 4;
    bytes[optAt + 6] = 0;
    bytes[optAt + 7] = this.#query.isDnssecOk ? 0x80 : 0;
    bytes[optAt + 8] = 0;
    this.at = optAt + optBytes;
    if (this.#query.wantsNsid && this.nsid.length > 0) this.#writeOption(ednsOption.NSID, this.nsid);
    if (this.cookie) this.#writeOption(ednsOption.COOKIE, this.cookie);
    if (this.#query.wantsKeepalive && this.keepaliveMs > 0 && this.#query.transport !== 'udp') this.#writeKeepalive();
    if (this.extendedError >= 0) this.#writeExtendedError();
    if (this.#query.wantsPadding && isEncrypted(this.#query)) this.#writePadding();
    this.#put16(optAt + 9, this.at - optAt - optBytes);
    return 1;
  }

  /** In tenths of a second. */
  #writeKeepalive(): void {
    const tenths = Math.min(0xffff, Math.floor(this.keepaliveMs / 100));
    this.#writeOption(ednsOption.TCP_KEEPALIVE, Uint8Array.of(tenths >> 8, tenths & 255));
  }

  /** RFC 8467 section 4.1: up to the next multiple of 468, as far as there is room. */
  #writePadding(): void {
    const unpadded = this.at - this.start + 4;
    const padding = Math.min((paddingBlock - (unpadded % paddingBlock)) % paddingBlock, this.#end - this.at - 4);
    if (padding >= 0) this.#writeOption(ednsOption.PADDING, new Uint8Array(padding));
  }

  #writeExtendedError(): void {
    const whole = Buffer.from(this.extendedText);
    const text = whole.subarray(0, endOfText(whole));
    const room = this.#end - this.at;
    const payload = Buffer.alloc(2 + (room >= text.length + 6 ? text.length : 0));
    payload.writeUInt16BE(this.extendedError);
    text.copy(payload, 2, 0, payload.length - 2);
    if (room >= payload.length + 4) this.#writeOption(ednsOption.EXTENDED_ERROR, payload);
  }

  #writeOption(code: number, payload: Uint8Array): void {
    this.#put16(this.at, code);
    this.#put16(this.at + 2, payload.length);
    this.bytes.set(payload, this.at + 4);
    this.at += 4 + payload.length;
  }

  #put32(at: number, value: number): void {
    this.#put16(at, value >>> 16);
    this.#put16(at + 2, value & 0xffff);
  }

  #put16(at: number, value: number): void {
    this.bytes[at] = value >> 8;
    this.bytes[at + 1] = value & 255;
  }
}

/** Whole records from the first on: pointers lead back, so the rest can be cut off. */
function recordsThatFit(reply: Body, room: number): number {
  const all = reply.answers + reply.authorities + reply.additionals;
  let count = 0;
  while (count < all && lengthOf(reply, count + 1) <= room) count += 1;
  return count;
}

/** Bytes of the first `count` records. */
function lengthOf(reply: Body, count: number): number {
  if (count === 0) return 0;
  const { text, recordsAt } = reply;
  const lengthAt = reply.ttlOffset(count - 1) + 4;
  const at = recordsAt + lengthAt;
  return lengthAt + 2 + ((text.charCodeAt(at) << 8) | text.charCodeAt(at + 1));
}

function isEncrypted({ transport }: Query): boolean {
  return transport === 'tls' || transport === 'https';
}

function sizeMax(query: Query): number {
  if (query.transport !== 'udp') return messageBytesMax;
  return Math.min(Math.max(query.udpSize, udpPayloadMin), udpPayloadMax);
}

function sectionIndex(section: Section): number {
  return section === 'answer' ? 0 : section === 'authority' ? 1 : 2;
}

/** Not inside a character of several bytes. */
function endOfText(text: Uint8Array): number {
  let end = Math.min(text.length, errorTextMax);
  while (end < text.length && (text[end]! & 0xc0) === 0x80) end -= 1;
  return end;
}

// One query, read in place. A Query object is made once per socket and filled again for every packet, so that reading
// allocates nothing. Unreadable queries are told apart as the RFCs do: FORMERR for a query we can answer to, silence
// else.

import { recordType } from '../../base/dns/codes.ts';
import { labelBytesMax, lowerCase, nameBytesMax } from '../../base/dns/name.ts';

/** RFC 8914 */
export const extendedError = {
  other: 0,
  staleAnswer: 3,
  notReady: 14,
  blocked: 15,
  prohibited: 18,
  staleNxdomain: 19,
  notSupported: 21,
  noReachableAuthority: 22,
  networkError: 23,
  invalidData: 24,
} as const;

export const ednsOption = { NSID: 3, COOKIE: 10, TCP_KEEPALIVE: 11, PADDING: 12, EXTENDED_ERROR: 15 } as const;
export const clientCookieBytes = 8;
export const serverCookieBytes = 16;
/** From the range for local use; can be configured. */
export const defaultSourceOption = 65_001;

export const headerBytes = 12;
/** RFC 9715, and usual since 2020: larger answers risk fragments. */
export const udpPayloadMax = 1232;
export const udpPayloadMin = 512;
export const messageBytesMax = 65_535;

export type ReadResult = 'ok' | 'silence' | 'formerr' | 'nametoolong' | 'notimp';
export type Transport = 'udp' | 'tcp' | 'tls' | 'https';

const flagQr = 0x8000;
const opcodeMask = 0x7800;
const ednsDo = 0x8000;

export class Query {
  packet: Uint8Array = new Uint8Array(0);
  length = 0;
  id = 0;
  flags = 0;
  type = 0;
  class = 0;
  /** Offset behind the question; 0 if there was none to read. */
  questionEnd = 0;
  /** Lower case. */
  readonly name: Uint8Array = new Uint8Array(nameBytesMax);
  nameLength = 0;
  nameHash = 0;

  hasEdns = false;
  ednsVersion = 0;
  udpSize = udpPayloadMin;
  isDnssecOk = false;
  wantsNsid = false;
  /** RFC 7828: how long the connection stays open. */
  wantsKeepalive = false;
  /** RFC 7830: the answer is to be of a length that says nothing. */
  wantsPadding = false;
  /** Where the client's cookie is; length -1 if it was not sent. */
  cookieAt = 0;
  cookieLength = -1;
  /** Where the source-cluster option's payload is; length -1 if it was not sent. */
  sourceAt = 0;
  sourceLength = -1;
  /** Offset of a TSIG record, 0 if there is none. */
  tsigAt = 0;

  transport: Transport = 'udp';
  clientAddress = '';
  clientPort = 0;
  /** Name in a client certificate that our authority signed. */
  clientIdentity = '';
  /** Monotonic time at which it came in. */
  receivedMs = 0;
  /** Asked by ourselves on behalf of another query: neither counted nor logged. */
  isInner = false;
  /** How many aliases lead to it that were followed from one table of names to another. */
  aliasCount = 0;
  /** Name of the key whose TSIG was found right; empty otherwise. */
  tsigKey = '';
  /** The same for a key that is for zone transfers. */
  transferKey = '';
  /** The code under which servers name the client's cluster. */
  sourceOption = defaultSourceOption;

  get isCheckingDisabled(): boolean {
    return (this.flags & 0x0010) !== 0;
  }

  /** RFC 6840 section 5.7 */
  get wantsAuthentic(): boolean {
    return (this.flags & 0x0020) !== 0;
  }

  get isRecursionDesired(): boolean {
    return (this.flags & 0x0100) !== 0;
  }

  read(packet: Uint8Array, length: number = packet.length): ReadResult {
    this.packet = packet;
    this.length = length;
    this.questionEnd = 0;
    this.nameLength = 0;
    this.type = 0;
    this.hasEdns = false;
    this.ednsVersion = 0;
    this.udpSize = udpPayloadMin;
    this.isDnssecOk = false;
    this.wantsNsid = false;
    this.wantsKeepalive = false;
    this.wantsPadding = false;
    this.cookieLength = -1;
    this.sourceLength = -1;
    this.tsigAt = 0;
    this.tsigKey = '';
    this.transferKey = '';
    if (length < headerBytes) return 'silence';
    this.id = this.#u16(0);
    this.flags = this.#u16(2);
    // An answer to an answer could go on for ever.
    if ((this.flags & flagQr) !== 0) return 'silence';
    if ((this.flags & opcodeMask) !== 0) return 'notimp';
    const questions = this.#u16(4);
    if (questions > 1 || this.#u16(6) !== 0) return 'formerr';
    if (questions === 0) return this.#readCookieAlone() ? 'ok' : 'formerr';
    if (!this.#readQuestion()) return this.#hasLongName() ? 'nametoolong' : 'formerr';
    const authority = this.#u16(8);
    if (authority !== 0 && this.type !== recordType.IXFR) return 'formerr';
    return this.#readAdditional(authority, this.#u16(10)) ? 'ok' : 'formerr';
  }

  /** RFC 7873 section 5.4: no question, only a cookie. `questionEnd` stays 0. */
  #readCookieAlone(): boolean {
    if (this.#u16(8) !== 0) return false;
    this.questionEnd = headerBytes;
    const isRead = this.#readAdditional(0, this.#u16(10));
    this.questionEnd = 0;
    return isRead && this.cookieLength >= 0 && this.tsigAt === 0;
  }

  /** Lowers the name and hashes it in one pass. Pointers are not allowed: nothing stands before the question. */
  #readQuestion(): boolean {
    const { packet, length, name } = this;
    let at = headerBytes;
    let end = headerBytes;
    let hash = 0x811c9dc5;
    for (;;) {
      if (at >= length) return false;
      const size = packet[at]!;
      if (size > labelBytesMax) return false;
      end = at + size + 1;
      if (end > length || end - headerBytes > nameBytesMax) return false;
      for (; at < end; at++) {
        const byte = lowerCase[packet[at]!]!;
        name[at - headerBytes] = byte;
        hash = Math.imul(hash ^ byte, 0x01000193);
      }
      if (size === 0) break;
    }
    if (at + 4 > length) return false;
    this.nameLength = at - headerBytes;
    this.nameHash = hash | 0;
    this.type = this.#u16(at);
    this.class = this.#u16(at + 2);
    this.questionEnd = at + 4;
    return true;
  }

  /**
   * A question that is wrong only in the length of its name: its sender gets that as an extended error if it speaks
   * EDNS.
   */
  #hasLongName(): boolean {
    let at = headerBytes;
    while (at < this.length && this.packet[at] !== 0) {
      if (this.packet[at]! > labelBytesMax) return false;
      at += this.packet[at]! + 1;
    }
    if (at - headerBytes < nameBytesMax || at + 5 > this.length) return false;
    this.questionEnd = at + 5;
    const isRead = this.#readAdditional(this.#u16(8), this.#u16(10));
    // Such a question is not repeated in the answer.
    this.questionEnd = 0;
    this.tsigAt = 0;
    return isRead;
  }

  #readAdditional(skip: number, count: number): boolean {
    let at = this.questionEnd;
    for (let i = 0; i < skip + count; i++) {
      const nameAt = at;
      at = this.#skipName(at);
      if (at < 0 || at + 10 > this.length) return false;
      const type = this.#u16(at);
      const end = at + 10 + this.#u16(at + 8);
      if (end > this.length) return false;
      if (i >= skip && type === recordType.OPT) {
        // RFC 6891 section 6.1.1: at most one, owned by the root.
        if (this.hasEdns || at !== nameAt + 1) return false;
        if (!this.#readEdns(at, end)) return false;
      } else if (i >= skip && type === recordType.TSIG) {
        // RFC 8945 section 5.1: the last record of the message.
        if (i !== skip + count - 1) return false;
        this.tsigAt = nameAt;
      }
      at = end;
    }
    return true;
  }

  #readEdns(at: number, end: number): boolean {
    this.hasEdns = true;
    this.udpSize = Math.max(udpPayloadMin, this.#u16(at + 2));
    this.ednsVersion = this.packet[at + 5]!;
    this.isDnssecOk = (this.#u16(at + 6) & ednsDo) !== 0;
    for (let option = at + 10; option < end; ) {
      if (option + 4 > end) return false;
      const code = this.#u16(option);
      const size = this.#u16(option + 2);
      if (option + 4 + size > end) return false;
      if (code === ednsOption.NSID) this.wantsNsid = true;
      else if (code === ednsOption.TCP_KEEPALIVE) this.wantsKeepalive = true;
      else if (code === ednsOption.PADDING) this.wantsPadding = true;
      else if (code === ednsOption.COOKIE) {
        this.cookieAt = option + 4;
        this.cookieLength = size;
      } else if (code === this.sourceOption) {
        this.sourceAt = option + 4;
        this.sourceLength = size;
      }
      option += 4 + size;
    }
    return true;
  }

  /** Behind the name, or -1. Follows nothing: a pointer ends a name. */
  #skipName(start: number): number {
    let at = start;
    while (at < this.length) {
      const size = this.packet[at]!;
      if (size === 0) return at + 1;
      if ((size & 0xc0) === 0xc0) return at + 2 <= this.length ? at + 2 : -1;
      if (size > labelBytesMax) return -1;
      at += size + 1;
      if (at - start > nameBytesMax) return -1;
    }
    return -1;
  }

  #u16(at: number): number {
    return (this.packet[at]! << 8) | this.packet[at + 1]!;
  }

  /** The question's bytes as they were sent, with the case its sender chose. */
  get question(): Uint8Array {
    return this.packet.subarray(headerBytes, this.questionEnd);
  }
}

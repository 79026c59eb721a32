// Which records of a reply belong to its question: the answer and what its aliases lead to, the zone above that says
// no, and the addresses of servers that the answer names. Everything else is left out, and so are records in zones
// that others answer, our own above all: upstream servers have no authority there. Pure.

import { recordType } from '../../base/dns/codes.ts';
import { encodeMessage, type ResourceRecord, tryDecodeMessage } from '../../base/dns/message.ts';
import { isWithin, lowerCase, nameBytesMax } from '../../base/dns/name.ts';
import { headerBytes } from '../message/wire.ts';

/** Whether a name is not for the servers that gave the reply to answer. */
export type IsOfOthers = (name: Uint8Array) => boolean;

const toQuestion = 0xc000 | headerBytes;
const typeDname = 39;
const typeRrsig = 46;
/** Proofs of DNSSEC: their owners may stand beside the name asked for. */
const proofTypes: ReadonlySet<number> = new Set([43, typeRrsig, 47, 50]);
/** Types that name a host, and how many bytes stand before its name. */
const hostAt: Readonly<Record<number, number>> = {
  [recordType.NS]: 0,
  [recordType.MX]: 2,
  [recordType.SRV]: 6,
  [recordType.SVCB]: 2,
  [recordType.HTTPS]: 2,
};
/** More aliases, or hosts, than any good answer has: comparing each with each must stay cheap. */
const aliasesMax = 16;
const hostsMax = 64;

export class RelatedRecords {
  readonly #bytes: Uint8Array;
  readonly #isOfOthers: IsOfOthers | undefined;
  /** The name asked for and those its aliases lead to; read when a record needs it. */
  #names: Uint8Array[] | undefined;
  #hosts: Uint8Array[] | undefined;

  constructor(bytes: Uint8Array, isOfOthers: IsOfOthers | undefined) {
    this.#bytes = bytes;
    this.#isOfOthers = isOfOthers;
  }

  /** Records come in their order; `at` is where the owner starts, `dataAt` where the rdata does. */
  isRelated(section: number, at: number, type: number, dataAt: number): boolean {
    const bytes = this.#bytes;
    const isOwnedByQuestion = ((bytes[at]! << 8) | bytes[at + 1]!) === toQuestion;
    if (section === 0 && !isOwnedByQuestion && !this.#isAnswer(at, type, dataAt)) return false;
    if (section === 1 && !isOwnedByQuestion && !this.#isAbove(at, type)) return false;
    if (section === 2) return this.#isOfHost(at);
    if (type === recordType.CNAME && section === 0) this.#addAlias(dataAt);
    const hostOffset = hostAt[type];
    if (hostOffset !== undefined) this.#addHost(dataAt + hostOffset);
    return true;
  }

  #isAnswer(at: number, type: number, dataAt: number): boolean {
    const owner = readName(this.#bytes, at);
    if (!owner || this.#isOfOthers?.(owner)) return false;
    const names = this.#known();
    // A DNAME stands above the name asked for, and so does its signature (RFC 6672 section 5.3.1).
    if (type === typeDname || (type === typeRrsig && this.#typeCovered(dataAt) === typeDname))
      return names.some((name) => isWithin(name, name.length, owner));
    return names.some((name) => areEqual(name, owner));
  }

  #typeCovered(dataAt: number): number {
    return (this.#bytes[dataAt]! << 8) | this.#bytes[dataAt + 1]!;
  }

  #isAbove(at: number, type: number): boolean {
    const owner = readName(this.#bytes, at);
    if (!owner || this.#isOfOthers?.(owner)) return false;
    return proofTypes.has(type) || this.#known().some((name) => isWithin(name, name.length, owner));
  }

  #isOfHost(at: number): boolean {
    if (this.#hosts === undefined) return false;
    const owner = readName(this.#bytes, at);
    return owner !== undefined && !this.#isOfOthers?.(owner) && this.#hosts.some((host) => areEqual(host, owner));
  }

  #known(): Uint8Array[] {
    if (this.#names) return this.#names;
    const asked = readName(this.#bytes, headerBytes);
    this.#names = asked ? [asked] : [];
    return this.#names;
  }

  #addAlias(at: number): void {
    const names = this.#known();
    const target = names.length < aliasesMax ? readName(this.#bytes, at) : undefined;
    if (target) names.push(target);
  }

  #addHost(at: number): void {
    this.#hosts ??= [];
    const host = this.#hosts.length < hostsMax ? readName(this.#bytes, at) : undefined;
    if (host) this.#hosts.push(host);
  }
}

/** The same message with only some of its records; `kept` is about all but OPT. Undefined if it cannot be read. */
export function withoutUnrelated(bytes: Uint8Array, kept: readonly boolean[]): Uint8Array | undefined {
  const message = tryDecodeMessage(bytes);
  if (!message) return undefined;
  let index = 0;
  const isKept = ({ type }: ResourceRecord) => type === recordType.OPT || kept[index++] === true;
  const answers = message.answers.filter(isKept);
  const authorities = message.authorities.filter(isKept);
  const additionals = message.additionals.filter(isKept);
  return encodeMessage({ ...message, answers, authorities, additionals });
}

const jumpsMax = 32;

/** Lower case and uncompressed; undefined for a name that is broken. */
function readName(bytes: Uint8Array, start: number): Uint8Array | undefined {
  const name = new Uint8Array(nameBytesMax);
  let length = 0;
  let at = start;
  for (let jumps = 0; jumps < jumpsMax; ) {
    const size = bytes[at];
    if (size === undefined) return undefined;
    if ((size & 0xc0) === 0xc0) {
      at = ((size & 0x3f) << 8) | (bytes[at + 1] ?? 0);
      jumps += 1;
      continue;
    }
    if (size > 63 || length + size + 1 > nameBytesMax) return undefined;
    for (let end = at + size; at <= end; at++) name[length++] = lowerCase[bytes[at] ?? 0]!;
    if (size === 0) return name.subarray(0, length);
  }
  return undefined;
}

function areEqual(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

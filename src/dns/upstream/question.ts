// Questions to other servers, as bytes. Nothing a client put into its OPT goes further than this. Pure but for chance.

import { copyOf } from '../../base/bytes/copy.ts';
import { classIn, recordType } from '../../base/dns/codes.ts';
import type { World } from '../../base/world.ts';
import { ednsOption, headerBytes, type Query, udpPayloadMax } from '../message/wire.ts';

/** Facts about the client: sent as an option, and kept apart in the cache. */
export interface SourceTag {
  readonly optionCode: number;
  readonly payload: Uint8Array;
  /** Equal for two askers exactly if they may share answers. */
  readonly key: string;
  /** The way the query has come; empty if it starts here. Two ways never wait for each other: that would be a circle. */
  readonly way: string;
}

const flagRd = 0x0100;
/** RFC 6840 section 5.7: asks whether the answer was validated. */
const flagAd = 0x0020;
const flagCd = 0x0010;
const paddingBlock = 128;

export interface QuestionOptions {
  readonly source?: SourceTag;
  /** For random upper and lower case. */
  readonly random?: World['random'] | undefined;
  /** For servers that are asked over TLS (RFC 8467 section 4.1). */
  readonly isPadded?: boolean | undefined;
}

export function buildQuestion(query: Query, { source, random, isPadded }: QuestionOptions): Uint8Array {
  const sourceBytes = source ? 4 + source.payload.length : 0;
  const plainBytes = headerBytes + query.nameLength + 4 + 11 + sourceBytes;
  const padding = isPadded ? (paddingBlock - ((plainBytes + 4) % paddingBlock)) % paddingBlock : 0;
  const option = sourceBytes + (isPadded ? 4 + padding : 0);
  const { name, nameLength } = query;
  const bytes = Buffer.allocUnsafe(headerBytes + nameLength + 4 + 11 + option);
  bytes.fill(0, 0, headerBytes);
  bytes.writeUInt16BE(flagRd | flagAd | (query.flags & flagCd), 2);
  bytes[5] = 1;
  bytes[11] = 1;
  for (let i = 0; i < nameLength; i++) bytes[headerBytes + i] = name[i]!;
  if (random) mixCase(bytes, headerBytes, nameLength, random);
  let at = headerBytes + nameLength;
  at = bytes.writeUInt16BE(query.type, at);
  at = bytes.writeUInt16BE(classIn, at);
  at = bytes.writeUInt8(0, at);
  at = bytes.writeUInt16BE(recordType.OPT, at);
  at = bytes.writeUInt16BE(udpPayloadMax, at);
  at = bytes.writeUInt32BE(query.isDnssecOk ? 0x8000 : 0, at);
  at = bytes.writeUInt16BE(option, at);
  if (source) {
    at = bytes.writeUInt16BE(source.optionCode, at);
    at = bytes.writeUInt16BE(source.payload.length, at);
    bytes.set(source.payload, at);
    at += source.payload.length;
  }
  if (isPadded) {
    at = bytes.writeUInt16BE(ednsOption.PADDING, at);
    at = bytes.writeUInt16BE(padding, at);
    bytes.fill(0, at);
  }
  return bytes;
}

/** `. NS`, which every server can say something to at once; only one that recurses is asked to. */
export function buildProbe(options: { readonly isRecursive: boolean }): Uint8Array {
  const bytes = Buffer.alloc(headerBytes + 5);
  bytes.writeUInt16BE(options.isRecursive ? flagRd : 0, 2);
  bytes.writeUInt16BE(1, 4);
  bytes.writeUInt16BE(recordType.NS, headerBytes + 1);
  bytes.writeUInt16BE(classIn, headerBytes + 3);
  return bytes;
}

function mixCase(bytes: Uint8Array, start: number, length: number, random: World['random']): void {
  const coins = random.bytes(Math.ceil(length / 8));
  for (let i = 0; i < length; i++) {
    const byte = bytes[start + i]!;
    if (byte >= 0x61 && byte <= 0x7a && ((coins[i >> 3]! >> (i & 7)) & 1) === 1) bytes[start + i] = byte - 32;
  }
}

/** For servers from before EDNS. */
export function withoutOpt(message: Uint8Array): Uint8Array {
  let end = headerBytes;
  while (message[end] !== 0) end += message[end]! + 1;
  const bytes = copyOf(message, 0, end + 5);
  bytes[10] = 0;
  bytes[11] = 0;
  return bytes;
}

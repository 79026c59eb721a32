// Transaction signatures (RFC 8945) with HMAC: signing a message, checking one, and the chain of signatures that a zone
// transfer of several messages has. Pure: keys and the time are given.

import { createHmac, type Hmac, timingSafeEqual } from 'node:crypto';
import { ByteReader, ByteWriter } from './bytes.ts';
import { classAny, recordType } from './codes.ts';
import { decodeName, encodeName } from './name.ts';

export interface TsigKey {
  readonly name: string;
  readonly algorithm: TsigAlgorithm;
  readonly secret: Uint8Array;
}

type TsigAlgorithm = 'hmac-sha256' | 'hmac-sha384' | 'hmac-sha512' | 'hmac-sha1';

const fudgeSeconds = 300;
const tsigError = { NOERROR: 0, BADSIG: 16, BADKEY: 17, BADTIME: 18 } as const;

export interface Signed {
  readonly message: Uint8Array;
  /** Goes into the digest of what answers this message. */
  readonly mac: Uint8Array;
}

export function signMessage(
  message: Uint8Array,
  key: TsigKey,
  options: { readonly timeSeconds: number; readonly requestMac?: Uint8Array; readonly error?: number },
): Signed {
  const { timeSeconds, requestMac, error = tsigError.NOERROR } = options;
  const digest = createHmac(key.algorithm.slice(5), key.secret);
  if (requestMac) digest.update(lengthOf(requestMac)).update(requestMac);
  digest.update(message).update(variables(key, timeSeconds, fudgeSeconds, error, new Uint8Array(0)));
  return withTsig(message, key, { mac: new Uint8Array(digest.digest()), timeSeconds, error });
}

function withTsig(
  message: Uint8Array,
  key: TsigKey,
  { mac, timeSeconds, error }: { readonly mac: Uint8Array; readonly timeSeconds: number; readonly error: number },
): Signed {
  const id = (message[0]! << 8) | message[1]!;
  const rdata = new ByteWriter()
    .raw(encodeName(key.algorithm))
    .u48(timeSeconds)
    .u16(fudgeSeconds)
    .u16(mac.length)
    .raw(mac)
    .u16(id)
    .u16(error)
    .u16(0);
  const record = new ByteWriter()
    .raw(encodeName(key.name))
    .u16(recordType.TSIG)
    .u16(classAny)
    .u32(0)
    .u16(rdata.length)
    .raw(rdata.view());
  const signed = Buffer.concat([message, record.view()]);
  signed.writeUInt16BE(signed.readUInt16BE(10) + 1, 10);
  return { message: signed, mac };
}

/** Signs the second and later messages of a transfer (RFC 8945 section 5.3.1); `lastMac` is that of the message before. */
export function signNext(
  message: Uint8Array,
  key: TsigKey,
  { timeSeconds, lastMac }: { readonly timeSeconds: number; readonly lastMac: Uint8Array },
): Signed {
  const timers = new ByteWriter().u48(timeSeconds).u16(fudgeSeconds).copy();
  const digest = createHmac(key.algorithm.slice(5), key.secret).update(lengthOf(lastMac)).update(lastMac);
  return withTsig(message, key, {
    mac: new Uint8Array(digest.update(message).update(timers).digest()),
    timeSeconds,
    error: 0,
  });
}

export type Verdict =
  | { readonly kind: 'good'; readonly key: TsigKey; readonly mac: Uint8Array; readonly message: Uint8Array }
  | { readonly kind: 'unsigned' }
  | { readonly kind: 'bad'; readonly error: number; readonly why: string };

export interface VerifyOptions {
  readonly keys: readonly TsigKey[];
  readonly timeSeconds: number;
  /** The MAC of the request, when a reply is checked. */
  readonly requestMac?: Uint8Array;
}

/** Checks the TSIG at the end of a message. */
export function verifyMessage(bytes: Uint8Array, options: VerifyOptions): Verdict {
  return verify(bytes, options, (digest, message, tsig, key) => {
    if (options.requestMac) digest.update(lengthOf(options.requestMac)).update(options.requestMac);
    digest.update(message).update(variables(key, tsig.timeSeconds, tsig.fudge, tsig.error, tsig.other));
  });
}

/** The same for the second and later messages of a transfer (RFC 8945 section 5.3.1): `requestMac` is the last one seen,
 *  and messages since then that carried none are part of what is signed. */
export function verifyNext(
  bytes: Uint8Array,
  options: VerifyOptions & { readonly unsigned: readonly Uint8Array[] },
): Verdict {
  return verify(bytes, options, (digest, message, tsig) => {
    const last = options.requestMac ?? new Uint8Array(0);
    digest.update(lengthOf(last)).update(last);
    for (const earlier of options.unsigned) digest.update(earlier);
    digest.update(message).update(new ByteWriter().u48(tsig.timeSeconds).u16(tsig.fudge).copy());
  });
}

type Feed = (digest: Hmac, message: Uint8Array, tsig: TsigFields, key: TsigKey) => void;

function verify(bytes: Uint8Array, options: VerifyOptions, feed: Feed): Verdict {
  const at = findTsig(bytes);
  if (at === 'unreadable') return { kind: 'bad', error: tsigError.BADSIG, why: 'the message cannot be read' };
  if (at < 0) return { kind: 'unsigned' };
  const tsig = readTsig(bytes, at);
  if (!tsig) return { kind: 'bad', error: tsigError.BADSIG, why: 'the signature cannot be read' };
  const key = options.keys.find(
    (known) => known.name.toLowerCase() === tsig.keyName && known.algorithm === tsig.algorithm,
  );
  if (!key)
    return { kind: 'bad', error: tsigError.BADKEY, why: `key ${tsig.keyName} with ${tsig.algorithm} is not known` };
  const message = Buffer.from(bytes.subarray(0, at));
  message.writeUInt16BE(message.readUInt16BE(10) - 1, 10);
  message.writeUInt16BE(tsig.originalId, 0);
  const digest = createHmac(key.algorithm.slice(5), key.secret);
  feed(digest, message, tsig, key);
  const mac = digest.digest();
  if (mac.length !== tsig.mac.length || !timingSafeEqual(mac, tsig.mac)) {
    return { kind: 'bad', error: tsigError.BADSIG, why: `the signature does not fit key ${key.name}` };
  }
  if (Math.abs(options.timeSeconds - tsig.timeSeconds) > tsig.fudge) {
    return {
      kind: 'bad',
      error: tsigError.BADTIME,
      why: `signed ${tsig.timeSeconds - options.timeSeconds} s off our clock`,
    };
  }
  message.writeUInt16BE((bytes[0]! << 8) | bytes[1]!, 0);
  return { kind: 'good', key, mac: tsig.mac, message };
}

/** An unsigned TSIG record that tells a client why its own was not accepted (RFC 8945 section 5.3.2). */
export function tsigErrorRecord(query: Uint8Array, tsigAt: number, error: number, timeSeconds: number): Uint8Array {
  const tsig = readTsig(query, tsigAt);
  const id = (query[0]! << 8) | query[1]!;
  if (!tsig) return new Uint8Array(0);
  const rdata = new ByteWriter().raw(encodeName(tsig.algorithm)).u48(timeSeconds).u16(fudgeSeconds).u16(0).u16(id);
  rdata.u16(error).u16(0);
  return new ByteWriter()
    .raw(encodeName(tsig.keyName))
    .u16(recordType.TSIG)
    .u16(classAny)
    .u32(0)
    .u16(rdata.length)
    .raw(rdata.view())
    .copy();
}

interface TsigFields {
  readonly keyName: string;
  readonly algorithm: string;
  readonly timeSeconds: number;
  readonly fudge: number;
  readonly mac: Uint8Array;
  readonly originalId: number;
  readonly error: number;
  readonly other: Uint8Array;
}

/** Undefined if it does not hold together: a forger's TSIG is as wild as any other bytes. */
function readTsig(bytes: Uint8Array, at: number): TsigFields | undefined {
  const name = plainName(bytes, at);
  const algorithm = name && plainName(bytes, name.end + 10);
  if (!name || !algorithm || algorithm.end + 16 > bytes.length) return undefined;
  const reader = new ByteReader(bytes, algorithm.end);
  const timeSeconds = reader.u48();
  const fudge = reader.u16();
  const macLength = reader.u16();
  if (reader.at + macLength + 6 > bytes.length) return undefined;
  const mac = reader.raw(macLength);
  const originalId = reader.u16();
  const error = reader.u16();
  const other = reader.raw(reader.u16());
  return { keyName: name.text, algorithm: algorithm.text, timeSeconds, fudge, mac, originalId, error, other };
}

/** Names in a TSIG are never compressed (RFC 8945 section 4.2). */
function plainName(bytes: Uint8Array, start: number): { text: string; end: number } | undefined {
  let end = start;
  while (end < bytes.length && bytes[end] !== 0) {
    if (bytes[end]! > 63) return undefined;
    end += bytes[end]! + 1;
  }
  if (end >= bytes.length || end - start > 254) return undefined;
  return { text: decodeName(bytes.subarray(start, end + 1)).toLowerCase(), end: end + 1 };
}

/** Where the last record starts if it is a TSIG, else -1. */
function findTsig(bytes: Uint8Array): number | 'unreadable' {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 12) return 'unreadable';
  let at = 12;
  const skipName = () => {
    while (at < bytes.length) {
      const size = bytes[at]!;
      if (size === 0) return at++;
      if ((size & 0xc0) === 0xc0) return (at += 2);
      at += size + 1;
    }
    return (at = Number.NaN);
  };
  for (let i = 0; i < view.getUint16(4); i++) {
    skipName();
    at += 4;
  }
  const records = view.getUint16(6) + view.getUint16(8) + view.getUint16(10);
  for (let i = 0; i < records; i++) {
    const start = at;
    skipName();
    if (!(at + 10 <= bytes.length)) return 'unreadable';
    const type = view.getUint16(at);
    at += 10 + view.getUint16(at + 8);
    if (!(at <= bytes.length)) return 'unreadable';
    if (type === recordType.TSIG) return i === records - 1 && view.getUint16(10) > 0 ? start : 'unreadable';
  }
  return -1;
}

/** RFC 8945 section 4.3.3 */
function variables(key: TsigKey, timeSeconds: number, fudge: number, error: number, other: Uint8Array): Uint8Array {
  return new ByteWriter()
    .raw(encodeName(key.name))
    .u16(classAny)
    .u32(0)
    .raw(encodeName(key.algorithm))
    .u48(timeSeconds)
    .u16(fudge)
    .u16(error)
    .u16(other.length)
    .raw(other)
    .copy();
}

function lengthOf(bytes: Uint8Array): Uint8Array {
  return Uint8Array.of(bytes.length >> 8, bytes.length & 255);
}

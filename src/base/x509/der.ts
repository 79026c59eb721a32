// Encodes the few ASN.1 values that certificates are made of, in DER (X.690). Pure; knows nothing of certificates.

export function sequence(...parts: readonly Uint8Array[]): Buffer {
  return tagged(0x30, ...parts);
}

export function set(...parts: readonly Uint8Array[]): Buffer {
  return tagged(0x31, ...parts);
}

/** From big-endian bytes, taken as not negative. */
export function integer(bytes: Uint8Array): Buffer {
  let start = 0;
  while (start < bytes.length - 1 && bytes[start] === 0) start++;
  const trimmed = bytes.subarray(start);
  const needsSignByte = (trimmed[0] ?? 0) >= 0x80;
  return needsSignByte ? tagged(0x02, Uint8Array.of(0), trimmed) : tagged(0x02, trimmed);
}

export function boolean(value: boolean): Buffer {
  return tagged(0x01, Uint8Array.of(value ? 0xff : 0));
}

export function octetString(bytes: Uint8Array): Buffer {
  return tagged(0x04, bytes);
}

export function bitString(bytes: Uint8Array, unusedBits = 0): Buffer {
  return tagged(0x03, Uint8Array.of(unusedBits), bytes);
}

export function utf8String(text: string): Buffer {
  return tagged(0x0c, Buffer.from(text, 'utf8'));
}

/** From dotted text such as `2.5.4.3`. */
export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return tagged(0x06, Uint8Array.from([first * 40 + second, ...rest].flatMap(base128)));
}

/** UTCTime until 2049 and GeneralizedTime from then on, as RFC 5280 section 4.1.2.5 wants it. */
export function time(atMs: number): Buffer {
  const digits = new Date(atMs).toISOString().replace(/[-:T]/g, '').slice(0, 14);
  const isShort = new Date(atMs).getUTCFullYear() < 2050;
  return tagged(isShort ? 0x17 : 0x18, Buffer.from(`${isShort ? digits.slice(2) : digits}Z`, 'latin1'));
}

/** `[n]` around other values. */
export function explicit(number: number, ...parts: readonly Uint8Array[]): Buffer {
  return tagged(0xa0 | number, ...parts);
}

/** `[n]` in place of the type's own tag. */
export function implicit(number: number, bytes: Uint8Array): Buffer {
  return tagged(0x80 | number, bytes);
}

function tagged(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([Uint8Array.from([tag, ...lengthBytes(length)]), ...parts]);
}

function lengthBytes(length: number): number[] {
  if (length < 0x80) return [length];
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return [0x80 | bytes.length, ...bytes];
}

function base128(value: number): number[] {
  const bytes = [value & 0x7f];
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) bytes.unshift(0x80 | (rest & 0x7f));
  return bytes;
}

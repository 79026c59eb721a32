// Reads DER values (X.690). Pure; throws on bytes that are no DER, and reads nothing outside of what it was given.

export interface DerValue {
  readonly tag: number;
  readonly content: Buffer;
}

export const tags = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectIdentifier: 0x06,
  sequence: 0x30,
  set: 0x31,
} as const;

/** The values that lie in these bytes one after the other. */
export function readValues(bytes: Buffer): DerValue[] {
  const values: DerValue[] = [];
  for (let at = 0; at < bytes.length; ) {
    const { value, end } = readAt(bytes, at);
    values.push(value);
    at = end;
  }
  return values;
}

/** The one value of this type that the bytes are. */
export function readOnly(bytes: Buffer, tag: number): Buffer {
  const values = readValues(bytes);
  if (values.length !== 1) throw new Error(`DER: ${values.length} values, expected one`);
  return contentOf(values[0], tag);
}

export function contentOf(value: DerValue | undefined, tag: number): Buffer {
  if (value?.tag !== tag) throw new Error(`DER: tag ${value?.tag}, expected ${tag}`);
  return value.content;
}

function readAt(bytes: Buffer, at: number): { value: DerValue; end: number } {
  const tag = byteAt(bytes, at);
  if ((tag & 0x1f) === 0x1f) throw new Error('DER: tag of several bytes');
  const first = byteAt(bytes, at + 1);
  let start = at + 2;
  let length = first;
  if (first >= 0x80) {
    const count = first & 0x7f;
    if (count === 0 || count > 4) throw new Error('DER: length of no use');
    length = 0;
    for (const end = start + count; start < end; start += 1) length = length * 256 + byteAt(bytes, start);
  }
  const end = start + length;
  if (end > bytes.length) throw new Error('DER: value longer than its bytes');
  return { value: { tag, content: bytes.subarray(start, end) }, end };
}

function byteAt(bytes: Buffer, at: number): number {
  const byte = bytes[at];
  if (byte === undefined) throw new Error('DER: ends too early');
  return byte;
}

/** Dotted text such as `2.5.4.3`. */
export function objectIdentifierIn(content: Buffer): string {
  const parts: number[] = [];
  let part = 0;
  for (const byte of content) {
    part = part * 128 + (byte & 0x7f);
    if (byte >= 0x80) continue;
    if (parts.length === 0)
      parts.push(Math.min(2, Math.floor(part / 40)), part - 40 * Math.min(2, Math.floor(part / 40)));
    else parts.push(part);
    part = 0;
  }
  return parts.join('.');
}

/** A small number; Infinity if it is implausibly large. */
export function smallInteger(content: Buffer): number {
  return content.length > 4 ? Number.POSITIVE_INFINITY : content.readUIntBE(0, content.length);
}

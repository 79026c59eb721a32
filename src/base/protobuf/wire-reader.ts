// Reads protobuf's wire format from untrusted bytes: every read is checked against the end, and a failed check throws
// a MalformedError. The caller interprets the fields.

export const wireTypes = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

const wireNames: Readonly<Record<number, string>> = { 0: 'varint', 1: '64-bit', 2: 'length-delimited', 5: '32-bit' };

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** `path` grows from the inside out while the error passes the fields that contain it. */
export class MalformedError extends Error {
  readonly path: string[] = [];
}

export interface WireOptions {
  readonly start?: number;
  readonly end?: number;
  /** How many fields and items may be read, with those of nested messages; as many as there are when absent. */
  readonly valuesMax?: number;
}

export class WireReader {
  private readonly bytes: Uint8Array;
  private position: number;
  private readonly end: number;
  /** Shared with the readers of nested messages. */
  private readonly values: { left: number };

  constructor(
    bytes: Uint8Array,
    options: WireOptions = {},
    values = { left: options.valuesMax ?? Number.POSITIVE_INFINITY },
  ) {
    this.bytes = bytes;
    this.position = options.start ?? 0;
    this.end = options.end ?? bytes.length;
    this.values = values;
  }

  /** Asked before each field and each item of a packed list. */
  hasMore(): boolean {
    if (this.position >= this.end) return false;
    if (--this.values.left < 0) throw new MalformedError('it has too many fields; split it into several objects');
    return true;
  }

  /** Field number and wire type of the next field. */
  tag(): { number: number; wireType: number } {
    const tag = this.unsigned();
    const number = Math.floor(tag / 8);
    if (number < 1 || number > 0x1fffffff) throw new MalformedError(`${number} is not a field number`);
    return { number, wireType: tag % 8 };
  }

  /** Exact below 2^53; what is above is too large for any tag or length anyway. */
  private unsigned(): number {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw tooLongVarint();
  }

  int32(): number {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.byte();
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw tooLongVarint();
  }

  int64(): number {
    const start = this.position;
    const value = this.unsigned();
    if (value <= Number.MAX_SAFE_INTEGER) return value;
    this.position = start;
    return Number(this.bigint());
  }

  /** A signed integer of 64 bits with all its digits. */
  bigint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.byte();
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asIntN(64, value);
    }
    throw tooLongVarint();
  }

  bool(): boolean {
    return this.unsigned() !== 0;
  }

  double(): number {
    const start = this.take(8);
    return new DataView(this.bytes.buffer, this.bytes.byteOffset + start, 8).getFloat64(0, true);
  }

  float(): number {
    const start = this.take(4);
    return new DataView(this.bytes.buffer, this.bytes.byteOffset + start, 4).getFloat32(0, true);
  }

  /** A copy-free view of the next length-delimited value. */
  slice(): Uint8Array {
    const length = this.length();
    const start = this.take(length);
    return this.bytes.subarray(start, start + length);
  }

  /** A reader of the next length-delimited value. */
  nested(): WireReader {
    const length = this.length();
    const start = this.take(length);
    return new WireReader(this.bytes, { start, end: start + length }, this.values);
  }

  string(): string {
    try {
      return utf8.decode(this.slice());
    } catch (error) {
      if (error instanceof MalformedError) throw error;
      throw new MalformedError('a string is not UTF-8');
    }
  }

  skip(wireType: number): void {
    if (wireType === wireTypes.varint) this.unsigned();
    else if (wireType === wireTypes.bytes) this.take(this.length());
    else if (wireType === wireTypes.fixed64) this.take(8);
    else if (wireType === wireTypes.fixed32) this.take(4);
    else throw new MalformedError(`wire type ${wireType} is not in use`);
  }

  private length(): number {
    const length = this.unsigned();
    const left = this.end - this.position;
    if (length > left) throw new MalformedError(`a value of ${length} bytes is announced, ${left} are left`);
    return length;
  }

  private byte(): number {
    return this.bytes[this.take(1)]!;
  }

  private take(count: number): number {
    const start = this.position;
    if (count > this.end - start) throw new MalformedError('it ends in the middle of a value');
    this.position = start + count;
    return start;
  }
}

function tooLongVarint(): MalformedError {
  return new MalformedError('a varint goes on for more than ten bytes');
}

export function expectWireType(found: number, expected: number): void {
  if (found === expected) return;
  const name = (wireType: number) => wireNames[wireType] ?? String(wireType);
  throw new MalformedError(`a ${name(expected)} value is expected, a ${name(found)} one found`);
}

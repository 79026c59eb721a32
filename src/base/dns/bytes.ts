// Small writer and reader of packed values: big-endian numbers, strings with their length. No schema, no allocation per field.

import { copyOf } from '../bytes/copy.ts';
import { hashStart, mixHash, type RememberedTexts } from '../text/remembered-texts.ts';

export class ByteWriter {
  #bytes: Uint8Array<ArrayBuffer>;
  /** By length. */
  #views: Uint8Array[] = [];
  length = 0;

  constructor(size = 256) {
    this.#bytes = new Uint8Array(size);
  }

  reset(): this {
    this.length = 0;
    return this;
  }

  u8(value: number): this {
    this.#grow(1);
    this.#bytes[this.length++] = value;
    return this;
  }

  u16(value: number): this {
    return this.u8(value >> 8).u8(value);
  }

  u32(value: number): this {
    return this.u16(value >>> 16).u16(value & 0xffff);
  }

  /** A whole number up to 2^53, such as milliseconds. */
  u48(value: number): this {
    return this.u16(Math.floor(value / 0x1_0000_0000)).u32(value % 0x1_0000_0000);
  }

  raw(bytes: Uint8Array): this {
    this.#grow(bytes.length);
    this.#bytes.set(bytes, this.length);
    this.length += bytes.length;
    return this;
  }

  /** Up to 255 bytes, cut there: names and labels never are that long. */
  text(value: string): this {
    const length = value.length;
    this.#grow(length + 1);
    const start = this.length;
    for (let i = 0; i < length; i++) {
      const code = value.charCodeAt(i);
      if (code > 127 || length > 255) return this.#longText(value);
      this.#bytes[start + 1 + i] = code;
    }
    this.#bytes[start] = length;
    this.length += length + 1;
    return this;
  }

  #longText(value: string): this {
    const bytes = Buffer.from(value).subarray(0, 255);
    return this.u8(bytes.length).raw(bytes);
  }

  setU16(at: number, value: number): void {
    this.#bytes[at] = value >> 8;
    this.#bytes[at + 1] = value;
  }

  setU32(at: number, value: number): void {
    this.setU16(at, value >>> 16);
    this.setU16(at + 2, value & 0xffff);
  }

  /** A view, good until the next write. Short ones are made once: a view costs more than filling it. */
  view(): Uint8Array {
    if (this.length >= shortViewBytes) return this.#bytes.subarray(0, this.length);
    return (this.#views[this.length] ??= this.#bytes.subarray(0, this.length));
  }

  copy(): Uint8Array<ArrayBuffer> {
    return copyOf(this.#bytes, 0, this.length);
  }

  #grow(more: number): void {
    if (this.length + more <= this.#bytes.length) return;
    const bigger = new Uint8Array(Math.max(2 * this.#bytes.length, this.length + more));
    bigger.set(this.#bytes);
    this.#bytes = bigger;
    this.#views = [];
  }
}

const shortViewBytes = 256;
const shortBytes = 16;

/** Reads fastest from a Buffer. */
export class ByteReader {
  at: number;
  readonly #bytes: Uint8Array;
  readonly #texts: RememberedTexts | undefined;

  constructor(bytes: Uint8Array, at = 0, texts?: RememberedTexts) {
    this.#bytes = bytes;
    this.at = at;
    this.#texts = texts;
  }

  get isAtEnd(): boolean {
    return this.at >= this.#bytes.length;
  }

  u8(): number {
    return this.#bytes[this.at++]!;
  }

  u16(): number {
    return (this.u8() << 8) | this.u8();
  }

  u32(): number {
    return ((this.u16() << 16) | this.u16()) >>> 0;
  }

  u48(): number {
    return this.u16() * 0x1_0000_0000 + this.u32();
  }

  raw(length: number): Uint8Array {
    const start = this.at;
    this.at += length;
    if (length > shortBytes) return copyOf(this.#bytes, start, this.at);
    // For an address a loop is several times as fast.
    const copy = new Uint8Array(length);
    for (let i = 0; i < length; i++) copy[i] = this.#bytes[start + i]!;
    return copy;
  }

  text(): string {
    const length = this.u8();
    const start = this.at;
    this.at += length;
    if (length === 0) return '';
    let hash = hashStart;
    let all = 0;
    for (let i = start; i < this.at; i++) {
      hash = mixHash(hash, this.#bytes[i]!);
      all |= this.#bytes[i]!;
    }
    const buffer = this.#buffer();
    if (all > 127) return buffer.toString('utf8', start, this.at);
    return this.#texts ? this.#texts.text(buffer, start, this.at, hash) : buffer.toString('latin1', start, this.at);
  }

  // Shared memory cannot be decoded by TextDecoder.
  #buffer(): Buffer {
    const bytes = this.#bytes;
    return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
}

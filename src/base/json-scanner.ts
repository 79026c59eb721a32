// Reads JSON where it lies, as bytes, and makes values only of what its user asks for: of a long list of large
// objects that costs half of JSON.parse, and leaves next to no garbage. Skipped values are scanned only to find their
// end. Text it cannot be sure of is a JsonScanError; JSON.parse then has the word.

import { hashStart, mixHash, RememberedTexts } from './text/remembered-texts.ts';

export class JsonScanError extends Error {}

const char = {
  quote: 0x22,
  comma: 0x2c,
  colon: 0x3a,
  openArray: 0x5b,
  backslash: 0x5c,
  closeArray: 0x5d,
  openObject: 0x7b,
  closeObject: 0x7d,
} as const;

/** So many decimal digits always fit into a number whole. */
const exactDigits = 15;

/** One pass over one text: after entering an object or an array, the caller must read all of it. */
export class JsonScanner {
  /** Where the next byte is read; between values, where the next one may begin. */
  at = 0;
  readonly #bytes: Buffer;
  readonly #texts: RememberedTexts;
  /** Nothing has been read yet of the object or array that was entered last. */
  #isFirst = true;
  #keyStart = 0;
  #keyEnd = 0;

  /** Short texts come again and again; scanners that share `texts` make each of them once. */
  constructor(bytes: Uint8Array, texts: RememberedTexts = new RememberedTexts()) {
    this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#texts = texts;
  }

  /** Steps into an object; a value of another kind is skipped. */
  enterObject(): boolean {
    return this.#enter(char.openObject);
  }

  enterArray(): boolean {
    return this.#enter(char.openArray);
  }

  /** Moves on to the value of the next key; false behind the last one. */
  nextKey(): boolean {
    if (!this.#next(char.closeObject)) return false;
    if (this.#bytes[this.at] !== char.quote) this.#fail('expected a key');
    this.#keyStart = this.at + 1;
    this.#keyEnd = this.#endOfText(this.#keyStart);
    this.at = this.#keyEnd + 1;
    if (this.#skipSpace() !== char.colon) this.#fail('expected a colon');
    this.at += 1;
    return true;
  }

  isKey(key: Uint8Array): boolean {
    const start = this.#keyStart;
    if (this.#keyEnd - start !== key.length) return false;
    for (let i = 0; i < key.length; i++) if (this.#bytes[start + i] !== key[i]) return false;
    return true;
  }

  /** Moves on to the next item; false behind the last one. */
  nextItem(): boolean {
    return this.#next(char.closeArray);
  }

  /** Undefined for a value of another kind, which is skipped; so do the next two. */
  text(): string | undefined {
    if (this.#skipSpace() !== char.quote) return this.#other();
    const start = this.at + 1;
    const bytes = this.#bytes;
    let hash = hashStart;
    let all = 0;
    let end = start;
    for (let byte = bytes[end]!; byte !== char.quote; byte = bytes[++end]!) {
      if (byte === char.backslash || byte === undefined) return this.#escapedText();
      hash = mixHash(hash, byte);
      all |= byte;
    }
    this.at = end + 1;
    this.#isFirst = false;
    return all > 127 ? bytes.toString('utf8', start, end) : this.#texts.text(bytes, start, end, hash);
  }

  number(): number | undefined {
    const first = this.#skipSpace();
    const start = this.at;
    this.skip();
    if (first !== 0x2d && !isDigit(first)) return undefined;
    let value = 0;
    for (let i = start; i < this.at; i++) {
      const byte = this.#bytes[i]!;
      // With more digits the sum would be rounded at each step.
      if (!isDigit(byte) || i - start >= exactDigits) return Number(this.#bytes.toString('latin1', start, this.at));
      value = 10 * value + byte - 0x30;
    }
    return value;
  }

  boolean(): boolean | undefined {
    const first = this.#skipSpace();
    this.skip();
    return first === 0x74 ? true : first === 0x66 ? false : undefined;
  }

  /** Any value. */
  skip(): void {
    const bytes = this.#bytes;
    const first = this.#skipSpace();
    this.#isFirst = false;
    if (first === char.quote) this.at = this.#endOfAnyText(this.at + 1) + 1;
    else if (first === char.openObject || first === char.openArray) this.#skipNested();
    else {
      const start = this.at;
      while (isScalar(bytes[this.at]!)) this.at += 1;
      if (this.at === start) this.#fail('expected a value');
    }
  }

  /** Nothing may follow but space. */
  end(): void {
    const { length } = this.#bytes;
    // A read behind the end, once, would make every later read of `#skipSpace` slower.
    while (this.at < length && this.#bytes[this.at]! <= 0x20) this.at += 1;
    if (this.at < length) this.#fail('expected the end');
  }

  #enter(open: number): boolean {
    if (this.#skipSpace() !== open) {
      this.skip();
      return false;
    }
    this.at += 1;
    this.#isFirst = true;
    return true;
  }

  #next(close: number): boolean {
    const byte = this.#skipSpace();
    if (byte === close) {
      this.at += 1;
      this.#isFirst = false;
      return false;
    }
    if (this.#isFirst) return true;
    if (byte !== char.comma) this.#fail('expected a comma or the end');
    this.at += 1;
    this.#skipSpace();
    return true;
  }

  #skipSpace(): number {
    const bytes = this.#bytes;
    let at = this.at;
    while (bytes[at]! <= 0x20) at += 1;
    this.at = at;
    return bytes[at]!;
  }

  /** Keys with escapes are left to others: they might be the ones that are looked for. */
  #endOfText(start: number): number {
    const bytes = this.#bytes;
    let end = start;
    for (let byte = bytes[end]!; byte !== char.quote; byte = bytes[++end]!) {
      if (byte === char.backslash || byte === undefined) this.#fail('expected a plain text');
    }
    return end;
  }

  #endOfAnyText(start: number): number {
    const bytes = this.#bytes;
    let end = start;
    for (let byte = bytes[end]!; byte !== char.quote; byte = bytes[++end]!) {
      if (byte === char.backslash) end += 1;
      else if (byte === undefined) this.#fail('expected the end of a text');
    }
    return end;
  }

  #skipNested(): void {
    const bytes = this.#bytes;
    let depth = 0;
    let at = this.at;
    do {
      const byte = bytes[at]!;
      if (byte === char.quote) at = this.#endOfAnyText(at + 1);
      else if (byte === char.openObject || byte === char.openArray) depth += 1;
      else if (byte === char.closeObject || byte === char.closeArray) depth -= 1;
      else if (byte === undefined) this.#fail('expected the end of an object or array');
      at += 1;
    } while (depth > 0);
    this.at = at;
  }

  #escapedText(): string {
    const start = this.at;
    this.skip();
    try {
      return JSON.parse(this.#bytes.toString('utf8', start, this.at)) as string;
    } catch {
      return this.#fail('expected a text');
    }
  }

  #other(): undefined {
    this.skip();
    return undefined;
  }

  #fail(what: string): never {
    throw new JsonScanError(`JSON at byte ${this.at}: ${what}`);
  }
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

/** Part of a number, true, false or null. */
function isScalar(byte: number): boolean {
  return (
    isDigit(byte) || (byte >= 0x61 && byte <= 0x7a) || byte === 0x2d || byte === 0x2b || byte === 0x2e || byte === 0x45
  );
}

// Whole DNS messages as values, for everything that is not the query path: updates, zone transfers, tools. Names in
// records come out uncompressed, so that rdata can be compared. Unreadable input throws a MessageError.

import { copyOf } from '../bytes/copy.ts';
import { ByteWriter } from './bytes.ts';
import { decodeName, encodeName, lowerCase } from './name.ts';

interface Question {
  readonly name: string;
  readonly type: number;
  readonly class: number;
}

export interface ResourceRecord {
  /** Lower case, without a trailing dot. */
  readonly name: string;
  readonly type: number;
  readonly class: number;
  readonly ttl: number;
  readonly rdata: Uint8Array;
}

export interface Message {
  readonly id: number;
  readonly flags: number;
  readonly questions: readonly Question[];
  readonly answers: readonly ResourceRecord[];
  readonly authorities: readonly ResourceRecord[];
  readonly additionals: readonly ResourceRecord[];
}

class MessageError extends Error {}

const headerBytes = 12;

export function encodeMessage(message: Message): Uint8Array {
  const writer = new ByteWriter(512);
  const known = new Map<string, number>();
  writer.u16(message.id).u16(message.flags);
  const sections = [message.answers, message.authorities, message.additionals];
  writer.u16(message.questions.length);
  for (const section of sections) writer.u16(section.length);
  for (const question of message.questions) {
    writeName(writer, question.name, known);
    writer.u16(question.type).u16(question.class);
  }
  for (const record of sections.flat()) {
    writeName(writer, record.name, known);
    writer.u16(record.type).u16(record.class).u32(record.ttl).u16(record.rdata.length).raw(record.rdata);
  }
  return writer.copy();
}

/** Owners are compressed against owners before them; rdata is written as it is. */
function writeName(writer: ByteWriter, name: string, known: Map<string, number>): void {
  const bytes = encodeName(name);
  for (let at = 0; bytes[at] !== 0; at += bytes[at]! + 1) {
    const suffix = Buffer.from(bytes.subarray(at)).toString('latin1');
    const pointer = known.get(suffix);
    if (pointer !== undefined) {
      writer.u16(0xc000 | pointer);
      return;
    }
    if (writer.length < 0x4000) known.set(suffix, writer.length);
    writer.raw(bytes.subarray(at, at + bytes[at]! + 1));
  }
  writer.u8(0);
}

export function decodeMessage(bytes: Uint8Array): Message {
  if (bytes.length < headerBytes) throw new MessageError(`message: ${bytes.length} bytes are no header`);
  const reader = new MessageReader(bytes);
  const id = reader.u16();
  const flags = reader.u16();
  const counts = [reader.u16(), reader.u16(), reader.u16(), reader.u16()] as const;
  const questions = repeat(counts[0], () => ({ name: reader.name(), type: reader.u16(), class: reader.u16() }));
  const section = (count: number) => repeat(count, () => reader.record());
  return {
    id,
    flags,
    questions,
    answers: section(counts[1]),
    authorities: section(counts[2]),
    additionals: section(counts[3]),
  };
}

/** The same, or undefined for a message that cannot be read. */
export function tryDecodeMessage(bytes: Uint8Array): Message | undefined {
  try {
    return decodeMessage(bytes);
  } catch (error) {
    if (error instanceof MessageError) return undefined;
    throw error;
  }
}

function repeat<T>(count: number, make: () => T): T[] {
  const items: T[] = [];
  for (let i = 0; i < count; i++) items.push(make());
  return items;
}

/** Types whose rdata is made of names, and how many bytes stand before, how many names follow, and how many bytes behind. */
const namesInData: Readonly<Record<number, { before: number; names: number; after: number }>> = {
  2: { before: 0, names: 1, after: 0 },
  5: { before: 0, names: 1, after: 0 },
  6: { before: 0, names: 2, after: 20 },
  12: { before: 0, names: 1, after: 0 },
  15: { before: 2, names: 1, after: 0 },
  33: { before: 6, names: 1, after: 0 },
};

const jumpsMax = 64;

class MessageReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  u16(): number {
    this.#need(2);
    const value = (this.#bytes[this.#at]! << 8) | this.#bytes[this.#at + 1]!;
    this.#at += 2;
    return value;
  }

  u32(): number {
    return this.u16() * 0x10000 + this.u16();
  }

  raw(length: number): Uint8Array {
    this.#need(length);
    return copyOf(this.#bytes, this.#at, (this.#at += length));
  }

  name(): string {
    return decodeName(this.#nameBytes());
  }

  record(): ResourceRecord {
    const name = this.name();
    const [type, recordClass, ttl, length] = [this.u16(), this.u16(), this.u32(), this.u16()];
    this.#need(length);
    const end = this.#at + length;
    const rdata = this.#rdata(type, length);
    if (this.#at !== end) throw new MessageError(`message: rdata of ${name} does not end where it should`);
    return { name, type, class: recordClass, ttl, rdata };
  }

  #rdata(type: number, length: number): Uint8Array {
    const shape = namesInData[type];
    if (!shape || length === 0) return this.raw(length);
    const parts = [this.raw(shape.before)];
    for (let i = 0; i < shape.names; i++) parts.push(this.#nameBytes());
    parts.push(this.raw(shape.after));
    return Buffer.concat(parts);
  }

  /** Uncompressed and in lower case. */
  #nameBytes(): Uint8Array {
    const name = new ByteWriter(64);
    let at = this.#at;
    let end = -1;
    for (let jumps = 0; ; ) {
      const size = this.#bytes[at];
      if (size === undefined) throw new MessageError('message: a name runs over its end');
      if ((size & 0xc0) === 0xc0) {
        const low = this.#bytes[at + 1];
        if (low === undefined || ++jumps > jumpsMax) throw new MessageError('message: a name points in a circle');
        if (end < 0) end = at + 2;
        at = ((size & 0x3f) << 8) | low;
        continue;
      }
      if (size > 63 || name.length + size + 1 > 255) throw new MessageError('message: a name is too long');
      if (at + size >= this.#bytes.length) throw new MessageError('message: a name runs over its end');
      name.u8(size);
      for (let i = at + 1; i <= at + size; i++) name.u8(lowerCase[this.#bytes[i]!]!);
      at += size + 1;
      if (size === 0) break;
    }
    this.#at = end < 0 ? at : end;
    return name.copy();
  }

  #need(length: number): void {
    if (this.#at + length > this.#bytes.length) throw new MessageError('message: it ends too early');
  }
}

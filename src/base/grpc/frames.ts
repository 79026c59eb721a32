// gRPC's framing: one flag byte, four bytes of length, then the message. Pure; a reader keeps what has not ended yet.
// A message that is too large is never held: its beginning is handed over and the rest skipped, so that one bad message
// need not end the stream.

import { unpack } from './transport-encodings.ts';

class FrameError extends Error {}

export interface FrameReaderOptions {
  readonly messageBytesMax: number;
  /** Whether the sender said that it compresses its messages by gzip. Never by default. */
  readonly isGzip?: () => boolean;
  /** Told of each message that was too large, with its beginning. Without it such a message is an error. */
  readonly onOversized?: (oversized: { readonly length: number; readonly beginning: Buffer }) => void;
}

interface Skipping {
  readonly length: number;
  readonly beginning: Buffer[];
  beginningBytes: number;
  remaining: number;
}

const headerBytes = 5;
const beginningBytesMax = 4096;
/** Beyond this, skipping costs more than a new stream. */
const skippedBytesMax = 64 * 1024 * 1024;
const nothing = Buffer.alloc(0);

export function frameOf(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(headerBytes + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, headerBytes);
  return frame;
}

export class FrameReader {
  readonly #options: FrameReaderOptions;
  #chunks: Buffer[] = [];
  #length = 0;
  #skipping: Skipping | undefined;

  constructor(options: FrameReaderOptions) {
    this.#options = options;
  }

  /** The messages that this chunk completes. Throws FrameError when the sender breaks the rules. */
  read(chunk: Buffer): Buffer[] {
    const fresh = this.#skipping === undefined ? chunk : this.#skip(chunk, this.#skipping);
    if (fresh.length === 0) return [];
    this.#chunks.push(fresh);
    this.#length += fresh.length;
    if (this.#length < this.#needed()) return [];
    let rest = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks, this.#length);
    const messages: Buffer[] = [];
    while (rest.length >= headerBytes) {
      const length = this.#lengthOf(rest);
      if (length > this.#options.messageBytesMax) {
        rest = this.#beginSkipping(length, rest.subarray(headerBytes));
      } else if (rest.length < headerBytes + length) {
        break;
      } else {
        const message = rest.subarray(headerBytes, headerBytes + length);
        messages.push(rest[0] === 0 ? message : unpack(message, this.#options.messageBytesMax));
        rest = rest.subarray(headerBytes + length);
      }
    }
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#length = rest.length;
    return messages;
  }

  // Chunks are joined only when a message is whole, so a large one in many small chunks is copied once.
  #needed(): number {
    if (this.#length < headerBytes) return headerBytes;
    if ((this.#chunks[0] as Buffer).length < headerBytes) this.#chunks = [Buffer.concat(this.#chunks, this.#length)];
    const length = this.#lengthOf(this.#chunks[0] as Buffer);
    return length > this.#options.messageBytesMax ? headerBytes : headerBytes + length;
  }

  #lengthOf(header: Buffer): number {
    if (header[0] !== 0 && !(header[0] === 1 && this.#options.isGzip?.()))
      throw new FrameError('the message is compressed, which was not agreed');
    const length = header.readUInt32BE(1);
    const { messageBytesMax, onOversized } = this.#options;
    if (length > messageBytesMax && (onOversized === undefined || length > skippedBytesMax)) {
      throw new FrameError(`a message of ${length} bytes is larger than the ${messageBytesMax} allowed`);
    }
    return length;
  }

  #beginSkipping(length: number, chunk: Buffer): Buffer {
    this.#skipping = { length, beginning: [], beginningBytes: 0, remaining: length };
    return this.#skip(chunk, this.#skipping);
  }

  /** Takes what belongs to the message that is skipped; returns what comes after it. */
  #skip(chunk: Buffer, skipping: Skipping): Buffer {
    const part = chunk.subarray(0, skipping.remaining);
    skipping.remaining -= part.length;
    const wanted = Math.min(part.length, beginningBytesMax - skipping.beginningBytes);
    if (wanted > 0) skipping.beginning.push(Buffer.from(part.subarray(0, wanted)));
    skipping.beginningBytes += wanted;
    if (skipping.remaining > 0) return nothing;
    this.#skipping = undefined;
    this.#options.onOversized?.({ length: skipping.length, beginning: Buffer.concat(skipping.beginning) });
    return chunk.subarray(part.length);
  }
}

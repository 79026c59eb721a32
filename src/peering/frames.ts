// gRPC's framing: one flag byte, four bytes of length, then the message. Pure; a reader keeps what has not ended yet.

export class FrameError extends Error {
  readonly isTooLarge: boolean;
  constructor(message: string, isTooLarge: boolean) {
    super(message);
    this.isTooLarge = isTooLarge;
  }
}

const headerBytes = 5;

export function frameOf(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(headerBytes + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, headerBytes);
  return frame;
}

export class FrameReader {
  readonly #messageBytesMax: number;
  #chunks: Buffer[] = [];
  #length = 0;

  constructor(messageBytesMax: number) {
    this.#messageBytesMax = messageBytesMax;
  }

  /** The messages that this chunk completes. Throws FrameError when the sender breaks the rules. */
  read(chunk: Buffer): Buffer[] {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length < this.#needed()) return [];
    let rest = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks, this.#length);
    const messages: Buffer[] = [];
    while (rest.length >= headerBytes) {
      const length = this.#lengthOf(rest);
      if (rest.length < headerBytes + length) break;
      messages.push(rest.subarray(headerBytes, headerBytes + length));
      rest = rest.subarray(headerBytes + length);
    }
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#length = rest.length;
    return messages;
  }

  // Chunks are joined only when a message is whole, so a large one in many small chunks is copied once.
  #needed(): number {
    const first = this.#chunks[0] as Buffer;
    if (first.length >= headerBytes) return headerBytes + this.#lengthOf(first);
    if (this.#length < headerBytes) return headerBytes;
    this.#chunks = [Buffer.concat(this.#chunks, this.#length)];
    return headerBytes + this.#lengthOf(this.#chunks[0] as Buffer);
  }

  #lengthOf(header: Buffer): number {
    if (header[0] !== 0) throw new FrameError('the message is compressed, which was not agreed', false);
    const length = header.readUInt32BE(1);
    if (length > this.#messageBytesMax) {
      throw new FrameError(`a message of ${length} bytes is larger than the ${this.#messageBytesMax} allowed`, true);
    }
    return length;
  }
}

// DNS messages on a stream: two bytes of length before each (RFC 1035 section 4.2.2). Pure.

export function frameMessage(message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(2 + message.length);
  bytes.writeUInt16BE(message.length);
  bytes.set(message, 2);
  return bytes;
}

/** Cuts what a stream brings into messages. */
export class FrameReader {
  #pending: Buffer = Buffer.alloc(0);

  add(chunk: Buffer): void {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
  }

  /** The next whole message; undefined until more has been added. */
  next(): Buffer | undefined {
    if (this.#pending.length < 2) return undefined;
    const end = 2 + this.#pending.readUInt16BE(0);
    if (this.#pending.length < end) return undefined;
    const message = this.#pending.subarray(2, end);
    this.#pending = this.#pending.subarray(end);
    return message;
  }
}

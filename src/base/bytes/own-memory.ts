// Bytes that are kept for long. Node cuts small buffers (Buffer.from, allocUnsafe, concat) from blocks of 64 KiB, and a slice
// that is kept holds the whole block: a few hundred of them, made at different times, hold tens of megabytes.

/** The same bytes, in memory that holds nothing else. */
export function inOwnMemory(bytes: Buffer): Buffer {
  if (bytes.buffer.byteLength === bytes.length) return bytes;
  const own = Buffer.allocUnsafeSlow(bytes.length);
  own.set(bytes);
  return own;
}

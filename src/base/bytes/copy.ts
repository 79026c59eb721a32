// Copies of bytes. `slice` of a Buffer is a view of the same memory, and a Buffer passes for a Uint8Array: a message that was
// "copied" so changes with the original. A house test bans it for bytes.

/** A copy, whatever the kind of the original. */
export function copyOf(bytes: Uint8Array, start = 0, end = bytes.length): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes.subarray(start, end));
}

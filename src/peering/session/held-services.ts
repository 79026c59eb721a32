// The services of one owner that are on disk, as a session sees them. Kept once, by the store; a session reads it and
// remembers only what is still on its way there.

export interface HeldService {
  /** The one copy of its id that is kept. */
  readonly id: string;
  /** Hash of its content, by `hashText`; empty if the content differs from the owner's. */
  readonly hash: string;
  /** About what it takes in the home. */
  readonly bytes: number;
}

export interface HeldServices {
  readonly size: number;
  readonly bytes: number;
  get(id: string): HeldService | undefined;
  ids(): Iterable<string>;
}

/** One byte for each character: the smallest form to keep many of them in. */
export function hashText(hash: Uint8Array): string {
  return Buffer.from(hash.buffer, hash.byteOffset, hash.length).toString('latin1');
}

export function hashBytes(text: string): Uint8Array {
  return Buffer.from(text, 'latin1');
}

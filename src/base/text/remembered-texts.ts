// Short texts that come again and again in bytes, each made into a string once: a string made anew costs a call out of
// JavaScript, and garbage. Forgets a text when another takes its place; never wrong, at most slow.

/** A power of two. */
const places = 512;
const lengthMax = 32;

/** Start of a hash over bytes; `mixHash` adds one. */
export const hashStart = 0;

export function mixHash(hash: number, byte: number): number {
  return Math.imul(hash ^ byte, 0x01000193);
}

export class RememberedTexts {
  readonly #texts: string[] = new Array(places).fill('');

  /** The ASCII text in these bytes, whose hash is known. */
  text(bytes: Buffer, start: number, end: number, hash: number): string {
    if (end - start > lengthMax) return bytes.toString('latin1', start, end);
    const place = (hash >>> 5) & (places - 1);
    const known = this.#texts[place]!;
    if (isText(known, bytes, start, end)) return known;
    return (this.#texts[place] = bytes.toString('latin1', start, end));
  }
}

function isText(text: string, bytes: Buffer, start: number, end: number): boolean {
  if (text.length !== end - start) return false;
  for (let i = start; i < end; i++) if (bytes[i] !== text.charCodeAt(i - start)) return false;
  return true;
}

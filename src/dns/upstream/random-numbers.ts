// Unpredictable numbers of 16 bits, drawn from the world many at a time: one draw costs as much as a whole answer.

import type { Random } from '../../base/world.ts';

const bytesPerDraw = 1024;

export class RandomNumbers {
  readonly #random: Pick<Random, 'bytes'>;
  #bytes: Uint8Array = new Uint8Array(0);
  #at = 0;

  constructor(random: Pick<Random, 'bytes'>) {
    this.#random = random;
  }

  next(): number {
    if (this.#at + 2 > this.#bytes.length) {
      this.#bytes = this.#random.bytes(bytesPerDraw);
      this.#at = 0;
    }
    const value = (this.#bytes[this.#at]! << 8) | this.#bytes[this.#at + 1]!;
    this.#at += 2;
    return value;
  }
}

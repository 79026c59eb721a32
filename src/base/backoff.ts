// Exponential delays with jitter, for anything that is tried again. Pure but for the random it is given.

import type { Random } from './world.ts';

export interface BackoffOptions {
  readonly firstMs: number;
  readonly delayMsMax: number;
}

export class Backoff {
  readonly #random: Random;
  readonly #options: BackoffOptions;
  #failures = 0;

  constructor(random: Random, options: BackoffOptions) {
    this.#random = random;
    this.#options = options;
  }

  get failures(): number {
    return this.#failures;
  }

  /** The delay before the next try: between half and all of the exponential step. */
  nextMs(): number {
    const step = Math.min(this.#options.delayMsMax, this.#options.firstMs * 2 ** Math.min(this.#failures, 30));
    this.#failures += 1;
    return step * (0.5 + this.#random.float() / 2);
  }

  reset(): void {
    this.#failures = 0;
  }
}

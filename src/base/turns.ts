// Shares the event loop out: long work asks for a turn before each piece, and what was asked for while the loop is
// held waits for the next one. Each turn admits one waiting caller. A piece should take a few milliseconds. Pure work is
// written as a generator that yields after each piece; its caller decides whether the event loop turns there.

import type { Clock, Timers } from './world.ts';

/** So long the pieces of one turn may take together before others wait. Under a virtual clock nothing ever waits. */
const turnMs = 8;

export class Turns {
  readonly #clock: Clock;
  readonly #timers: Timers;
  readonly #waiting: (() => void)[] = [];
  /** When the first piece of this turn began; undefined when none did. */
  #sinceMs: number | undefined;

  constructor(world: { readonly clock: Clock; readonly timers: Timers }) {
    this.#clock = world.clock;
    this.#timers = world.timers;
  }

  /** Resolves when the next piece may run: at once, or in a later turn of the event loop. */
  async next(): Promise<void> {
    if (this.#sinceMs === undefined) return this.#begin();
    // The caller admitted before runs first, because its time counts.
    await undefined;
    if (this.#waiting.length === 0 && !this.#isOver()) return;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #isOver(): boolean {
    return this.#sinceMs !== undefined && this.#clock.monotonicMs() - this.#sinceMs >= turnMs;
  }

  #begin(): void {
    this.#sinceMs = this.#clock.monotonicMs();
    this.#timers.after(0, () => this.#end());
  }

  #end(): void {
    this.#sinceMs = undefined;
    const next = this.#waiting.shift();
    if (next === undefined) return;
    this.#begin();
    next();
  }
}

export type Pieces<T> = Generator<void, T, void>;

/** `step` is awaited after each piece but the last. */
export async function inSteps<T>(pieces: Pieces<T>, step: () => Promise<void> | undefined): Promise<T> {
  for (;;) {
    const { done, value } = pieces.next();
    if (done) return value;
    await step();
  }
}

export function inOneGo<T>(pieces: Pieces<T>): T {
  for (;;) {
    const { done, value } = pieces.next();
    if (done) return value;
  }
}

// How many lines a peer can make us log: a few at once, then a few in a minute; what was left out is counted and said with
// the next line. Pure, with time passed in.

import type { Clock } from './world.ts';

const linesMax = 20;
const perMs = 60_000;

export class LogBudget {
  readonly #clock: Clock;
  #sinceMs = 0;
  #lines = 0;
  #leftOut = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Fields to log beside the line; undefined if it is one too many. */
  take(): { readonly notLogged?: number } | undefined {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#sinceMs >= perMs) {
      this.#sinceMs = nowMs;
      this.#lines = 0;
    }
    this.#lines += 1;
    if (this.#lines > linesMax) {
      this.#leftOut += 1;
      return undefined;
    }
    const notLogged = this.#leftOut;
    this.#leftOut = 0;
    return notLogged === 0 ? {} : { notLogged };
  }
}

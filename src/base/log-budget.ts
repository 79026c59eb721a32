// How many lines a peer or a client can make us log: a few in a while; what was left out is counted and said with the next
// line. Pure, with time passed in.

import type { Clock } from './world.ts';

export interface LogBudgetOptions {
  readonly linesMax: number;
  readonly perMs: number;
}

const defaults: LogBudgetOptions = { linesMax: 20, perMs: 60_000 };

export class LogBudget {
  readonly #clock: Clock;
  readonly #options: LogBudgetOptions;
  #sinceMs = 0;
  #lines = 0;
  #leftOut = 0;

  constructor(clock: Clock, options: LogBudgetOptions = defaults) {
    this.#clock = clock;
    this.#options = options;
  }

  /** Fields to log beside the line; undefined if it is one too many. */
  take(): { readonly notLogged?: number } | undefined {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#sinceMs >= this.#options.perMs) {
      this.#sinceMs = nowMs;
      this.#lines = 0;
    }
    this.#lines += 1;
    if (this.#lines > this.#options.linesMax) {
      this.#leftOut += 1;
      return undefined;
    }
    const notLogged = this.#leftOut;
    this.#leftOut = 0;
    return notLogged === 0 ? {} : { notLogged };
  }
}

/** Errors that a packet can cause: the first is logged at once, then one in ten seconds. */
export const packetFaults: LogBudgetOptions = { linesMax: 1, perMs: 10_000 };

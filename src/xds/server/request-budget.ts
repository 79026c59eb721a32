// How many requests a proxy may send that answer nothing: subscriptions, and nonces that are not in flight. Answers to
// our own responses are free, because we decide how many there are. Pure, with time passed in.

const burst = 500;
const perSecond = 50;

export class RequestBudget {
  #left = burst;
  #atMs: number;

  constructor(nowMs: number) {
    this.#atMs = nowMs;
  }

  /** False when there were too many. */
  spend(nowMs: number): boolean {
    this.#left = Math.min(burst, this.#left + ((nowMs - this.#atMs) * perSecond) / 1000);
    this.#atMs = nowMs;
    this.#left -= 1;
    return this.#left >= 0;
  }
}

// Whether a server that is asked again and again still answers. It is lost when nothing was answered for a bound of time and
// at least one whole request failed, so that a process that stood still does not blame the server. Pure; times are monotonic.

export class Contact {
  readonly #boundMs: () => number;
  #answeredMs: number;
  #failures = 0;
  #askedMs: number | undefined;

  constructor(options: { readonly boundMs: () => number; readonly nowMs: number }) {
    this.#boundMs = options.boundMs;
    this.#answeredMs = options.nowMs;
  }

  asked(nowMs: number): void {
    this.#askedMs = nowMs;
  }

  answered(nowMs: number): void {
    this.#answeredMs = nowMs;
    this.#failures = 0;
    this.#askedMs = undefined;
  }

  failed(): void {
    this.#failures += 1;
    this.#askedMs = undefined;
  }

  silentMs(nowMs: number): number {
    return nowMs - this.#answeredMs;
  }

  /** For how long nothing was answered, once the server counts as lost; undefined before. */
  lostMs(nowMs: number): number | undefined {
    const silentMs = this.silentMs(nowMs);
    if (silentMs < this.#boundMs()) return undefined;
    const isWaiting = this.#askedMs !== undefined && nowMs - this.#askedMs >= waitingMs;
    return this.#failures >= 2 || (this.#failures === 1 && isWaiting) ? silentMs : undefined;
  }
}

/** A request counts as unanswered after this time, though it has not failed yet. */
const waitingMs = 1_000;

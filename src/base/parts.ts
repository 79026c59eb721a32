// Parts that were started, to be stopped in reverse: what was started last depends on what was started before it.

import { errorText, type Log } from './log.ts';

export class Parts {
  readonly #log: Log;
  readonly #stops: { readonly name: string; readonly stop: () => Promise<void> | void }[] = [];

  #isStopped = false;

  constructor(log: Log) {
    this.#log = log;
  }

  /** One that is ready only after the others were stopped is stopped at once: a start that failed leaves nothing. */
  add(name: string, stop: () => Promise<void> | void): void {
    if (this.#isStopped) void this.#stop(name, stop);
    else this.#stops.push({ name, stop });
  }

  /** Stops every part, also when one of them fails to. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const { name, stop } of this.#stops.splice(0).reverse()) await this.#stop(name, stop);
  }

  async #stop(name: string, stop: () => Promise<void> | void): Promise<void> {
    try {
      await stop();
    } catch (error) {
      this.#log.error('a part did not stop cleanly', { part: name, error: errorText(error) });
    }
  }
}

// Parts that were started, to be stopped in reverse: what was started last depends on what was started before it.

import { errorText, type Log } from './log.ts';

export class Parts {
  readonly #log: Log;
  readonly #stops: { readonly name: string; readonly stop: () => Promise<void> | void }[] = [];

  constructor(log: Log) {
    this.#log = log;
  }

  add(name: string, stop: () => Promise<void> | void): void {
    this.#stops.push({ name, stop });
  }

  /** Stops every part, also when one of them fails to. */
  async stop(): Promise<void> {
    for (const { name, stop } of this.#stops.splice(0).reverse()) {
      try {
        await stop();
      } catch (error) {
        this.#log.error('a part did not stop cleanly', { part: name, error: errorText(error) });
      }
    }
  }
}

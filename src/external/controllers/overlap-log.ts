// Logs each overlap once, as long as it lasts, and not more lines than somebody would read.

import type { Log } from '../../base/log.ts';
import { LogBudget } from '../../base/log-budget.ts';
import type { World } from '../../base/world.ts';

export class OverlapLog {
  readonly #log: Log;
  readonly #budget: LogBudget;
  /** By the key of the service. */
  readonly #texts = new Map<string, readonly string[]>();
  /** How many services have each text. */
  readonly #holders = new Map<string, number>();

  constructor(log: Log, world: Pick<World, 'clock'>) {
    this.#log = log;
    this.#budget = new LogBudget(world.clock);
  }

  /** The overlaps of one service, in place of those it had. */
  set(key: string, texts: readonly string[]): void {
    const before = this.#texts.get(key) ?? [];
    if (texts.length === 0) this.#texts.delete(key);
    else this.#texts.set(key, texts);
    for (const text of texts) {
      const count = this.#holders.get(text) ?? 0;
      this.#holders.set(text, count + 1);
      if (count > 0) continue;
      const fields = this.#budget.take();
      if (fields !== undefined) this.#log.warn(text, fields);
    }
    for (const text of before) {
      const count = this.#holders.get(text)! - 1;
      if (count === 0) this.#holders.delete(text);
      else this.#holders.set(text, count);
    }
  }
}

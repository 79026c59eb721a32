// A World for this folder's tests: a clock that moves only when told, timers that run then, and a fixed random.

import type { Timer } from '../../../base/world.ts';
import type { StoreOptions } from '../../open-store.ts';

interface Due {
  readonly atMs: number;
  readonly run: () => void;
}

export class TestWorld {
  #nowMs = 0;
  readonly #due = new Set<Due>();

  readonly world: StoreOptions['world'] = {
    clock: { wallMs: () => this.#nowMs, monotonicMs: () => this.#nowMs },
    timers: { after: (delayMs, run) => this.#after(delayMs, run) },
    random: { float: () => 0.5, bytes: (count) => new Uint8Array(count), uuid: () => 'none' },
  };

  get timerCount(): number {
    return this.#due.size;
  }

  /** Runs what is due on the way, in order. */
  advance(byMs: number): void {
    const untilMs = this.#nowMs + byMs;
    for (let next = this.#nextDue(untilMs); next !== undefined; next = this.#nextDue(untilMs)) {
      this.#due.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.run();
    }
    this.#nowMs = untilMs;
  }

  #after(delayMs: number, run: () => void): Timer {
    const due = { atMs: this.#nowMs + delayMs, run };
    this.#due.add(due);
    return { cancel: () => this.#due.delete(due) };
  }

  #nextDue(untilMs: number): Due | undefined {
    let next: Due | undefined;
    for (const due of this.#due) if (due.atMs <= untilMs && (next === undefined || due.atMs < next.atMs)) next = due;
    return next;
  }
}

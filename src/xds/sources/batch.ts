// Keys that something happened to, worked on once each, all of one turn together.

import type { Timer, Timers } from '../../base/world.ts';

export class Batch {
  readonly #keys = new Set<string>();
  readonly #timers: Timers;
  readonly #work: (keys: ReadonlySet<string>) => void;
  #timer: Timer | undefined;

  constructor(timers: Timers, work: (keys: ReadonlySet<string>) => void) {
    this.#timers = timers;
    this.#work = work;
  }

  add(key: string): void {
    this.#keys.add(key);
    this.#timer ??= this.#timers.after(0, () => this.flush());
  }

  flush(): void {
    this.stop();
    if (this.#keys.size === 0) return;
    const keys = new Set(this.#keys);
    this.#keys.clear();
    this.#work(keys);
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}

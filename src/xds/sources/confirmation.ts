// Whether the home still confirms what it said. While it is away, the last configuration goes on; but who may call may have
// been taken back meanwhile, so after a while nobody new is admitted by it.

import { repeat } from '../../base/repeat.ts';
import type { World } from '../../base/world.ts';

export interface ConfirmationOptions {
  readonly world: Pick<World, 'clock' | 'timers'>;
  /** Since when the home does not answer; undefined while it does. */
  readonly staleSinceMs: () => number | undefined;
  /** For how long what it said holds without it. */
  readonly holdsMs: number;
  readonly onChange: (isOver: boolean) => void;
}

const lookMs = 5000;

export class Confirmation {
  readonly #options: ConfirmationOptions;
  #isOver = false;
  readonly #stop: () => void;

  constructor(options: ConfirmationOptions) {
    this.#options = options;
    this.#stop = repeat(options.world.timers, { everyMs: lookMs }, () => this.#look());
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  stop(): void {
    this.#stop();
  }

  #look(): void {
    const { world, staleSinceMs, holdsMs, onChange } = this.#options;
    const sinceMs = staleSinceMs();
    const isOver = sinceMs !== undefined && world.clock.monotonicMs() - sinceMs >= holdsMs;
    if (isOver === this.#isOver) return;
    this.#isOver = isOver;
    onChange(isOver);
  }
}

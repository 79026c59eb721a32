// Does something again and again. A period begins when the work before it has ended, so work that takes long never overlaps
// itself. The work handles its own errors.

import type { Timer, Timers } from './world.ts';

export interface RepeatOptions {
  /** Asked anew before each wait. */
  readonly everyMs: number | (() => number);
  /** Before the first time; as long as the others if absent. */
  readonly firstMs?: number;
}

/** Returns how to end it: nothing begins afterwards, and work under way goes on to its end. */
export function repeat(timers: Timers, options: RepeatOptions, work: () => Promise<void> | void): () => void {
  const { everyMs } = options;
  const periodMs = () => (typeof everyMs === 'number' ? everyMs : everyMs());
  let isStopped = false;
  let timer: Timer;

  function wait(delayMs: number): void {
    if (!isStopped) timer = timers.after(delayMs, turn);
  }

  function turn(): void {
    const working = work();
    if (working === undefined) wait(periodMs());
    else void working.then(() => wait(periodMs()));
  }

  wait(options.firstMs ?? periodMs());
  return () => {
    isStopped = true;
    timer.cancel();
  };
}

// Errors that a packet can cause are logged, but not as fast as packets come: the first at once, then at most one line in a
// while that says how many there were.

import type { Clock } from '../../base/world.ts';

const everyMs = 10_000;

export function createFaultLog(options: {
  readonly clock: Clock;
  readonly write: (error: unknown, unsaid: number) => void;
}): (error: unknown) => void {
  let nextMs = Number.NEGATIVE_INFINITY;
  let unsaid = 0;
  return (error) => {
    const nowMs = options.clock.monotonicMs();
    if (nowMs < nextMs) {
      unsaid += 1;
      return;
    }
    nextMs = nowMs + everyMs;
    options.write(error, unsaid);
    unsaid = 0;
  };
}

// A value that others may replace, such as the content of a file: it is read again and again. What cannot be read, or is not
// good, leaves the earlier one, and is logged once.

import { isSameJson } from '../json.ts';
import { errorText, type Log } from '../log.ts';
import { repeat } from '../repeat.ts';
import type { World } from '../world.ts';

export interface FollowedValueOptions<T> {
  readonly world: Pick<World, 'timers'>;
  readonly log: Log;
  /** For the log: `certificate files`. */
  readonly what: string;
  readonly everyMs: number;
  /** The value at the start. */
  readonly first: T;
  readonly read: () => Promise<T>;
  /** Throws if the value cannot be used. */
  readonly onChange: (next: T) => Promise<void> | void;
}

/** Returns how to end it. */
export function followValue<T>(options: FollowedValueOptions<T>): () => void {
  const { world, log, what, everyMs, read, onChange } = options;
  let current = options.first;
  let lastProblem = '';
  let isStopped = false;

  async function look(): Promise<void> {
    try {
      const next = await read();
      if (isStopped) return;
      if (!isSameJson(next, current)) {
        await onChange(next);
        current = next;
        log.info(`${what} changed: the new content is in use`);
      }
      lastProblem = '';
    } catch (error) {
      const problem = errorText(error);
      if (problem !== lastProblem) log.warn(`${what}: the earlier content stays`, { error: problem });
      lastProblem = problem;
    }
  }

  const stop = repeat(world.timers, { everyMs }, look);
  return () => {
    isStopped = true;
    stop();
  };
}

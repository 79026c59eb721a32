// The World of a real process.

import { randomBytes, randomUUID } from 'node:crypto';
import type { World } from '../world.ts';
import { createRealDisk } from './disk.ts';
import { HttpClient } from './http-client.ts';

export function createRealWorld(): World {
  return {
    clock: { wallMs: () => Date.now(), monotonicMs: () => performance.now() },
    timers: { after },
    random: { float: () => Math.random(), bytes: (count) => randomBytes(count), uuid: () => randomUUID() },
    network: { http: (access) => new HttpClient(access) },
    disk: createRealDisk(),
  };
}

/** setTimeout counts in 32 bits: a longer delay would fire at once. */
const timeoutMsMax = 2 ** 31 - 1;

function after(delayMs: number, run: () => void): { cancel(): void } {
  // A timeout of 0 would be one of a millisecond, and Node warns of one that is over.
  if (delayMs <= 0) {
    const turn = setImmediate(run);
    return { cancel: () => clearImmediate(turn) };
  }
  const step = Math.min(delayMs, timeoutMsMax);
  const onEnd = () => (delayMs <= timeoutMsMax ? run() : (rest = after(delayMs - step, run)));
  let rest: { cancel(): void } | undefined;
  const timer = setTimeout(onEnd, step);
  return {
    cancel: () => {
      clearTimeout(timer);
      rest?.cancel();
    },
  };
}

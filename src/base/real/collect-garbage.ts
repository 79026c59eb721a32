// Gives memory back after a large piece of work, such as a first list: V8 by itself would keep what it needed at the peak.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options: object) => void;
  // Only the last resort also lets go of pages that are kept for the next time.
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

/** For a process that has done its large piece of work and from now on has little to do at a time: it stays small. */
export function stayCompact(): void {
  collectGarbage();
  // New objects have the little room that is left to them now; old ones may grow by a fifth before they are looked through.
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--heap-growing-percent=20');
}

/** Until then: it collects seldom, to be ready soon. */
export function growFreely(): void {
  setFlagsFromString('--heap-growing-percent=0');
}

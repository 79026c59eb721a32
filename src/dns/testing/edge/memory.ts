// For tests: what is really in use, after everything that can be collected has been.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export function memoryBytes(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

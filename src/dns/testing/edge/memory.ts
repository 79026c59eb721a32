// For tests: what is really in use, after everything that can be collected has been.

import { collectGarbage } from '../../../base/real/collect-garbage.ts';

export function memoryBytes(): number {
  collectGarbage();
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

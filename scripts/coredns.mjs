// CoreDNS, for comparison.
import { findGoProgram } from './go-program.mjs';

/** Its path, or why there is none. */
export function findCoredns() {
  return findGoProgram({ name: 'coredns', module: 'github.com/coredns/coredns', version: 'v1.15.0' });
}

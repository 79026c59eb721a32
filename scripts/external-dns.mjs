// external-dns, for comparison.
import { findGoProgram } from './go-program.mjs';

/** Its path, or why there is none. */
export function findExternalDns() {
  return findGoProgram({ name: 'external-dns', module: 'sigs.k8s.io/external-dns', version: 'v0.20.0' });
}

// Helm, for the chart's tests: the one beside the API server's binaries, the one on PATH, or one that Go builds once.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { findCommand } from './counterparts.mjs';
import { findGoProgram } from './go-program.mjs';

/** Its path, or why there is none. */
export function findHelm() {
  const beside = join(process.env.KUBEBUILDER_ASSETS ?? '/nowhere', 'helm');
  if (existsSync(beside)) return { path: beside };
  const path = findCommand('helm');
  return path === undefined
    ? findGoProgram({ name: 'helm', module: 'helm.sh/helm/v3/cmd/helm', version: 'v3.16.4' })
    : { path };
}

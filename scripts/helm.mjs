// Helm, for tests: the one beside the API server's binaries, the one on PATH, or one that Go builds once.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { findCommand } from './counterparts.mjs';
import { findGoProgram } from './go-program.mjs';

const versions = { 3: 'v3.22.0', 4: 'v4.3.1' };

/** Its path, or why there is none. */
export function findHelm() {
  const beside = join(process.env.KUBEBUILDER_ASSETS ?? '/nowhere', 'helm');
  if (existsSync(beside)) return { path: beside };
  const path = findCommand('helm');
  return path === undefined ? findHelmOf(3) : { path };
}

/** Of this major version: whatever else is on PATH has one of its own. */
export function findHelmOf(major) {
  return findGoProgram({ name: 'helm', module: `helm.sh/helm/v${major}/cmd/helm`, version: versions[major] });
}

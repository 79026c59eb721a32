// Writes deploy/manifests, deploy/chart and deploy/kustomize from the objects that the commands write. Run it after changing
// those; a test holds them together.

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deployFiles } from '../test/support/deploy-files.ts';

const folder = fileURLToPath(new URL('../deploy/', import.meta.url));

for (const [path, text] of deployFiles()) {
  mkdirSync(dirname(folder + path), { recursive: true });
  writeFileSync(folder + path, text);
}

// Writes deploy/manifests from the objects that the commands write. Run it after changing those; a test holds the two
// together.

import { writeFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { deployManifests } from '../src/clusterset/membership/deploy-manifests.ts';

for (const { name, says, manifests } of deployManifests()) {
  const head = says.map((line) => `# ${line}\n`).join('');
  const body = manifests.map(({ object }) => stringify(object)).join('---\n');
  writeFileSync(new URL(`../deploy/manifests/${name}`, import.meta.url), head + body);
}

// Writes docs/kinds from the definitions in deploy/crds. Run it after changing those; a test holds them together.

import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { kindPages } from './kind-pages.ts';

const folder = fileURLToPath(new URL('../docs/kinds/', import.meta.url));
for (const [name, text] of kindPages()) writeFileSync(folder + name, text);

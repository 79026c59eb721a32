// The YAML library, loaded when the first YAML is read or written: most processes never do, and start sooner without.

import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';

const require = createRequire(import.meta.url);

export function yaml(): typeof Yaml {
  return require('yaml');
}

// The definitions that a home serves from its first start on. A build reads deploy/crds once and leaves them as JSON,
// because reading YAML is a good part of a start; from the sources they are read as they are.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { AnyObject } from '../../kube/objects/object.ts';
import { loadDefinitions } from './load.ts';

const folder = fileURLToPath(new URL('../../../deploy/crds/', import.meta.url));
/** Written by scripts/build.mjs. */
const built = `${folder}definitions.json`;

export function bundledDefinitions(): AnyObject[] {
  if (existsSync(built)) return JSON.parse(readFileSync(built, 'utf8'));
  const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'));
  return loadDefinitions(files.sort().map((name) => readFileSync(`${folder}${name}`, 'utf8')));
}

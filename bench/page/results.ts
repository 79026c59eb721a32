// What benches have measured, as files of the repository.

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { benches } from './benches.ts';
import type { Result } from './page.ts';

export function resultFile(name: string): string {
  return fileURLToPath(new URL(`../results/${name}.json`, import.meta.url));
}

export function readResults(): Map<string, Result> {
  const there = benches.filter(({ name }) => existsSync(resultFile(name)));
  return new Map(there.map(({ name }) => [name, JSON.parse(readFileSync(resultFile(name), 'utf8')) as Result]));
}

// Which of some test files import a file of the product, directly or by way of others.

import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

export function importersIn(tests: readonly string[]): (path: string) => ReadonlySet<string> {
  const direct = new Map<string, readonly string[]>();
  const importsOf = (path: string) => {
    const known = direct.get(path) ?? readImports(path);
    direct.set(path, known);
    return known;
  };
  const closures = tests.map((test) => {
    const reached = new Set([test]);
    for (const path of reached) for (const target of importsOf(path)) reached.add(target);
    return { test, reached };
  });
  return (path) => new Set(closures.filter(({ reached }) => reached.has(path)).map(({ test }) => test));
}

function readImports(path: string): string[] {
  const pattern = /(?:from|import)\s*\(?\s*'(\.[^']*)'/g;
  return [...readFileSync(path, 'utf8').matchAll(pattern)]
    .map(([, target = '']) => resolve(dirname(path), target))
    .filter((target) => target.endsWith('.ts') && existsSync(target));
}

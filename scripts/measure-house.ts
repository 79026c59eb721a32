// How much house there is, and how far apart things lie in it: `node scripts/measure-house.ts [FOLDER]` prints tables for this
// tree or another checkout. Files and lines by room, long functions, long parameter lists, crumbs, and the files of each walk.

import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { longFunctions, parameterLists } from './functions.ts';

const root = resolve(process.argv[2] ?? '.');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const linesOf = (files: readonly string[]) => files.reduce((sum, file) => sum + read(file).split('\n').length - 1, 0);
const find = (...patterns: string[]) => patterns.flatMap((pattern) => globSync(pattern, { cwd: root })).sort();
const isTest = (file: string) => /\.test\.tsx?$|(^|\/)contract\.ts$|\/testing\//.test(file);

const all = find('src/**/*.ts', 'src/**/*.tsx').filter((file) => !file.startsWith('src/gen/'));
const product = all.filter((file) => !isTest(file));
const rooms = Map.groupBy(product, (file) => (file.split('/').length > 2 ? file.split('/')[1]! : '.'));

console.log('| room | files | lines |\n| --- | --- | --- |');
for (const [room, files] of rooms) console.log(`| ${room} | ${files.length} | ${linesOf(files)} |`);
console.log(`| product | ${product.length} | ${linesOf(product)} |`);
const others: Record<string, string[]> = {
  'tests in src': all.filter(isTest),
  'sim, test, bench': find('{sim,test,bench}/**/*.{ts,mjs}'),
  'deploy (YAML)': find('deploy/**/*.yaml'),
  docs: find('docs/**/*.md', '*.md'),
};
for (const [what, files] of Object.entries(others)) console.log(`| ${what} | ${files.length} | ${linesOf(files)} |`);

const importers = new Map<string, Set<string>>();
for (const file of product)
  for (const [, path = ''] of read(file).matchAll(/(?:from|import)\s*\(?\s*'(\.[^']*)'/g)) {
    const target = relative(root, resolve(root, dirname(file), path));
    importers.set(target, (importers.get(target) ?? new Set()).add(file));
  }
const crumbs = product.filter((file) => linesOf([file]) < 40 && (importers.get(file)?.size ?? 0) <= 1);
const long = product.flatMap((file) => longFunctions(file, read(file)));
const lists = product.flatMap((file) => parameterLists(file, read(file)));
console.log(`\nfiles under 40 lines with one importer: ${crumbs.length}`);
console.log(`parameter lists over six: ${lists.length}\n${lists.join('\n')}`);
console.log(
  `functions over 80 lines: ${long.length}\n${long
    .sort((a, b) => b.lines - a.lines)
    .map(({ text }) => text)
    .join('\n')}`,
);

console.log('\n| walk | files |\n| --- | --- |');
for (const section of read('docs/walk.md').split(/^## /m).slice(1)) {
  const files = new Set(Array.from(section.matchAll(/\]\(\.\.\/(src\/[^)#]+)\)/g), ([, file]) => file));
  console.log(`| ${section.split('\n', 1)[0]} | ${files.size} |`);
}

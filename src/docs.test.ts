// The documents are held to what is there: files that the walk names, and for each rule of the founding documents and each
// promise of docs/promises/ a test that exists, a command that measures it, or the page that says why not.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const docs = fileURLToPath(new URL('../docs/', import.meta.url));
const read = (path: string) => readFileSync(path, 'utf8');
const { scripts } = JSON.parse(read(join(docs, '../package.json'))) as { scripts: Record<string, string> };
const promises = readdirSync(join(docs, 'promises')).map((page) => `promises/${page}`);

describe.each([
  'walk.md',
  'seeds.md',
  'glossary.md',
  'decisions/README.md',
  'guides/clusterset.md',
  'guides/dns.md',
  'guides/peering.md',
  ...promises,
])('docs/%s', (page) => {
  const text = read(join(docs, page));
  const links = [...text.matchAll(/\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)/g)].map((match) => match[1]!);

  test('its links -> lead to files that are there', () => {
    const missing = links.filter((link) => !existsSync(join(docs, page, '..', link)));
    expect(missing).toEqual([]);
  });
});

test('docs/walk.md: -> every folder of src/ is on the way', () => {
  const walk = read(join(docs, 'walk.md'));
  for (const folder of ['base', 'kube', 'home', 'clusterset', 'cli', 'catalog', 'dns', 'main']) {
    expect(walk, `src/${folder}/ is not on the walk`).toContain(`src/${folder}/`);
  }
});

interface Row {
  readonly part: string;
  readonly where: string;
  readonly rule: string;
  readonly held: string;
}

function rowsOf(text: string): { built: Row[]; later: Row[] } {
  const rows = { built: [] as Row[], later: [] as Row[] };
  let part = '';
  let isLater = false;
  for (const line of text.split('\n')) {
    if (line.startsWith('## ')) [part, isLater] = [line.slice(3), false];
    if (line.startsWith('### Not built yet')) isLater = true;
    if (!line.startsWith('| ') || /^\| (section|where|---) /.test(line)) continue;
    const [where = '', rule = '', held = ''] = line.slice(2, -2).split(' | ');
    rows[isLater ? 'later' : 'built'].push({ part, where, rule, held });
  }
  return rows;
}

/** What is wrong with what a row names as its proof; empty if nothing is. */
function wrongWith(held: string): string[] {
  return held.split('<br>').flatMap((item) => {
    const link = /^\[[^\]]+\]\(([^)#]+)(?:#([^)]+))?\)$/.exec(item);
    if (link !== null) return wrongWithPage(link[1]!.replace(/^\.\.\//, ''), link[2]);
    const command = /^`npm run ([\w:]+)`$/.exec(item)?.[1];
    if (command !== undefined) return command in scripts ? [] : [`no such command: npm run ${command}`];
    const named = /^`([^`]+?\.test\.ts): ([^`]+)`$/.exec(item);
    return named === null ? [`not a test, a command or a decision: ${item}`] : wrongWithTest(named[1]!, named[2]!);
  });
}

function wrongWithPage(link: string, anchor: string | undefined): string[] {
  const path = join(docs, link);
  if (!link.startsWith('decisions/') || !existsSync(path)) return [`no such decision: ${link}`];
  const headings = [...read(path).matchAll(/^#+ (.+)$/gm)].map((match) => anchorOf(match[1]!));
  return anchor === undefined || headings.includes(anchor) ? [] : [`${link} has no heading #${anchor}`];
}

function wrongWithTest(file: string, name: string): string[] {
  const path = join(docs, '..', file);
  if (!existsSync(path)) return [`no such file: ${file}`];
  const lines = read(path)
    .split('\n')
    .filter((line) => !line.trim().startsWith('//'));
  return lines.some((line) => line.includes(name)) ? [] : [`${file} has no test ${name}`];
}

function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}

describe.each(['seeds.md', ...promises])('docs/%s', (page) => {
  const { built, later } = rowsOf(read(join(docs, page)));

  test.each(built.map((row) => [`${row.part.slice(0, 24)}, ${row.where}: ${row.rule}`, row.held] as const))(
    '%s -> has its test or its decision',
    (_rule, held) => expect(wrongWith(held)).toEqual([]),
  );

  test('what is not built yet -> says why; no rule is there twice', () => {
    expect(built).not.toEqual([]);
    for (const { rule, held } of later) expect(held.length, rule).toBeGreaterThan(3);
    const rules = [...built, ...later].map(({ part, where, rule }) => `${part}, ${where}: ${rule}`);
    expect(rules.filter((rule, at) => rules.indexOf(rule) !== at)).toEqual([]);
  });
});

test('docs/seeds.md: -> all five documents have rows', () => {
  const text = read(join(docs, 'seeds.md'));
  const seeds = [...text.matchAll(/^## (\d{3}):/gm)].map((match) => match[1]);
  expect(seeds).toEqual(['000', '001', '002', '003', '004']);
  expect(rowsOf(text).built.length).toBeGreaterThan(100);
});

test('a row without a proof, with a test or a decision that is not there -> would be found', () => {
  expect(wrongWith('')).not.toEqual([]);
  expect(wrongWith('some day')).not.toEqual([]);
  expect(wrongWith('`src/docs.test.ts: no test has` `this name`')).not.toEqual([]);
  expect(wrongWith(`\`src/none.test.ts: x\``)).toEqual(['no such file: src/none.test.ts']);
  expect(wrongWith(`\`src/house.test.ts: ${'x'.repeat(9)}\``)).toHaveLength(1);
  expect(wrongWith('[0010](decisions/0010-left-out-of-the-seeds.md#nowhere)')).toHaveLength(1);
  expect(wrongWith('[0099](decisions/0099.md)')).toHaveLength(1);
  expect(wrongWith('[0010](decisions/0010-left-out-of-the-seeds.md#kube-proxy)')).toEqual([]);
  expect(wrongWith('`npm run nothing`')).toEqual(['no such command: npm run nothing']);
  expect(wrongWith('[0010](../decisions/0010-left-out-of-the-seeds.md#kube-proxy)')).toEqual([]);
});

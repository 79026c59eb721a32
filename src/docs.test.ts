// The documents are held to what is there: links lead to files and headings, the walk passes every folder, and each rule of
// the founding documents has a test that carries its id. `npm test` checks the same against the tests that ran.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { kindPages } from '../scripts/kind-pages.ts';
import { idsIn, proofsOf, readRules } from '../scripts/proofs.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const docs = join(root, 'docs');
const read = (path: string) => readFileSync(path, 'utf8');
const filesUnder = (folder: string, ending: string) =>
  (readdirSync(join(root, folder), { recursive: true }) as string[])
    .filter((name) => name.endsWith(ending))
    .map((name) => `${folder}/${name}`);

const pagesBeside = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md', 'bench/NOTES.md', 'sim/README.md'];

describe.each([...filesUnder('docs', '.md'), ...pagesBeside, ...filesUnder('src', 'README.md')])('%s', (page) => {
  test('its links -> lead to files and headings that are there', () => {
    const links = [...read(join(root, page)).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g)];
    const missing = links
      .map(([, file, heading]) => ({ path: file === '' ? join(root, page) : join(root, page, '..', file!), heading }))
      .filter(({ path, heading }) => !existsSync(path) || !(heading === undefined || hasHeading(path, heading)));
    expect(missing).toEqual([]);
  });
});

function hasHeading(path: string, anchor: string): boolean {
  const headings = [...read(path).matchAll(/^#+ (.+)$/gm)].map((match) => match[1]!.toLowerCase());
  return headings.some((heading) => heading.replace(/[^\w\- ]/g, '').replaceAll(' ', '-') === anchor);
}

test('docs/walk.md: -> every folder of src/ is on the way', () => {
  const walk = read(join(docs, 'walk.md'));
  const folders = readdirSync(join(root, 'src'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  for (const folder of folders.map(({ name }) => name).filter((name) => name !== 'gen')) {
    expect(walk, `src/${folder}/ is not on the walk`).toContain(`src/${folder}/`);
  }
});

test('docs/walk.md: twelve questions "where is it" -> each names a room of src/ that is there, and a file in it', () => {
  const [, section = ''] = /^## Where is it\n([^#]*)/m.exec(read(join(docs, 'walk.md'))) ?? [];
  const rows = [...section.matchAll(/^\| (?!question |---)([^|]+) \| (.+) \|$/gm)].map(([, question, answer]) => ({
    question,
    rooms: Array.from(answer!.matchAll(/`(src\/[^`]*)\/`/g), ([, room]) => room!),
    files: Array.from(answer!.matchAll(/\]\(\.\.\/([^)]+)\)/g), ([, file]) => file!),
  }));
  expect(rows).toHaveLength(12);
  for (const { question, rooms, files } of rows) {
    expect(
      rooms.filter((room) => !existsSync(join(root, room))),
      question,
    ).toEqual([]);
    expect(
      files.some((file) => rooms.some((room) => file.startsWith(`${room}/`))),
      question,
    ).toBe(true);
  }
});

describe('docs/seeds.md', () => {
  const rules = readRules(read(join(docs, 'seeds.md')));

  test('all five documents -> have rules, each once', () => {
    expect(new Set(rules.all.map(({ id }) => id.slice(0, 3)))).toEqual(new Set(['000', '001', '002', '003', '004']));
    expect(new Set(rules.all.map(({ id }) => id)).size).toBe(rules.all.length);
  });

  test('each rule -> a test carries its id, or it is decided otherwise or open; no id is invented', () => {
    const sources = ['src', 'sim', 'test'].flatMap((folder) => filesUnder(folder, '.test.ts'));
    const marks = sources.flatMap((file) =>
      idsIn(file === 'src/docs.test.ts' ? '' : read(join(root, file))).map((id) => `${file} [${id}]`),
    );
    expect(proofsOf(rules, marks).problems).toEqual([]);
  });

  test('an invented id, a rule without a test, an open rule with one -> would be found', () => {
    const text = '## 000: One\n| 000-01 | a | b |\n| 000-02 | a | b |\n## Open rules\n| 000-02 | later |\n';
    const { problems } = proofsOf(readRules(text), ['x [000-02, 000-07]']);
    expect(problems).toEqual([
      '000-07 is no rule of docs/seeds.md: x [000-02, 000-07]',
      'rule 000-01 of docs/seeds.md has no test that passed',
      'rule 000-02 has a test: take it off the open rules',
    ]);
  });
});

test('pages of kinds: the definitions changed -> node scripts/generate-kinds.ts writes the pages anew', () => {
  const pages = kindPages();
  const files = readdirSync(join(docs, 'kinds')).filter((name) => name.endsWith('.md'));
  expect(files.sort()).toEqual([...pages.keys()].sort());
  for (const [name, text] of pages) expect(read(join(docs, 'kinds', name)), name).toBe(text);
});

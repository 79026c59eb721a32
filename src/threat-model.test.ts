// The threat model is held to what is there: every row names a test that exists, or says that it is a gap. Each test has a mend
// that `npm run mutate -- --only security` switches off, and the text of that mend is where it is said to be.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { switchedOff } from '../test/mutate/security.ts';
import { mends, unswitched, unswitchedTitles } from '../test/mutate/security-mends.ts';
import { partNames } from './install/values.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const page = readFileSync(join(root, 'docs/threat-model.md'), 'utf8');
const attackers = [
  'Tenant',
  'Import writer',
  'Member',
  'Broker admin',
  'Peer',
  'DNS client',
  'Host user',
  'Network',
  'Compromised part',
];

interface Row {
  readonly attacker: string;
  readonly tries: string;
  readonly proof: string;
}

function rowsOf(text: string): Row[] {
  return text
    .split(/^## /m)
    .slice(1)
    .flatMap((section) => {
      const attacker = section.slice(0, section.indexOf(':'));
      const lines = section.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| ---'));
      return lines.slice(1).map((line) => {
        const cells = line.split(' | ');
        return { attacker, tries: cells[0]!.slice(2), proof: cells.at(-1)!.replace(/ \|$/, '') };
      });
    });
}

function testOf(proof: string): { readonly file: string; readonly title: string } {
  const [, file = '', title = ''] = /^`([^`]+\.test\.ts)` "(.+)"$/.exec(proof) ?? [];
  return { file, title };
}

/** The problem with the last cell of a row; undefined if it names an existing test or a gap. */
function problemOf(proof: string): string | undefined {
  if (proof.startsWith('**gap**')) return undefined;
  const { file, title } = testOf(proof);
  if (file === '') return `expected \`FILE.test.ts\` "TITLE" or **gap**, found ${proof}`;
  if (!existsSync(join(root, file))) return `${file} does not exist`;
  return readFileSync(join(root, file), 'utf8').includes(title) ? undefined : `${file} has no test ${title}`;
}

describe('docs/threat-model.md', () => {
  const rows = rowsOf(page);

  test('every kind of attacker -> has rows', () => {
    expect([...new Set(rows.map(({ attacker }) => attacker))]).toEqual(attackers);
  });

  test.each(rows.map((row) => [`${row.attacker} tries to ${row.tries}`, row.proof]))(
    '%s -> its test is there, or it is a gap',
    (_row, proof) => {
      expect(problemOf(proof)).toBeUndefined();
    },
  );

  test('every test of a row -> has a mend that can be switched off, or a reason why not', () => {
    const named = rows.map(({ proof }) => testOf(proof)).filter(({ file }) => file !== '');
    const isSwitched = ({ file, title }: { file: string; title: string }) =>
      mends.some((mend) => mend.test === file && mend.title === title);
    const without = named.filter((one) => !isSwitched(one) && !unswitched[one.file] && !unswitchedTitles[one.title]);
    expect(without).toEqual([]);
    const isNamed = ({ test: file, title }: (typeof mends)[number]) =>
      named.some((one) => one.file === file && one.title === title);
    expect(mends.filter((mend) => !isNamed(mend))).toEqual([]);
  });

  test.each(mends.map((mend) => [`${mend.file}: ${mend.was.slice(0, 80)}`, mend] as const))(
    'mend %s -> stands there once, and without it the text is another',
    (_where, mend) => {
      const source = readFileSync(join(root, mend.file), 'utf8');
      const without = switchedOff(source, mend);
      expect(without).toBeDefined();
      expect(without).not.toBe(source);
    },
  );

  test('every part of an installation -> has a row', () => {
    const rowed = rows.filter(({ attacker }) => attacker === 'Compromised part').map(({ tries }) => tries);
    expect(rowed.sort()).toEqual([...partNames].sort());
  });

  test('a test that is not there, a row without one -> would be found', () => {
    expect(problemOf('`src/none.test.ts` "x"')).toContain('does not exist');
    expect(problemOf('`src/threat-model.test.ts` "no such title, $"'.replace('$', 'ever'))).toContain('has no test');
    expect(problemOf('somebody looked at it')).toContain('expected');
  });
});

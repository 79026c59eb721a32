// The threat model is held to what is there: every row names a test that exists, or says that it is a gap.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
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

/** The problem with the last cell of a row; undefined if it names an existing test or a gap. */
function problemOf(proof: string): string | undefined {
  if (proof.startsWith('**gap**')) return undefined;
  const [, file = '', title = ''] = /^`([^`]+\.test\.ts)` "(.+)"$/.exec(proof) ?? [];
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

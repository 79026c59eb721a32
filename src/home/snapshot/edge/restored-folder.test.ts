import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  abandonRestore,
  beginRestore,
  commitRestore,
  finishRestore,
  refuseDuringRestore,
  writeRestored,
} from './restored-folder.ts';

let directory: string;
const put = (path: string, content: string) => {
  mkdirSync(join(directory, path, '..'), { recursive: true });
  writeFileSync(join(directory, path), content);
};
const content = (path: string) =>
  existsSync(join(directory, path)) ? readFileSync(join(directory, path), 'utf8') : undefined;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'portolan-restored-'));
  put('store/facts.db', 'old');
  put('pki/ca.key', 'old');
  put('pki/server.key', 'old');
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function prepare(): void {
  const folder = beginRestore(directory);
  mkdirSync(join(folder, 'store'));
  writeFileSync(join(folder, 'store/facts.db'), 'new');
  writeRestored(folder, 'ca.key', 'new');
}

test('restored folder: exchanged -> the new state in place, the former in a folder of its own', () => {
  prepare();
  commitRestore(directory, 'before');
  expect([content('store/facts.db'), content('pki/ca.key'), content('pki/server.key')]).toEqual([
    'new',
    'new',
    undefined,
  ]);
  expect([content('before/store/facts.db'), content('before/pki/server.key')]).toEqual(['old', 'old']);
  expect(readdirSync(directory).sort()).toEqual(['before', 'pki', 'store']);
});

test('restored folder: not whole, or abandoned -> nothing of it is used', () => {
  prepare();
  expect(finishRestore(directory)).toBe(false);
  expect(content('store/facts.db')).toBe('old');
  abandonRestore(directory);
  expect(readdirSync(directory).sort()).toEqual(['pki', 'store']);
});

test.each(['after the mark', 'first moved away', 'first exchanged', 'second moved away', 'both exchanged'])(
  'restored folder: interrupted %s -> the next start completes it',
  (moment) => {
    prepare();
    put('restoring/whole', 'before');
    mkdirSync(join(directory, 'before'));
    const steps = ['after the mark', 'first moved away', 'first exchanged', 'second moved away', 'both exchanged'];
    const moves: [string, string][] = [
      ['store', 'before/store'],
      ['restoring/store', 'store'],
      ['pki', 'before/pki'],
      ['restoring/pki', 'pki'],
    ];
    for (const [from, to] of moves.slice(0, steps.indexOf(moment))) renameIn(from, to);
    expect(finishRestore(directory)).toBe(true);
    expect([content('store/facts.db'), content('pki/ca.key')]).toEqual(['new', 'new']);
    expect([content('before/store/facts.db'), content('before/pki/ca.key')]).toEqual(['old', 'old']);
    expect(finishRestore(directory)).toBe(false);
  },
);

test('restored folder: another process is at work -> a home does not start; it is gone -> it does', () => {
  prepare();
  refuseDuringRestore(directory);
  put('restoring/process', String(process.ppid));
  expect(() => refuseDuringRestore(directory)).toThrow(/is restoring a snapshot here/);
  expect(() => beginRestore(directory)).toThrow(/is restoring a snapshot here/);
  put('restoring/process', '4194304999');
  refuseDuringRestore(directory);
});

function renameIn(from: string, to: string): void {
  renameSync(join(directory, from), join(directory, to));
}

import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { makeFolder } from './make-folder.ts';

const directory = mkdtempSync(join(tmpdir(), 'portolan-folder-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test('makeFolder: several levels, twice -> there, with the mode', () => {
  const path = join(directory, 'a/b/c');
  makeFolder(path, 0o700);
  makeFolder(path, 0o700);
  expect(statSync(path).mode & 0o777).toBe(0o700);
});

test.skipIf(process.platform !== 'linux')('makeFolder: in /proc, where nothing can be made -> an error at once', () => {
  expect(() => makeFolder('/proc/portolan/data')).toThrow('ENOENT');
});

test('makeFolder: a file in the way -> an error', () => {
  writeFileSync(join(directory, 'file'), '');
  expect(() => makeFolder(join(directory, 'file/data'))).toThrow(/ENOTDIR|EEXIST/);
  expect(() => makeFolder(join(directory, 'file'))).toThrow('EEXIST');
});

import { expect, test } from 'vitest';
import type { Host } from '../base/host.ts';
import { readToken } from './given-token.ts';

const files: Readonly<Record<string, string>> = { '/dev/stdin': 'from-stdin\n', t: 'from-file\n', empty: ' \n' };
const host = { readText: async (path: string) => files[path] } as Host;

test.each([
  ['the argument', { argument: 'abc' }, 'abc'],
  ['- as the argument', { argument: '-' }, 'from-stdin'],
  ['a file', { file: 't' }, 'from-file'],
  ['- as the file', { file: '-' }, 'from-stdin'],
  ['nothing', {}, undefined],
])('token: %s -> read without the end of the line', async (_name, given, token) => {
  expect(await readToken(host, given)).toBe(token);
});

test.each([
  [{ argument: 'abc', file: 't' }, 'give one of them'],
  [{ file: 'none' }, '--token-file none: no such file'],
  [{ file: 'empty' }, 'it is empty'],
])('token: %o -> refused', async (given, problem) => {
  await expect(readToken(host, given)).rejects.toThrow(problem);
});

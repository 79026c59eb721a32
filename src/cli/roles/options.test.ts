import { expect, test } from 'vitest';
import { parseMode } from './options.ts';

test('permissions of a socket: owner and group -> taken; others, or no octal number -> an error that names the flag', () => {
  expect(['0660', '600', '0700'].map((text) => parseMode(text, '--socket-mode'))).toEqual([0o660, 0o600, 0o700]);
  for (const text of ['0666', '0662', '777', '', 'abc', '0980', '1660'])
    expect(() => parseMode(text, '--socket-mode')).toThrow(`--socket-mode ${text}: expected permissions`);
});

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { version } from './version.ts';

test('version: what the program calls itself -> the version in package.json', () => {
  const file = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  expect(version).toBe(file.version);
});

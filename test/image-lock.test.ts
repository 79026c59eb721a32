// The lock of the image's Debian packages: other contents of a locked version are refused, and in a release other versions too.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { lockProblems } from '../scripts/image/debian.mjs';

const folder = fileURLToPath(new URL('../scripts/image/', import.meta.url));
const lock = JSON.parse(readFileSync(`${folder}debian.lock.json`, 'utf8')) as Record<
  string,
  Record<string, { version: string; sha256: string }>
>;

test.each([
  ['the locked version', '1', 'aa', true, []],
  ['the locked version with other contents', '1', 'bb', true, ['libc6 1 has checksum bb, not aa']],
  ['the same, in a build that is no release', '1', 'bb', false, ['libc6 1 has checksum bb, not aa']],
  ['a newer version', '2', 'cc', true, ['libc6 2 is not in the lock, which has 1']],
  ['the same, in a build that is no release', '2', 'cc', false, []],
])('image lock: %s -> %s %s, release %s: %j', (_what, version, sha256, isLocked, problems) => {
  const locked = { libc6: { version: '1', sha256: 'aa' } };
  expect(lockProblems({ found: [{ name: 'libc6', version, sha256 }], locked, isLocked })).toEqual(problems);
});

test('image lock: every Debian package of the image -> a version and a checksum, for each architecture', () => {
  const source = readFileSync(`${folder}image.mjs`, 'utf8');
  const list = source.slice(source.indexOf('const debianPackages = ['), source.indexOf('];'));
  const names = [...list.matchAll(/'([a-z0-9+.-]+)'/g)].map(([, name]) => name!).sort();
  expect(names.length).toBeGreaterThan(20);
  for (const architecture of ['amd64', 'arm64']) {
    expect(Object.keys(lock[architecture]!).sort()).toEqual(names);
    for (const { version, sha256 } of Object.values(lock[architecture]!))
      expect([version !== '', /^[0-9a-f]{64}$/.test(sha256)]).toEqual([true, true]);
  }
});

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createRealHost } from '../../base/real/host.ts';
import type { HomeEtcdFlags } from '../../cli/roles/etcd-flags.ts';
import { etcdOptionsOf } from './etcd-options.ts';

const directory = mkdtempSync(join(tmpdir(), 'portolan-etcd-options-'));
afterAll(() => rmSync(directory, { recursive: true }));
const read = (flags: Partial<HomeEtcdFlags>) =>
  etcdOptionsOf(createRealHost(), { etcdPrefix: '/portolan/home/', replica: [], ...flags });
const keysFile = (content: string) => {
  const path = join(directory, 'keys');
  writeFileSync(path, content, { mode: 0o600 });
  return path;
};
const key = Buffer.alloc(32, 7).toString('base64');

test('etcd options: no --etcd -> none', async () => {
  expect(await read({})).toBeUndefined();
});

test('etcd options: several endpoints, a prefix without a slash, keys -> as given', async () => {
  const flags = {
    etcd: 'https://a:2379, https://b:2379/',
    etcdPrefix: '/p/east',
    etcdKeysFile: keysFile(`# new\n${key}\n`),
  };
  expect(await read(flags)).toMatchObject({
    endpoints: [{ url: 'https://a:2379' }, { url: 'https://b:2379' }],
    prefix: '/p/east/',
    compacts: true,
    acceptsRestored: false,
  });
});

test.each([
  [{ etcd: 'localhost:2379' }, /want http:\/\/ or https:\/\/ URLs/],
  [{ etcd: 'http://a', etcdPrefix: '/' }, /--etcd-prefix \/: want a path such as/],
  [{ etcd: 'http://a', etcdPrefix: 'a/b' }, /--etcd-prefix a\/b: want a path such as/],
  [{ etcd: 'http://a', etcdUser: 'me' }, /want --etcd-password-file FILE too/],
])('etcd options: %o -> refused with the flag', async (flags, reason) => {
  await expect(read(flags)).rejects.toThrow(reason);
});

test.each([
  ['c2hvcnQ=', /a key of 5 bytes is in it; want 32 bytes in base64/],
  ['\n# none\n', /there is no key in it/],
])('etcd options: a key file with %o -> refused with the reason', async (content, reason) => {
  await expect(read({ etcd: 'http://a', etcdKeysFile: keysFile(content) })).rejects.toThrow(reason);
});

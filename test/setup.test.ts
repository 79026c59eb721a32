// `bin/portolan` in a checkout whose dependencies npm installed by hand, or that cannot be written: it does not install them
// again. `npm` here is a program that only says that it was called.

import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';

const directory = mkdtempSync(join(tmpdir(), 'portolan-setup-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const locked = {
  '': { name: 'portolan', version: '1.0.0' },
  'node_modules/yaml': { version: '2.8.0' },
  'node_modules/node-other-cpu': { version: '24.0.0', optional: true },
};

function checkout(name: string, installed: object): string {
  const root = join(directory, name);
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  for (const path of ['bin/portolan', 'scripts/setup.mjs']) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    cpSync(path, join(root, path));
  }
  write('package-lock.json', JSON.stringify({ packages: locked }));
  write('node_modules/.package-lock.json', JSON.stringify({ packages: installed }));
  mkdirSync(join(root, 'node_modules/node-linux-here/bin'), { recursive: true });
  symlinkSync(process.execPath, join(root, 'node_modules/node-linux-here/bin/node'));
  for (const folder of ['src', 'deploy']) mkdirSync(join(root, folder));
  execFileSync('touch', ['-d', '2020-01-01', join(root, 'src'), join(root, 'deploy')]);
  write('dist/src/main.js', 'console.log("ran");');
  write('dist/.built', '');
  write('npm/npm', '#!/bin/sh\necho npm "$@" >&2\nexit 1\n');
  chmodSync(join(root, 'npm/npm'), 0o755);
  return root;
}

function run(root: string, command: readonly string[] = [join(root, 'bin/portolan')]) {
  const env = { PATH: `${join(root, 'npm')}:${process.env['PATH']}` };
  const { status, stdout, stderr } = spawnSync(command[0]!, command.slice(1), { env, encoding: 'utf8' });
  return { status, stdout: stdout.trim(), stderr };
}

describe('bin/portolan', () => {
  const { 'node_modules/yaml': yaml } = locked;

  test('after npm ci by hand, without packages of other platforms -> runs at once', () => {
    const root = checkout('by-hand', { 'node_modules/yaml': yaml });
    expect(run(root)).toEqual({ status: 0, stdout: 'ran', stderr: '' });
    expect(existsSync(join(root, 'node_modules/.portolan-lock'))).toBe(true);
  });

  test('a program ran from source and left its compile cache -> not built again', () => {
    const root = checkout('cache', { 'node_modules/yaml': yaml });
    mkdirSync(join(root, 'src/.compile-cache'));
    writeFileSync(join(root, 'src/.compile-cache/one'), '');
    execFileSync('touch', ['-d', '2020-01-01', join(root, 'src')]);
    execFileSync('touch', ['-d', '2040-01-01', join(root, 'src/.compile-cache/one')]);
    expect(run(root)).toEqual({ status: 0, stdout: 'ran', stderr: '' });
  });

  test('with packages of another lock file -> installs', () => {
    const root = checkout('other', { 'node_modules/yaml': { version: '2.7.0' } });
    expect(run(root).stderr).toContain('npm ci');
  });

  test.skipIf(process.getuid?.() !== 0)('in a checkout that cannot be written -> runs', () => {
    const root = checkout('read-only', { 'node_modules/yaml': yaml });
    const script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$0/bin/portolan"';
    const command = ['unshare', '-m', '--propagation', 'private', 'sh', '-ec', script, root];
    expect(run(root, command)).toEqual({ status: 0, stdout: 'ran', stderr: '' });
    rmSync(join(root, 'node_modules/.package-lock.json'));
    expect(run(root, command).stderr).toContain('has no dependencies and cannot be written');
  });
});

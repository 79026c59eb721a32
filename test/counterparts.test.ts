// Programs of Debian that a command needs and this machine lacks: the command asks apt for them. The apt here installs nothing.

import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { run } from './support/portolan.ts';

const folder = mkdtempSync(join(tmpdir(), 'portolan-counterparts-'));
const asked = join(folder, 'asked');
writeFileSync(join(folder, 'apt-get'), `#!/bin/sh\necho "$@" >> ${asked}\n`);
chmodSync(join(folder, 'apt-get'), 0o755);
afterAll(() => rmSync(folder, { recursive: true }));

test('check:alerts: no Prometheus on this machine -> it is installed, and nothing else', async () => {
  const { code, err } = await run(process.execPath, ['test/alerts.ts'], { env: { ...process.env, PATH: folder } });
  expect(code).toBe(1);
  expect(err).toContain('there is no prometheus, and it could not be installed');
  if (process.getuid?.() !== 0) return expect(err).toContain('not installing prometheus (needs root and apt)');
  expect(err).toContain('portolan: installing prometheus for the tests');
  expect(existsSync(asked) && readFileSync(asked, 'utf8').match(/ install .*/g)).toEqual([
    expect.stringMatching(/ prometheus$/),
  ]);
});

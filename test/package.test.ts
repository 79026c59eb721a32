// A release: its files and checksums, and the npm package installed into an empty folder, whose `portolan` runs without a
// checkout.

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { releaseProblems } from '../scripts/release/checks.mjs';
import { version } from '../src/base/version.ts';
import { describeWith, pathOf } from './support/counterparts.ts';
import { until } from './support/kubectl.ts';
import { run } from './support/portolan.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'portolan-package-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const release = (out: string, ...more: string[]) =>
  run(process.execPath, [join(root, 'scripts/release/release.mjs'), '--out', join(directory, out), ...more]);

describe('npm run release', () => {
  test('twice -> the same files, with checksums that hold', async () => {
    for (const out of ['first', 'second']) {
      const { code, err } = await release(out, '--allow-unreleased');
      expect([code, err]).toEqual([0, '']);
    }
    const sums = (out: string) => readFileSync(join(directory, out, 'SHA256SUMS'), 'utf8');
    expect(sums('second')).toBe(sums('first'));
    for (const name of ['portolan', 'portolan-chart', 'portolan-manifests', 'portolan-systemd'])
      expect(sums('first')).toContain(`  ${name}-${version}.tgz\n`);
    const checked = await run('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: join(directory, 'first') });
    expect([checked.code, checked.out]).toEqual([0, '']);
  });

  test('a version that differs somewhere, a changelog without it -> refused with what to change', () => {
    const texts = {
      'src/base/version.ts': "export const version = '1.2.2';",
      'deploy/chart/Chart.yaml': 'appVersion: 1.2.3\n',
      'package-lock.json': '{ "version": "1.2.3" }',
      'CHANGELOG.md': '# Changelog\n\n## Unreleased\n- new\n\n## 1.2.2\n- old\n',
    };
    expect(releaseProblems({ version: '1.2.3', texts })).toEqual([
      'src/base/version.ts: version 1.2.2, package.json has 1.2.3',
      'CHANGELOG.md: no section "## 1.2.3" with a line in it; rename "## Unreleased"',
    ]);
    const right = {
      ...texts,
      'src/base/version.ts': "version = '1.2.3'",
      'CHANGELOG.md': '## 1.2.3 (2026-12-01)\n- new\n',
    };
    expect(releaseProblems({ version: '1.2.3', texts: right })).toEqual([]);
    const empty = { ...right, 'CHANGELOG.md': '## 1.2.3\n\n## 1.2.2\n- old\n' };
    expect(releaseProblems({ version: '1.2.3', texts: empty })).toHaveLength(1);
  });
});

describe('the npm package', () => {
  const folder = join(directory, 'installed');
  // Node 24 is on PATH; offline npm cannot fetch the one that the package would bring.
  const env = { ...process.env, PATH: `${dirname(process.execPath)}:/usr/bin:/bin`, HOME: folder, KUBECONFIG: '' };

  test('installed offline into an empty folder -> portolan version and portolan up run', async () => {
    mkdirSync(folder);
    writeFileSync(join(folder, 'package.json'), '{ "private": true }');
    const install = ['install', '--offline', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
    const installed = await run('npm', [...install, join(directory, 'first', `portolan-${version}.tgz`)], {
      cwd: folder,
      timeoutMs: 110_000,
      env: { ...process.env, npm_config_cache: join(directory, 'empty-cache') },
    });
    expect([installed.code, installed.err]).toEqual([0, '']);
    const program = join(folder, 'node_modules/.bin/portolan');
    expect(existsSync(join(folder, 'node_modules/portolan/src'))).toBe(false);
    const shown = await run(program, ['version', '--client'], { env, cwd: folder });
    expect([shown.code, shown.out, shown.err]).toEqual([0, `client ${version}\n`, '']);
    const home = spawn(program, ['up', '--data', join(folder, 'data')], {
      env,
      cwd: folder,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let out = '';
    home.stdout!.setEncoding('utf8').on('data', (chunk: string) => (out += chunk));
    const ended = new Promise((resolve) => home.once('exit', resolve));
    try {
      const kubeconfig = join(folder, 'data/admin.kubeconfig');
      const status = () => run(program, ['status', '--kubeconfig', kubeconfig], { env, cwd: folder });
      await until(async () => out.includes('one cluster is ready') || home.exitCode !== null);
      expect((await status()).err).not.toMatch(/unreachable|refused/i);
    } finally {
      home.kill('SIGTERM');
      expect(await ended).toBe(0);
    }
  });
});

describeWith(['systemd-analyze'], 'systemd units', () => {
  const folder = join(root, 'deploy/systemd');
  const names = ['api', 'agent', 'dns', 'proxy', 'peering', 'authority', 'xds', 'gateway', 'gateway-renew'].map(
    (name) => `portolan-${name}.service`,
  );

  test('systemd-analyze verify -> no complaint', async () => {
    const units = join(directory, 'units');
    mkdirSync(units);
    // The programs lie elsewhere here.
    for (const name of names) {
      const text = readFileSync(join(folder, name), 'utf8')
        .replaceAll('/usr/bin/portolan', join(root, 'bin/portolan'))
        .replace('/usr/bin/envoy', '/bin/true');
      writeFileSync(join(units, name), text);
    }
    const paths = names.map((name) => join(units, name));
    const { code, out, err } = await run(pathOf('systemd-analyze')!, ['verify', '--man=no', ...paths]);
    expect([code, out, err]).toEqual([0, '', '']);
  });

  test.each(names)('%s -> little to attack', async (name) => {
    const args = ['security', '--offline=true', '--threshold=25', join(folder, name)];
    const { code, out } = await run(pathOf('systemd-analyze')!, args);
    expect([code, out.split('\n').at(-2)]).toEqual([0, expect.stringContaining('OK')]);
  });
});

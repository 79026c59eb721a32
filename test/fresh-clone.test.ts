// A fresh clone on a machine with nothing but Node 20 or later and npm: `npm start` and `npm test` do all their own set-up.

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { connect } from './support/api-process.ts';
import { until } from './support/kubectl.ts';
import { run } from './support/portolan.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'portolan-fresh-'));
// Twenty thousand files: a busy disk takes minutes.
afterAll(() => rmSync(directory, { recursive: true, force: true }), 600_000);

/** The machine's own Node, not one that npm installed for us. */
const nodeDirectory = (process.env['PATH'] ?? '')
  .split(':')
  .find((path) => !path.includes('node_modules') && existsSync(join(path, 'node')) && existsSync(join(path, 'npm')));

// The variables of a new shell, and the way to the registry; nothing of the npm that runs this test.
const kept = /^(HOME|TMPDIR|LANG|(https?|no)_proxy|npm_config_(registry|cache|userconfig)|NODE_EXTRA_CA_CERTS)$/i;
const env = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => kept.test(name))),
  PATH: [nodeDirectory, '/usr/bin', '/bin'].join(':'),
};

async function clone(name: string): Promise<string> {
  const target = join(directory, name);
  const { code, err } = await run('git', ['clone', '--quiet', '--no-hardlinks', root, target]);
  expect([code, err]).toEqual([0, '']);
  return target;
}

/** The processes whose folder or program lies in that one. */
function processesIn(path: string): string[] {
  return readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .filter((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        return readlinkSync(`/proc/${pid}/cwd`).startsWith(path) || command.includes(path);
      } catch {
        return false;
      }
    });
}

const isReady = existsSync(join(root, '.git')) && nodeDirectory !== undefined;
describe.skipIf(!isReady)('a fresh clone (needs a git checkout, Node and npm)', { timeout: 900_000 }, () => {
  test('npm start -> sets itself up, is ready, answers, and leaves nothing running after Ctrl-C', async () => {
    const checkout = await clone('start');
    const child = spawn('npm', ['start'], { cwd: checkout, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    let out = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => (out += chunk));
    }
    const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
    try {
      await Promise.race([
        untilSaid(() => /^ready$/m.test(out)),
        exited.then((code) => Promise.reject(new Error(`npm start ended with ${code}: ${out}`))),
      ]);
      const { broker } = JSON.parse(readFileSync(join(checkout, '.portolan/demo/demo.json'), 'utf8'));
      expect(broker.kubeconfig).toBe(join(checkout, '.portolan/demo/broker/admin.kubeconfig'));
      const connection = await connect(broker.kubeconfig);
      expect((await connection.request('GET', '/readyz')).status).toBe(200);
      connection.close();
      // As a terminal does it: the whole group gets the signal.
      process.kill(-child.pid!, 'SIGINT');
      // npm ends itself by the signal it was sent; what it ran has stopped by then, its database closed in good order.
      expect(await exited).toBeOneOf([0, null]);
      await until(() => processesIn(checkout).length === 0);
      expect(readdirSync(join(checkout, '.portolan/demo/east/store'))).toEqual(['facts.db']);
    } finally {
      for (const pid of processesIn(checkout)) process.kill(Number(pid), 'SIGKILL');
    }
    expect((await run('git', ['status', '--porcelain'], { cwd: checkout })).out).toBe('');
  });

  test('npm test -> sets itself up, runs, and ends with how many passed', async () => {
    const checkout = await clone('test');
    // One small file: all of them would run this test again, and so on.
    const args = ['test', '--', 'src/base/queue.test.ts'];
    const { code, out, err } = await run('npm', args, { cwd: checkout, env, timeoutMs: 800_000 });
    expect([code, code === 0 ? '' : out + err]).toEqual([0, '']);
    expect(out.trimEnd().split('\n').at(-1)).toMatch(/^[1-9]\d* passed, 0 failed, 0 skipped$/);
    expect(processesIn(checkout)).toEqual([]);
    expect(existsSync(join(checkout, 'node_modules', '.portolan-lock'))).toBe(true);
  });

  test('a test that fails -> npm test says so in its last line and by its exit code', async () => {
    const checkout = join(directory, 'test');
    const failing = join(checkout, 'src/base/queue.test.ts');
    writeFileSync(failing, `import { expect, test } from 'vitest';\ntest('fails', () => expect(1).toBe(2));\n`);
    const { code, out } = await run('npm', ['test', '--', 'src/base/queue.test.ts'], { cwd: checkout, env });
    expect(code).not.toBe(0);
    expect(out.trimEnd().split('\n').at(-1)).toBe('0 passed, 1 failed, 0 skipped');
  });

  test('a test that fails only once -> its file runs again, it is named, and that is no failure', async () => {
    const checkout = join(directory, 'test');
    const mark = JSON.stringify(join(directory, 'was-here'));
    const unsteady = `
      import { existsSync, writeFileSync } from 'node:fs';
      import { expect, test } from 'vitest';
      test('steady', () => {});
      test('fails once', () => {
        const isSecond = existsSync(${mark});
        writeFileSync(${mark}, '');
        expect(isSecond).toBe(true);
      });`;
    writeFileSync(join(checkout, 'src/base/queue.test.ts'), unsteady);
    const { code, out } = await run('npm', ['test', '--', 'src/base/queue.test.ts'], { cwd: checkout, env });
    expect(out).toContain('\nunsteady: failed, and passed when its file ran again: fails once\n');
    expect([code, out.trimEnd().split('\n').at(-1)]).toEqual([0, '2 passed, 0 failed, 0 skipped']);
  });

  test('an error outside the tests -> a failure, and nothing runs again', async () => {
    const checkout = join(directory, 'test');
    const rejecting = `import { test } from 'vitest';\ntest('passes', () => void Promise.reject(new Error('nobody waits')));\n`;
    writeFileSync(join(checkout, 'src/base/queue.test.ts'), rejecting);
    const { code, out } = await run('npm', ['test', '--', 'src/base/queue.test.ts'], { cwd: checkout, env });
    expect(code).not.toBe(0);
    expect(out.trimEnd().split('\n').at(-1)).toBe('1 passed, 1 failed, 0 skipped');
    expect(out).not.toContain('unsteady');
  });

  test('a test that cannot run -> named and counted; where none may be skipped, that is a failure', async () => {
    const checkout = join(directory, 'test');
    const skipping = `import { test } from 'vitest';\ntest('runs', () => {});\ntest.skip('needs more than is here', () => {});\n`;
    writeFileSync(join(checkout, 'src/base/queue.test.ts'), skipping);
    const npmTest = (more: NodeJS.ProcessEnv) =>
      run('npm', ['test', '--', 'src/base/queue.test.ts'], { cwd: checkout, env: { ...env, ...more } });
    const allowed = await npmTest({});
    expect(allowed.code).toBe(0);
    expect(allowed.out).toContain('\nskipped: needs more than is here\n');
    expect(allowed.out.trimEnd().split('\n').at(-1)).toBe('1 passed, 0 failed, 1 skipped');
    expect((await npmTest({ PORTOLAN_FORBID_SKIPS: '1' })).code).not.toBe(0);
  });
});

describe('.ci/run', () => {
  /** An npm that only prints its arguments, and fails on demand. */
  async function runWithNpm(failing: string): Promise<{ code: number | null; out: string }> {
    const tools = mkdtempSync(join(directory, 'tools-'));
    const script = `#!/bin/sh\necho "npm $* skips=$PORTOLAN_FORBID_SKIPS"\n[ "$1" != "${failing}" ]\n`;
    writeFileSync(join(tools, 'npm'), script, { mode: 0o755 });
    return run(join(root, '.ci/run'), [], { env: { PATH: `${tools}:/usr/bin:/bin` } });
  }

  test('-> types, lint and unused code, then all tests, and lets none be skipped', async () => {
    const { code, out } = await runWithNpm('nothing');
    expect([code, out]).toEqual([0, 'npm run lint --silent skips=1\nnpm test --silent skips=1\n']);
    expect((await runWithNpm('test')).code).not.toBe(0);
  });

  test('the check fails -> it ends with the counts all the same', async () => {
    const { code, out } = await runWithNpm('run');
    expect(code).not.toBe(0);
    expect(out.trimEnd().split('\n').at(-1)).toBe('0 passed, 1 failed, 0 skipped');
  });
});

test('npm test without root or apt -> says which packages it does not install, and goes on', async () => {
  const script = `
    process.getuid = () => 1000;
    process.env.PATH = '/nowhere';
    const { installCounterparts } = await import(${JSON.stringify(join(root, 'scripts/counterparts.mjs'))});
    installCounterparts();
  `;
  const { code, err } = await run(process.execPath, ['--input-type=module', '-e', script]);
  expect(code).toBe(0);
  expect(err).toMatch(/not installing .*etcd-server.* \(needs root and apt\); tests that need them are skipped/);
});

async function untilSaid(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 100));
}

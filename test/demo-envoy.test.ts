// `npm start -- --with-envoy`, which puts an Envoy on PATH: the second company's service and the external service are reached
// through it.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from './support/counterparts.ts';
import { runPortolan } from './support/portolan.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

describeWith(['envoy'], 'demo with Envoy', () => {
  const directory = mkdtempSync(`${tmpdir()}/portolan-demo-envoy-`);
  let child: ChildProcess;
  let printed = '';

  beforeAll(async () => {
    const script = `${root}scripts/with-setup.mjs`;
    child = spawn(process.execPath, [script, 'start', '--with-envoy', '--dir', directory], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    await new Promise<void>((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`the demo ended with ${code}: ${printed}`)));
      for (const stream of [child.stdout!, child.stderr!])
        stream.on('data', (chunk) => {
          printed += chunk;
          if (/^ready$/m.test(printed)) resolve();
        });
    });
  });

  afterAll(async () => {
    if (child.exitCode === null) {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
    }
    rmSync(directory, { recursive: true, force: true });
  });

  const curl = (port: number) =>
    execFileSync('sh', ['-c', new RegExp(`^ {4}(curl .*:${port}/)$`, 'm').exec(printed)![1]!], { encoding: 'utf8' });

  test('demo: the service of the second company -> reached through west’s Envoy and the ingress of acme', () => {
    expect(curl(15_443)).toBe('invoices of acme\n');
  });

  test('demo: the external service -> a plain request, TLS to the server outside', () => {
    expect(curl(8443)).toBe('rates of the bank, over TLS\n');
  });

  test('demo: status and doctor of both sides -> peer and external service are fine, because Envoys carry both', async () => {
    const west = ['--kubeconfig', `${directory}/west/admin.kubeconfig`];
    const says = async (...args: string[]) => (await runPortolan([...args, ...west])).out;
    await expect
      .poll(() => says('status'), { timeout: 20_000, interval: 500 })
      .toMatch(/^rates\s+Ready\s+rates\.bank\.example$/m);
    await expect
      .poll(() => says('peer', 'list'), { timeout: 20_000, interval: 500 })
      .toMatch(/^acme\s.*\sSynced\s+1\s/m);
    expect(await says('peer', 'services')).toMatch(/^acme\s.*\sActive/m);
    expect(await says('doctor')).not.toMatch(/PTL0904|PTL060/);
    const acme = await runPortolan(['doctor', '--kubeconfig', `${directory}/acme/admin.kubeconfig`]);
    expect(acme.out).not.toMatch(/PTL060/);
  });

  test('demo: the ingress of acme is killed -> told on both sides within 20 s, the commands that look included', async () => {
    const [ingress] = idsNaming(`${directory}/acme/`);
    process.kill(Number(ingress), 'SIGKILL');
    const killedMs = Date.now();
    const at = (home: string, ...args: string[]) =>
      runPortolan([...args, '--kubeconfig', `${directory}/${home}/admin.kubeconfig`]);
    const isTold = async () => [
      (await at('west', 'peer', 'services')).out.includes('IngressAway'),
      (await at('acme', 'peer', 'list')).out.includes('IngressAway'),
    ];
    await expect.poll(isTold, { timeout: 30_000, interval: 200 }).toEqual([true, true]);
    // The commands that look take their time too.
    expect(Date.now() - killedMs).toBeLessThan(20_000);
    expect((await at('west', 'doctor')).out).toMatch(/PTL0605 error .*IngressAway/);
    expect((await at('acme', 'doctor')).out).toMatch(/PTL0606 error .*IngressAway/);
  });

  test('demo: Ctrl-C -> the Envoys end too', async () => {
    expect(processesNaming(directory)).toBe(3);
    const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
    child.kill('SIGINT');
    expect(await ended).toBe(0);
    await expect.poll(() => processesNaming(directory), { timeout: 10_000 }).toBe(0);
  });
});

/** The demo itself with the script that started it, and its Envoys, by the folder in their command lines. */
function processesNaming(text: string): number {
  return idsNaming(text).length;
}

function idsNaming(text: string): string[] {
  const commandOf = (id: string) => {
    try {
      return readFileSync(`/proc/${id}/cmdline`, 'utf8');
    } catch {
      return '';
    }
  };
  return readdirSync('/proc').filter((id) => /^\d+$/.test(id) && commandOf(id).includes(text));
}

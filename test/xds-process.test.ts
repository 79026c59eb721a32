// `portolan xds` and its verbs as processes, with an Envoy that starts from what they print.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { startApi } from './support/api-process.ts';
import { describeWith, pathOf } from './support/counterparts.ts';
import { portolan, runPortolan } from './support/portolan.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function startXds(args: readonly string[]): Promise<{ port: string; admin: string; child: ChildProcess }> {
  const child = spawn(portolan, ['xds', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  closing.push(() => child.kill('SIGKILL'));
  let out = '';
  return new Promise((resolve, reject) => {
    child.stderr.on('data', (chunk) => (out += chunk));
    child.once('exit', (code) => reject(new Error(`portolan xds exited with ${code}: ${out}`)));
    child.stdout.on('data', (chunk) => {
      out += chunk;
      const ready = /ready (\d+)\nadmin (\S+)\n/.exec(out);
      if (ready !== null) resolve({ port: ready[1]!, admin: ready[2]!, child });
    });
  });
}

describeWith(['envoy'], 'xds: processes', () => {
  test('xds bootstrap -> envoy -c starts with it and is served; xds status shows it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'portolan-xds-process-'));
    closing.push(() => rmSync(folder, { recursive: true, force: true }));
    const api = await startApi({ data: join(folder, 'home') });
    closing.push(() => api.stop());
    const home = ['--kubeconfig', api.kubeconfig, '--cluster-id', 'east'];
    const ports = ['--virtual-port', '0', '--ingress-port', '0'];
    const xds = await startXds([...home, ...ports, '--listen', '127.0.0.1:0', '--socket', join(folder, 'xds.sock')]);
    const print = (...args: string[]) => runPortolan(['xds', ...args]);
    for (const role of ['sidecar', 'ingress']) {
      const server = ['--server', `127.0.0.1:${xds.port}`, '--admin', '127.0.0.1:0'];
      // Printed with everything in it, or written to a folder whose certificate is renewed.
      const isWritten = role === 'ingress';
      const where = isWritten ? ['--directory', folder] : [];
      const made = await print('bootstrap', '--role', role, '--name', 'one', ...home, ...server, ...where);
      expect(made.err).toBe('');
      const file = join(folder, isWritten ? 'envoy.json' : `${role}.json`);
      if (isWritten) expect(made.out).toContain(`portolan xds renew --directory ${folder}`);
      else writeFileSync(file, made.out);
      expect(readFileSync(file, 'utf8').includes('PRIVATE KEY')).toBe(!isWritten);
      const args = ['-c', file, '--concurrency', '1', '-l', 'warning', '--use-dynamic-base-id'];
      const envoy = spawn(pathOf('envoy')!, args, { stdio: 'ignore' });
      closing.push(() => envoy.kill('SIGKILL'));
    }
    const shown = await until(async () => {
      const { out } = await print('status', '--admin', xds.admin);
      const isThere =
        /^ingress~east~one +delta +envoy/m.test(out) && /^sidecar~east~one +delta +envoy +[1-9]/m.test(out);
      return isThere ? out : undefined;
    });
    expect(shown).toMatch(/^PROXY +STATE +CLIENT +CLUSTERS/);
    const grpc = await print(
      'bootstrap',
      '--role',
      'grpc',
      '--name',
      'app',
      ...home,
      '--socket',
      join(folder, 'xds.sock'),
    );
    expect(JSON.parse(grpc.out)).toMatchObject({
      xds_servers: [{ server_uri: `unix:${join(folder, 'xds.sock')}`, channel_creds: [{ type: 'insecure' }] }],
      node: { id: 'grpc~east~app' },
    });
    const wrong = await print('bootstrap', '--role', 'router', '--name', 'one', ...home);
    expect(wrong.code).not.toBe(0);
    expect(wrong.err).toContain('roles are sidecar, ingress, gateway, grpc');
    const stopped = new Promise((resolve) => xds.child.once('exit', resolve));
    xds.child.kill('SIGTERM');
    expect(await stopped).toBe(0);
  });
});

describeWith(['envoy'], 'up --envoy', () => {
  test('starts an Envoy beside the home -> it is configured, and ends with it', async () => {
    const data = mkdtempSync(join(tmpdir(), 'portolan-up-envoy-'));
    closing.push(() => rmSync(data, { recursive: true, force: true }));
    const child = spawn(portolan, ['up', '--data', data, '--envoy', pathOf('envoy')!], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    closing.push(() => child.kill('SIGKILL'));
    let out = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (out += chunk));
    const exited = new Promise((resolve) => child.once('exit', resolve));
    await until(async () => (/^envoy +configured by/m.test(out) || child.exitCode !== null ? true : undefined));
    expect(out).toMatch(/^envoy +configured by/m);
    child.kill('SIGTERM');
    expect(await exited).toBe(0);
  });
});

async function until<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (let i = 0; i < 300; i++) {
    const found = await look();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error('it did not come');
}

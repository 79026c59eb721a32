// Every command in README.md, and every line that `portolan up` prints to be typed, is typed here.

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { describeWith, pathOf } from './support/counterparts.ts';
import { freePort } from './support/free-port.ts';
import { type Finished, portolan, run } from './support/portolan.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const readme = readFileSync(join(root, 'README.md'), 'utf8');
const blocks = [...readme.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1]!);

/** The commands of a block without the text around them. */
const commandsOf = (block: string) =>
  block
    .split('\n')
    .map((line) => line.replace(/ +# .*$/, '').trim())
    .filter((line) => line !== '');

// These two set a checkout up first: test/fresh-clone.test.ts runs them where that matters.
const elsewhere = ['npm start', 'npm test'];

describe('README', () => {
  test('its commands -> all are run by a test: here, or in a fresh clone', () => {
    expect(commandsOf(blocks[0]!)).toEqual(elsewhere);
    expect(blocks).toHaveLength(4);
    const freshClone = readFileSync(join(root, 'test/fresh-clone.test.ts'), 'utf8');
    for (const command of elsewhere) expect(freshClone).toContain(`'${command.split(' ')[1]}'`);
  });

  test('its links -> lead to files that are there', () => {
    const links = [...readme.matchAll(/\]\(([^)#]+)\)/g)].map((match) => match[1]!);
    expect(links.length).toBeGreaterThan(3);
    for (const link of links) expect(() => readFileSync(join(root, link)), link).not.toThrow();
  });
});

describeWith(['kubectl'], 'README and portolan up', () => {
  // A folder that looks like the checkout, so that no real .portolan is touched.
  const checkout = mkdtempSync(join(tmpdir(), 'portolan-readme-'));
  const tools = join(checkout, 'tools');
  const stops: (() => Promise<unknown>)[] = [];
  beforeAll(() => {
    symlinkSync(join(root, 'bin'), join(checkout, 'bin'));
    mkdirSync(tools);
    symlinkSync(pathOf('kubectl')!, join(tools, 'kubectl'));
  });
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
  });
  afterAll(() => rmSync(checkout, { recursive: true, force: true }));

  const env = { ...process.env, PATH: `${tools}:${process.env['PATH']}`, HOME: checkout, KUBECONFIG: undefined };
  const shell = (script: string): Promise<Finished> => run('/bin/sh', ['-ec', script], { cwd: checkout, env });

  /** Starts a command that runs until it is stopped, and waits for what it prints. */
  function start(args: readonly string[], ready: RegExp): Promise<{ out: string; stop: () => Promise<number | null> }> {
    const child = spawn(portolan, [...args], { cwd: checkout, env, stdio: ['ignore', 'pipe', 'ignore'] });
    const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
    const stop = () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGINT');
      return exited;
    };
    stops.push(stop);
    let out = '';
    return new Promise((resolve, reject) => {
      exited.then((code) => reject(new Error(`portolan ${args.join(' ')} ended with ${code}: ${out}`)));
      child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
        out += chunk;
        if (ready.test(out)) resolve({ out, stop });
      });
    });
  }

  test('a first look -> every line works, and does what it is there for', async () => {
    const { stop } = await start(['up'], /Ctrl-C/);
    const commands = commandsOf(blocks[1]!);
    const { code, out, err } = await shell(commands.join('\n'));
    expect([code, err]).toEqual([0, '']);
    expect(out).toContain('namespace/shop created');
    expect(out).toContain('127.0.0.1 (http=8080): registered behind shop/checkout');
    expect(out).toMatch(/service\/checkout +ClusterIP/);
    expect(out).toMatch(/endpointslice\S+checkout\S* +IPv4 +8080 +127\.0\.0\.1/);
    expect(out).toContain('service/cart patched');
    expect(out).toMatch(/serviceexportpolicies +/);
    expect(out).toMatch(/^yes$/m);
    expect(out).toContain('namespace "shop" deleted');
    expect(await stop()).toBe(0);
  });

  test('a home for others -> starts as it is printed, with a folder and port of ours', async () => {
    const [line] = commandsOf(blocks[2]!);
    const port = await freePort();
    const ours = line!.replaceAll('/tmp/portolan-home', join(checkout, 'home')).replace(':6443', `:${port}`);
    const { out, stop } = await start(ours.split(' ').slice(1), /^ready /m);
    expect(out).toContain(`ready https://127.0.0.1:${port}`);
    expect(await stop()).toBe(0);
    for (const help of [...readme.matchAll(/`(bin\/portolan [a-z -]*help)`/g)]) {
      expect((await shell(help[1]!)).out).toContain('Usage: portolan');
    }
  });

  test('a clusterset of your own -> init, token, join, agent, export, status, explain', async () => {
    for (const name of ['broker', 'east']) {
      await start(['api', '--data', join(checkout, name), '--listen', '127.0.0.1:0'], /^ready /m);
      symlinkSync(join(checkout, name, 'admin.kubeconfig'), join(checkout, `${name}.kubeconfig`));
    }
    const east = 'kubectl --kubeconfig east.kubeconfig';
    await shell(`${east} create namespace shop && ${east} create service clusterip checkout --tcp=80:8080 -n shop`);
    let token = '';
    const said: string[] = [];
    for (const line of commandsOf(blocks[3]!)) {
      const command = line.replace('TOKEN', token);
      if (command.includes(' agent ')) {
        await start(command.split(' ').slice(1), /ready/);
        continue;
      }
      const { code, out, err } = await shell(command);
      expect([command, code, code === 0 ? '' : out + err]).toEqual([command, 0, '']);
      if (command.includes('broker token')) token = out.trim();
      said.push(out);
    }
    expect(said.join('')).toContain('this cluster is east in clusterset prod');
    expect(said.at(-2)).toMatch(/east/);
    expect(said.at(-1)).toMatch(/checkout/);
  });

  test('portolan up -> every line it prints to be typed works', async () => {
    const { out, stop } = await start(['up', '--data', join(checkout, 'printed')], /Ctrl-C/);
    const lines = [...out.matchAll(/^ {2}(\S.*)$/gm)].map((match) => match[1]!);
    expect(lines.length).toBeGreaterThan(4);
    const { code, out: said, err } = await shell(lines.join('\n'));
    expect([code, err]).toEqual([0, '']);
    expect(said).toContain('registered behind default/web');
    expect(said).toMatch(/service\/web /);
    expect(said).toContain('KIND:       ServiceExport');
    expect(await stop()).toBe(0);
  });

  test('stopped and started again -> it goes on where it was', async () => {
    const args = ['up', '--data', join(checkout, 'again')];
    const first = await start(args, /Ctrl-C/);
    const kubeconfig = join(checkout, 'again', 'admin.kubeconfig');
    await shell(`kubectl --kubeconfig ${kubeconfig} create namespace kept`);
    await first.stop();
    await start(args, /Ctrl-C/);
    expect((await shell(`kubectl --kubeconfig ${kubeconfig} get namespace kept -o name`)).out).toBe('namespace/kept\n');
  });
});

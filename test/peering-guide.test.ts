// docs/guides/peering.md is followed step by step, as two companies would: every command in it is typed here.

import { spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { type ApiProcess, startApi } from './support/api-process.ts';
import { describeWith, pathOf } from './support/counterparts.ts';
import { type Finished, portolan, run } from './support/portolan.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const guide = readFileSync(join(root, 'docs/guides/peering.md'), 'utf8');
const blocks = [...guide.matchAll(/^ {3}```sh\n([\s\S]*?)^ {3}```$/gm)].map((match) =>
  match[1]!.replace(/^ {3}/gm, ''),
);

test('peering guide: its links -> lead to what is there; its states -> all that there are', () => {
  for (const [, link] of guide.matchAll(/\]\(([^)#]+)\)/g))
    expect(pathExists(join(root, 'docs/guides', link!))).toBe(true);
  for (const file of ['peers', 'peerservices']) {
    const definition = readFileSync(join(root, `deploy/crds/${file}.yaml`), 'utf8');
    const states = /(?:state: \{ type: string, |state:\n +type: string\n +)enum:? ?\[([^\]]+)\]/.exec(definition)?.[1];
    for (const state of states?.split(', ') ?? ['none found']) expect(guide).toContain(`\`${state}\``);
  }
  expect(parseAllDocuments(/```yaml\n([\s\S]*?)```/.exec(guide)![1]!)[0]!.errors).toEqual([]);
});

function pathExists(path: string): boolean {
  try {
    readFileSync(path);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EISDIR';
  }
}

describeWith(['kubectl'], 'peering guide', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-guide-'));
  const env = { ...process.env, PATH: `${folder}/tools:${process.env['PATH']}`, HOME: folder, KUBECONFIG: undefined };
  const stops: (() => Promise<unknown>)[] = [];
  const shell = (script: string): Promise<Finished> => run('/bin/sh', ['-ec', script], { cwd: folder, env });
  const done = async (script: string): Promise<string> => {
    const { code, out, err } = await shell(script);
    expect({ code, err }, script).toMatchObject({ code: 0 });
    return out;
  };
  const eventually = <T>(read: () => Promise<T>) => expect.poll(read, { timeout: 60_000, interval: 300 });

  beforeAll(async () => {
    mkdirSync(join(folder, 'tools'));
    symlinkSync(join(root, 'bin'), join(folder, 'bin'));
    symlinkSync(pathOf('kubectl')!, join(folder, 'tools/kubectl'));
    const homes = await Promise.all(['east', 'west'].map((name) => startApi({ data: join(folder, name) })));
    homes.forEach((home: ApiProcess, n) => {
      copyFileSync(home.kubeconfig, join(folder, `${['east', 'west'][n]}.kubeconfig`));
      stops.push(() => home.stop());
    });
  });
  afterAll(async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Runs until the test ends; on any port, because 8008 may be taken here. */
  function startEndpoint(command: string): Promise<void> {
    const args = command
      .trim()
      .replace(/127\.0\.0\.1:800\d/, '127.0.0.1:0')
      // Its names are examples: nobody is asked for them.
      .replace(/--ingress (\S+)/, '--ingress $1 --ingress-probe 0')
      .split(' ')
      .slice(1);
    const child = spawn(portolan, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'ignore'] });
    const exited = new Promise((resolve) => child.once('exit', resolve));
    stops.push(() => {
      child.kill('SIGINT');
      return exited;
    });
    return new Promise((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`${command} ended with ${code}`)));
      child.stdout.setEncoding('utf8').on('data', (chunk: string) => chunk.includes('ready') && resolve());
    });
  }

  test('followed step by step -> west has what east shares, and after parting nothing', async () => {
    expect(blocks).toHaveLength(7);
    const [eastEndpoint, westEndpoint, token, add, share, look, part] = blocks as [string, ...string[]];
    await Promise.all([startEndpoint(eastEndpoint), startEndpoint(westEndpoint!)]);
    const introduction = (await done(token!)).trim();
    expect(await done(add!.replace('TOKEN', introduction))).toContain('peer east added');
    await done(share!);
    const [services, status, diff, yaml, routes] = look!.trim().split('\n') as [string, ...string[]];
    await eventually(async () => (await shell(services)).out).toContain('checkout.default.east.example');
    await eventually(async () => (await shell(status!)).out).toMatch(/taking +Synced/);
    expect(await done(diff!)).toContain('1 equal, 0 not');
    await eventually(async () => (await shell(yaml!)).out).toContain('state: Acknowledged');
    expect(await done(routes!)).toContain('checkout.default.east.example');
    await done(part!);
    await eventually(
      async () => (await shell('kubectl --kubeconfig west.kubeconfig get peerservices -A -o name')).out,
    ).toBe('');
  }, 180_000);
});

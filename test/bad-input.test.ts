// Mistakes at the start of every role and command: a port or folder that another process has, a home that does not answer, an old Node,
// a token that is cut, used or expired. Each is said with the next step, and the process ends.

import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ApiProcess, startApi } from './support/api-process.ts';
import { describeWith, pathOf } from './support/counterparts.ts';
import { freePort } from './support/free-port.ts';
import { takeLoopbackPart } from './support/loopback-part.ts';
import { portolan, run, runPortolan } from './support/portolan.ts';

const directory = mkdtempSync(join(tmpdir(), 'portolan-bad-input-'));
const loopbackPart = await takeLoopbackPart();
const folder = (name: string) => join(directory, name);
let api: ApiProcess;
let other: ApiProcess;
let taken: Server;
let takenAddress = '';

beforeAll(async () => {
  taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  takenAddress = `127.0.0.1:${(taken.address() as { port: number }).port}`;
  [api, other] = await Promise.all([startApi({ data: folder('home') }), startApi({ data: folder('other') })]);
}, 120_000);

afterAll(async () => {
  taken.close();
  for (const one of [api, other]) await one?.stop('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
});

describe('a port that another process has -> the role says so and ends', () => {
  const at = () => ['--kubeconfig', api.kubeconfig];
  const free = ['--listen', '127.0.0.1:0'];
  const range = ['--mode', 'userspace', '--range', `127.${loopbackPart}.1.0/24`, '--cluster-id', 'west'];
  const roles: Record<string, () => string[]> = {
    'api --listen': () => ['api', '--data', folder('second'), '--listen', takenAddress],
    'up --listen': () => ['up', '--data', folder('third'), '--listen', takenAddress],
    'agent --admin-listen': () => ['agent', ...at(), '--admin-listen', takenAddress],
    'dns --listen': () => [
      'dns',
      ...at(),
      '--cluster-id',
      'west',
      '--listen',
      takenAddress,
      '--admin-listen',
      '127.0.0.1:0',
    ],
    'dns --admin-listen': () => ['dns', ...at(), '--cluster-id', 'west', ...free, '--admin-listen', takenAddress],
    'peering --listen': () => [
      'peering',
      ...at(),
      '--trust-domain',
      'a.example',
      '--listen',
      takenAddress,
      '--admin-listen',
      '127.0.0.1:0',
    ],
    'peering --admin-listen': () => [
      'peering',
      ...at(),
      '--trust-domain',
      'a.example',
      ...free,
      '--admin-listen',
      takenAddress,
    ],
    'proxy --admin-listen': () => ['proxy', ...at(), ...range, '--admin-listen', takenAddress],
    'xds --listen': () => [
      'xds',
      ...at(),
      '--cluster-id',
      'west',
      '--listen',
      takenAddress,
      '--admin-listen',
      '127.0.0.1:0',
    ],
    'xds --admin-listen': () => ['xds', ...at(), '--cluster-id', 'west', ...free, '--admin-listen', takenAddress],
    'dashboard --listen': () => ['dashboard', ...at(), '--listen', takenAddress],
  };
  test.concurrent.each(Object.keys(roles))('%s', async (role) => {
    const { code, err } = await runPortolan(roles[role]!(), { timeoutMs: 50_000 });
    expect(err).toContain(
      `portolan: cannot listen on ${takenAddress}: another process has this port; stop it, or give another one`,
    );
    expect(code).toBe(1);
  });
});

test.concurrent.each(['api', 'up'])('%s: a folder that another process has -> says which and ends', async (role) => {
  const { code, err } = await runPortolan([role, '--data', folder('home'), '--listen', '127.0.0.1:0'], {
    timeoutMs: 50_000,
  });
  expect(err).toMatch(/portolan: .*home.*another process has it open; stop that one first/);
  expect(code).toBe(1);
});

describe('a home that does not answer -> the command names it, says what to check, and ends with 6', () => {
  const commands = {
    status: [],
    doctor: [],
    trace: ['shop/checkout'],
    'bug-report': ['--output', join(directory, 'none.tar.gz')],
    explain: ['shop/checkout'],
    export: ['shop/checkout'],
    'peer list': [],
    version: [],
  };
  test.concurrent.each(Object.entries(commands))('%s', async (command, args) => {
    const file = folder(`${command.replace(' ', '-')}.kubeconfig`);
    const text = readFileSync(api.kubeconfig, 'utf8').replace(/https:\S+/, `https://127.0.0.1:${await freePort()}`);
    writeFileSync(file, text);
    const { code, out, err } = await runPortolan([...command.split(' '), ...args, '--kubeconfig', file], {
      timeoutMs: 50_000,
    });
    expect(`${out}${err}`).toMatch(/is the server running|Start the home|start the homes/);
    expect(code).toBe(6);
  });
});

test('an old Node and none beside the program -> says which is needed, and ends', async () => {
  const root = folder('checkout');
  for (const name of ['bin', 'node_modules', 'dist', 'programs']) mkdirSync(join(root, name), { recursive: true });
  cpSync(portolan, join(root, 'bin/portolan'));
  writeFileSync(join(root, 'node_modules/.portolan-lock'), '');
  for (const name of ['src', 'deploy']) mkdirSync(join(root, name));
  writeFileSync(join(root, 'dist/.built'), '');
  writeFileSync(join(root, 'programs/node'), '#!/bin/sh\ncase "$1" in -p) echo 20 ;; *) echo "started: $*" ;; esac\n');
  chmodSync(join(root, 'programs/node'), 0o755);
  const env = { ...process.env, PATH: `${join(root, 'programs')}:/usr/bin:/bin` };
  const { code, out, err } = await run(join(root, 'bin/portolan'), ['status'], { env });
  expect(err).toMatch(/^portolan: this needs Node 24 or later, .* is 20; install it, or run npm ci in /);
  expect(out).toBe('');
  expect(code).toBe(1);
});

describe('a join token', () => {
  const typed = (...words: string[]) => runPortolan(words, { timeoutMs: 50_000 });
  let token = '';

  beforeAll(async () => {
    await typed('broker', 'init', '--clusterset', 'prod', '--kubeconfig', api.kubeconfig);
    const { out } = await typed('broker', 'token', 'west', '--clusterset', 'prod', '--kubeconfig', api.kubeconfig);
    token = out.trim().split('\n').at(-1)!;
  }, 60_000);

  test('cut -> not complete, with the next step', async () => {
    const { code, err } = await typed('join', token.slice(0, -20), '--kubeconfig', other.kubeconfig);
    expect(err).toMatch(/^portolan: .*join token.*(cut|whole|complete|copy)/);
    expect(code).toBe(2);
  });

  test('of another kind -> says so', async () => {
    const { code, err } = await typed('join', 'hello', '--kubeconfig', other.kubeconfig);
    expect(err).toMatch(/^portolan: .*join token.*portolan broker token/);
    expect(code).toBe(2);
  });

  describeWith(['faketime'], 'later', () => {
    test('expired -> refused by the broker, with the next step', async () => {
      const early = await startApi({ data: folder('expiring') });
      const at = ['--clusterset', 'prod', '--kubeconfig', early.kubeconfig];
      await typed('broker', 'init', ...at);
      const { out } = await typed('broker', 'token', 'late', '--minutes', '10', ...at);
      await early.stop();
      const clock = [pathOf('faketime')!, '-f', '+30m'];
      const late = await startApi({ data: folder('expiring'), port: early.port, under: clock });
      const { code, err } = await typed('join', out.trim().split('\n').at(-1)!, '--kubeconfig', other.kubeconfig);
      await late.stop('SIGKILL');
      expect(err).toMatch(/^portolan: .*token.*(expired|has been used).*portolan broker token/s);
      expect(code).toBe(5);
    });
  });

  test('used -> the first joins, the second is refused with the next step', async () => {
    expect((await typed('join', token, '--kubeconfig', other.kubeconfig)).code).toBe(0);
    const third = await startApi({ data: folder('third-home') });
    const { code, err } = await typed('join', token, '--kubeconfig', third.kubeconfig);
    await third.stop('SIGKILL');
    expect(err).toMatch(/used|new token|broker token|in use by another cluster/);
    expect(code).not.toBe(0);
  });
});

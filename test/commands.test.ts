// `bin/portolan` as a person types it: help, errors, and processes put behind a Service.

import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ApiProcess, type Connection, connect, startApi } from './support/api-process.ts';
import { asArgs, until } from './support/kubectl.ts';
import { portolan, run, runPortolan } from './support/portolan.ts';

const directory = mkdtempSync(join(tmpdir(), 'portolan-commands-'));
let api: ApiProcess;
beforeAll(async () => {
  api = await startApi({ data: join(directory, 'home') });
});
afterAll(async () => {
  await api.stop();
  rmSync(directory, { recursive: true, force: true });
});

const onHome = (line: string) => runPortolan([...asArgs(line), '--kubeconfig', api.kubeconfig]);

describe('portolan: help', () => {
  test('--help -> every command with what it is for; each has help of its own', async () => {
    const { code, out } = await runPortolan(['--help']);
    expect(code).toBe(0);
    const commands = [...out.matchAll(/^ {2}([a-z-]+)(?: \[[^\]]*\]| <[^>]*>)* {2,}\S/gm)].map((match) => match[1]!);
    expect(commands).toEqual(expect.arrayContaining(['up', 'api', 'register', 'deregister']));
    for (const command of commands) {
      if (command === 'help') continue;
      const help = await runPortolan([command, '--help']);
      expect([command, help.code, help.err]).toEqual([command, 0, '']);
      expect(help.out).toMatch(new RegExp(`^Usage: portolan ${command} `));
      expect(help.out.split('\n')[2]).toMatch(/\S/);
    }
  });

  test('--version -> that of the package', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
    expect((await runPortolan(['--version'])).out.trim()).toBe(version);
  });

  test('through a link, from another folder -> finds its own checkout and Node', async () => {
    const link = join(directory, 'portolan');
    symlinkSync(portolan, link);
    const { code, out } = await run(link, ['--version'], { cwd: directory, env: { PATH: '/usr/bin:/bin' } });
    expect([code, out.trim()]).toEqual([0, expect.stringMatching(/^\d+\.\d+\.\d+$/)]);
  });
});

describe('portolan: what is typed wrong', () => {
  test.each([
    ['nonsense', "unknown command 'nonsense'", '(portolan help lists the commands)'],
    ['api', "required option '--data <dir>' not specified", '(portolan api --help lists its options)'],
    ['api --data d --bogus', "unknown option '--bogus'", '(portolan api --help'],
    ['api --data d extra', 'too many arguments', '(portolan api --help'],
    ['api --data d --listen nowhere', '--listen nowhere: expected HOST:PORT, such as 127.0.0.1:6443'],
    ['api --data d --listen :6443', '--listen :6443: expected HOST:PORT'],
    ['api --data d --listen 127.0.0.1:70000', '--listen 127.0.0.1:70000: expected HOST:PORT'],
    ['api --data d --log-level loud', 'Allowed choices are debug, info, warn, error'],
    ['api --data d --keep-history never', '--keep-history never: expected a number of seconds above 0'],
    ["api --data d --san 'a b'", '--san "a b": neither an IP address nor a DNS name'],
    ['up extra', 'too many arguments', '(portolan up --help'],
    ['register', "required option '--address <ip>' not specified"],
    ['register a/b/c --address 10.0.0.1 --port 1', 'service "a/b/c": write NAMESPACE/NAME, such as shop/checkout'],
    ['register a/b --address host --port 1', '--address "host": not an IP address'],
    ['register a/b --address 10.0.0.1 --port x', '--port "x": write a number, such as 8080'],
    ['register a/b --address 10.0.0.1 --port 99999', '--port "99999": a port is from 1 to 65535'],
    ['register a/b --address 10.0.0.1 --port 1 --port 2', 'with several ports each needs a name'],
    ['register a/b --address 10.0.0.1 --port 1 --check ping', 'check "ping": write tcp, tcp:PORT, http://HOST'],
    ['register a/b --address 10.0.0.1 --port 1 --fall 3', '--fall: needs --check'],
    ['register a/b --address 10.0.0.1 --port 1 --check tcp --interval soon', '--interval "soon": write a time from'],
    ['deregister a/b --address host', '--address "host": not an IP address'],
  ])('%s -> says what, and what to write', async (line, ...texts) => {
    const isOnHome = line.startsWith('register ') || line.startsWith('deregister ');
    const { code, out, err } = await (isOnHome ? onHome(line) : runPortolan(asArgs(line), { cwd: directory }));
    expect(code).toBe(2);
    expect(out).toBe('');
    expect(err).toMatch(/^portolan: /);
    for (const text of texts) expect(err).toContain(text);
    expect(err).not.toMatch(/^ {4}at /m);
  });

  test('no home to talk to -> says where it looked; a broken kubeconfig -> says which and why', async () => {
    const register = 'register default/x --address 10.0.0.1 --port 1';
    const env = { PATH: process.env['PATH'], HOME: directory };
    const none = await runPortolan(asArgs(register), { env });
    expect(none.err).toContain(`${directory}/.kube/config does not exist`);
    const missing = await runPortolan(asArgs(`${register} --kubeconfig /nowhere/config`), { env });
    expect(missing.err).toContain('kubeconfig /nowhere/config: no such file');
    writeFileSync(join(directory, 'broken'), 'not: [a kubeconfig');
    const broken = await runPortolan(asArgs(`${register} --kubeconfig ${directory}/broken`), { env });
    expect(broken.err).toContain(`kubeconfig ${directory}/broken`);
    const context = await onHome(`${register} --context other`);
    expect(context.err).toContain('there is no "other"; known: "home"');
    for (const { code } of [none, missing, broken, context]) expect(code).toBe(2);
  });

  test('a home that does not answer -> says which, and ends', async () => {
    const config = readFileSync(api.kubeconfig, 'utf8').replace(/server: .*/, 'server: "https://127.0.0.1:1"');
    writeFileSync(join(directory, 'away'), config);
    const line = `register default/x --address 10.0.0.1 --port 1 --kubeconfig ${directory}/away`;
    const { code, err } = await runPortolan(asArgs(line));
    expect(code).toBe(6);
    expect(err).toMatch(/^portolan: .*127\.0\.0\.1:1/);
  });
});

describe('portolan register', () => {
  let connection: Connection;
  beforeAll(async () => {
    connection = await connect(api.kubeconfig);
  });
  afterAll(() => connection.close());

  async function endpoints(service: string): Promise<string[]> {
    const path = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
    const selector = encodeURIComponent(`kubernetes.io/service-name=${service}`);
    const { body } = await connection.request('GET', `${path}?labelSelector=${selector}`);
    return JSON.parse(body.toString()).items.flatMap(
      (slice: { endpoints: { addresses: string[]; conditions: { ready: boolean } }[] }) =>
        slice.endpoints.map(
          ({ addresses, conditions }) => `${addresses[0]} ${conditions.ready ? 'ready' : 'not ready'}`,
        ),
    );
  }
  const becomes = (service: string, wanted: string[]) =>
    until(async () => JSON.stringify((await endpoints(service)).sort()) === JSON.stringify(wanted));

  test('a real process with an http check -> ready while its health says so, not while it does not, gone after', async () => {
    let isWell = true;
    const server = createServer((_request, response) => response.writeHead(isWell ? 200 : 503).end());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const check = `--check http://checkout:${port}/healthz --interval 200ms --fall 2`;
    const line = `register default/checkout --address 127.0.0.1 --port http=80:${port} ${check}`;
    const made = await onHome(line);
    expect([made.code, made.err]).toEqual([0, '']);
    expect(made.out).toContain('made Service default/checkout\n');
    expect(made.out).toContain(`127.0.0.1 (http=${port}): registered behind default/checkout`);
    await becomes('checkout', ['127.0.0.1 ready']);
    isWell = false;
    await becomes('checkout', ['127.0.0.1 not ready']);
    isWell = true;
    await becomes('checkout', ['127.0.0.1 ready']);
    expect((await onHome(line)).out).toContain('already registered');
    server.closeAllConnections();
    server.close();
    await becomes('checkout', ['127.0.0.1 not ready']);
    const gone = await onHome('deregister default/checkout --address 127.0.0.1');
    expect([gone.code, gone.out]).toEqual([0, expect.stringContaining('deregistered from default/checkout')]);
    expect(await endpoints('checkout')).toEqual([]);
    const service = await connection.request('GET', '/api/v1/namespaces/default/services/checkout');
    expect(service.status).toBe(404);
  });

  test('a tcp check on one process, none on another -> the one follows its port, the other is ready at once', async () => {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await onHome(`register default/mixed --address 127.0.0.1 --port ${port} --check tcp --interval 200ms --fall 1`);
    await onHome('register default/mixed --address 192.0.2.1 --port 8080');
    await becomes('mixed', ['127.0.0.1 ready', '192.0.2.1 ready']);
    server.closeAllConnections();
    server.close();
    await becomes('mixed', ['127.0.0.1 not ready', '192.0.2.1 ready']);
    await onHome('deregister default/mixed --address 127.0.0.1');
    await becomes('mixed', ['192.0.2.1 ready']);
    expect((await onHome('deregister default/mixed --address 127.0.0.1')).out).toContain('not registered behind');
    expect((await onHome('deregister default/mixed --address 192.0.2.1')).code).toBe(0);
  });

  test('a namespace that is not there -> says how to make it', async () => {
    const { code, err } = await onHome('register nowhere/x --address 10.0.0.1 --port 1');
    expect(code).toBe(4);
    expect(err).toContain('there is no namespace nowhere; make it with kubectl create namespace nowhere');
  });
});

describe('portolan: the command line', () => {
  test('a variable of the environment in place of an option -> taken', async () => {
    const env = { ...process.env, PORTOLAN_KUBECONFIG: '/nowhere/config' };
    const { err } = await runPortolan(['version'], { env });
    expect(err).toContain('kubeconfig /nowhere/config: no such file');
  });

  test('version -> of the program and of the home, for people and programs', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
    const text = await onHome('version');
    expect([text.code, text.out]).toEqual([0, expect.stringContaining(`client ${version}`)]);
    const { client, home } = JSON.parse((await onHome('version -o json')).out);
    expect([client, home]).toEqual([version, expect.stringMatching(/^v1\./)]);
  });

  test('completion -> bash completes commands, their own commands and options', async () => {
    const { out: script } = await runPortolan(['completion', 'bash']);
    const words = (typed: string[]) =>
      `COMP_WORDS=(portolan ${typed.join(' ')}); COMP_CWORD=${typed.length}; _portolan; echo "\${COMPREPLY[*]}"`;
    const lines = [words(['bro']), words(['broker', 'tok']), words(['broker', 'token', '--clusters'])];
    const { out } = await run('bash', ['-c', `${script}\n${lines.join('\n')}`]);
    expect(out.trim().split('\n')).toEqual(['broker', 'token', '--clusterset']);
  });

  test('install on a home that runs no Pods -> refused, and nothing is changed', async () => {
    const { code, err } = await onHome('install');
    expect([code, err]).toEqual([5, expect.stringContaining('it stores Pods and does not run them')]);
  });

  test('as a plugin of kubectl -> the same program', async () => {
    const plugin = join(portolan, '..', 'kubectl-portolan');
    const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
    expect((await run(plugin, ['version', '--client'])).out.trim()).toBe(`client ${version}`);
  });
});

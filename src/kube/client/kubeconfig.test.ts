import { expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import type { Command, CommandResult, Host } from '../../base/host.ts';
import { findHome, loadKubeconfig } from './kubeconfig.ts';

const pem = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';
const inline = Buffer.from(pem).toString('base64');

test('kubeconfig: certificates inline -> PEM texts, server, default namespace', async () => {
  const text = kubeconfig(
    `client-certificate-data: ${inline}\n    client-key-data: ${inline}`,
    `certificate-authority-data: ${inline}`,
  );
  const access = await load(text);
  expect(access).toMatchObject({
    server: 'https://10.0.0.1:6443',
    certificateAuthority: pem,
    clientCertificate: pem,
    clientKey: pem,
    defaultNamespace: 'shop',
    contextName: 'one',
  });
});

test('kubeconfig: certificates by path -> read relative to the file', async () => {
  const text = kubeconfig(
    'client-certificate: pki/me.crt\n    client-key: /abs/me.key',
    'certificate-authority: ca.crt',
  );
  const files = { '/etc/k/ca.crt': 'CA', '/etc/k/pki/me.crt': 'CRT', '/abs/me.key': 'KEY' };
  expect(await load(text, { files })).toMatchObject({
    certificateAuthority: 'CA',
    clientCertificate: 'CRT',
    clientKey: 'KEY',
  });
});

test('kubeconfig: a token, and a token file that is replaced -> the newest is used', async () => {
  expect(await (await load(kubeconfig('token: abc'))).bearerToken?.()).toBe('abc');
  const files: Record<string, string> = { '/etc/k/token': 'old\n' };
  const access = await load(kubeconfig('tokenFile: token'), { files });
  expect(await access.bearerToken?.()).toBe('old');
  files['/etc/k/token'] = 'new\n';
  expect(await access.bearerToken?.()).toBe('new');
});

test('kubeconfig: tls-server-name and insecure-skip-tls-verify -> taken over', async () => {
  const access = await load(kubeconfig('{}', 'tls-server-name: home.test\n    insecure-skip-tls-verify: true'));
  expect(access).toMatchObject({ serverName: 'home.test', insecureSkipVerify: true });
});

test('kubeconfig: another context is asked for -> that one', async () => {
  const text = `${kubeconfig('token: abc')}
- name: two
  context: { cluster: c, user: u }
`;
  expect(await load(text, { context: 'two' })).toMatchObject({ contextName: 'two', defaultNamespace: 'default' });
});

const wrong: [string, string, { context?: string }, string][] = [
  ['not YAML', '{', {}, 'kubeconfig /etc/k/config: not YAML'],
  ['a list', '[]', {}, 'kubeconfig /etc/k/config: not a kubeconfig'],
  [
    'no such context',
    kubeconfig('{}'),
    { context: 'x' },
    'kubeconfig /etc/k/config: context: there is no "x"; known: "one"',
  ],
  ['no current context', 'clusters: []', {}, 'current-context is not set'],
  [
    'a missing file',
    kubeconfig('tokenFile: t', 'certificate-authority: gone.crt'),
    {},
    'certificate-authority: no such file: /etc/k/gone.crt',
  ],
  [
    'certificate without key',
    kubeconfig(`client-certificate-data: ${inline}`),
    {},
    'client-certificate and client-key must be given together',
  ],
  [
    'data that is no PEM',
    kubeconfig('client-certificate-data: AAAA'),
    {},
    'user "u": client-certificate-data: not PEM in base64',
  ],
  ['a proxy', kubeconfig('{}', 'proxy-url: http://proxy'), {}, 'cluster "c": proxy-url is not supported'],
  ['an auth provider', kubeconfig('auth-provider: {name: gcp}'), {}, 'auth-provider is not supported'],
  ['a password', kubeconfig('username: ann\n    password: x'), {}, 'username and password are not supported'],
  [
    'exec of another version',
    kubeconfig(exec('client.authentication.k8s.io/v1alpha1')),
    {},
    'exec: apiVersion "client.authentication.k8s.io/v1alpha1" is not supported',
  ],
  [
    'exec that wants a person',
    kubeconfig(`${exec()}\n      interactiveMode: Always`),
    {},
    'interactiveMode Always needs a person',
  ],
];
test.each(wrong)('kubeconfig: %s -> an error that says where and what', async (_what, text, options, message) => {
  await expect(load(text, options)).rejects.toThrow(message);
});

test.each(['v1', 'v1beta1'])(
  'kubeconfig: exec plugin of %s -> run with its arguments and environment, remembered until it runs out',
  async (version) => {
    const apiVersion = `client.authentication.k8s.io/${version}`;
    const sim = new Simulation({ seed: 1 });
    const commands: Command[] = [];
    const run = async (command: Command) => {
      commands.push(command);
      const expirationTimestamp = new Date(sim.world('x').clock.wallMs() + 60_000).toISOString();
      return printed({
        apiVersion,
        kind: 'ExecCredential',
        status: { token: `t${commands.length}`, expirationTimestamp },
      });
    };
    const text = kubeconfig(
      `${exec(apiVersion)}\n      provideClusterInfo: true`,
      `certificate-authority-data: ${inline}`,
    );
    const access = await load(text, { run, sim });
    expect(await Promise.all([access.bearerToken?.(), access.bearerToken?.()])).toEqual(['t1', 't1']);
    expect(commands[0]).toMatchObject({
      program: 'get-token',
      args: ['--for', 'home'],
      environment: { REGION: 'north' },
    });
    expect(JSON.parse(commands[0]!.environment!['KUBERNETES_EXEC_INFO']!)).toEqual({
      apiVersion,
      kind: 'ExecCredential',
      spec: { interactive: false, cluster: { server: 'https://10.0.0.1:6443', 'certificate-authority-data': inline } },
    });
    await sim.time.advance(49_000);
    expect(await access.bearerToken?.()).toBe('t1');
    await sim.time.advance(2_000);
    expect(await access.bearerToken?.()).toBe('t2');
    access.onUnauthorized?.();
    expect(await access.bearerToken?.()).toBe('t3');
  },
);

test('kubeconfig: exec plugin that gives certificates -> asked for before each connection', async () => {
  const status = { clientCertificateData: 'CRT', clientKeyData: 'KEY' };
  const run = async () => printed({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status });
  const access = await load(kubeconfig(exec()), { run });
  expect(await access.clientCertificatePair?.()).toEqual({ certificate: 'CRT', key: 'KEY' });
  expect(await access.bearerToken?.()).toBeUndefined();
});

const v1 = { apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential' };
const failures: [string, CommandResult, string][] = [
  [
    'is not installed',
    { kind: 'not started', reason: 'spawn get-token ENOENT', isMissing: true },
    'could not be started: spawn get-token ENOENT; install it with apt',
  ],
  ['never ends', { kind: 'timed out' }, 'did not end within 60 s'],
  ['fails', { kind: 'exited', code: 3, stdout: '', stderr: 'no\nsession\n' }, 'ended with code 3: no / session'],
  ['prints nonsense', { kind: 'exited', code: 0, stdout: 'hello', stderr: '' }, 'what it printed is not JSON'],
  [
    'prints another version',
    printed({ ...v1, apiVersion: 'x/v1' }),
    'printed x/v1 ExecCredential, expected client.authentication.k8s.io/v1',
  ],
  ['gives nothing', printed({ ...v1, status: {} }), 'gave neither a token nor a certificate'],
  [
    'gives half a pair',
    printed({ ...v1, status: { clientKeyData: 'KEY' } }),
    'clientCertificateData and clientKeyData must come together',
  ],
  [
    'gives a wrong time',
    printed({ ...v1, status: { token: 't', expirationTimestamp: 'soon' } }),
    'expirationTimestamp is not a time: soon',
  ],
];
test.each(failures)('kubeconfig: exec plugin %s -> an error that says what to do', async (_what, result, message) => {
  const access = await load(kubeconfig(exec()), { run: async () => result });
  await expect(access.bearerToken?.()).rejects.toThrow(
    `kubeconfig /etc/k/config: user "u": exec: get-token: ${message}`,
  );
});

test('home: --kubeconfig, $KUBECONFIG, ~/.kube/config -> the first there is, as kubectl looks', async () => {
  const files = { '/a': named('a'), '/b': named('b'), '/home/ann/.kube/config': named('home') };
  const environment = { KUBECONFIG: '/b:/c', HOME: '/home/ann' };
  expect((await find({ files, environment, kubeconfig: '/a' })).server).toBe('https://a');
  expect((await find({ files, environment })).server).toBe('https://b');
  expect((await find({ files, environment: { HOME: '/home/ann' } })).server).toBe('https://home');
  await expect(find({ files, kubeconfig: '/none' })).rejects.toThrow('kubeconfig /none: no such file');
  await expect(find({})).rejects.toThrow(/no kubeconfig:.*give one with --kubeconfig or \$KUBECONFIG/);
});

test('home: its kubeconfig is written again with another port -> that is where it is now; the file is gone -> not known', async () => {
  const files: Record<string, string> = { '/a': named('a:6443') };
  const access = await find({ files, kubeconfig: '/a' });
  files['/a'] = named('a:7443');
  expect([access.server, await access.currentServers?.()]).toEqual(['https://a:6443', ['https://a:7443']]);
  delete files['/a'];
  expect(await access.currentServers?.()).toBeUndefined();
});

test('home: its kubeconfig names further servers -> tried in turn; not a list of URLs -> refused', async () => {
  const withServers = (servers: string) =>
    named('a:6443').replace(
      'server: https://a:6443',
      `server: https://a:6443\n    extensions: [{name: portolan.dev/servers, extension: {servers: ${servers}}}]`,
    );
  const access = await find({ files: { '/a': withServers('[https://b:6443/]') }, kubeconfig: '/a' });
  expect([access.server, access.otherServers]).toEqual(['https://a:6443', ['https://b:6443']]);
  expect(await access.currentServers?.()).toEqual(['https://a:6443', 'https://b:6443']);
  for (const wrong of ['b', '[b]', '[1]'])
    await expect(find({ files: { '/a': withServers(wrong) }, kubeconfig: '/a' })).rejects.toThrow(
      /extension portolan.dev\/servers: want servers, a list of URLs/,
    );
});

test('home: several files in $KUBECONFIG -> read together, the first to say something is believed, paths beside their file', async () => {
  const elsewhere = `clusters:
- name: c
  cluster: { server: https://other }
- name: far
  cluster: { server: https://far, certificate-authority: ca.crt }
contexts:
- name: two
  context: { cluster: far, user: u }
current-context: two`;
  const files = { '/a/config': named('a'), '/b/config': elsewhere, '/b/ca.crt': 'CA of b' };
  const environment = { KUBECONFIG: '/missing::/a/config:/b/config' };
  expect(await find({ files, environment })).toMatchObject({ server: 'https://a', contextName: 'one' });
  const far = await find({ files, environment, context: 'two' });
  expect(far).toMatchObject({ server: 'https://far', certificateAuthority: 'CA of b' });
  expect(await far.bearerToken?.()).toBe('t');
  await expect(find({ files, environment: { KUBECONFIG: '/x:/y' } })).rejects.toThrow(
    'kubeconfig /x, /y: no such file',
  );
});

test('home: no kubeconfig but a Pod -> its service account, the token read anew each time', async () => {
  const directory = '/var/run/secrets/kubernetes.io/serviceaccount';
  const files: Record<string, string> = {
    [`${directory}/token`]: 'one\n',
    [`${directory}/ca.crt`]: 'CA',
    [`${directory}/namespace`]: 'portolan-system',
  };
  const environment = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };
  const access = await find({ files, environment });
  expect(access).toMatchObject({
    server: 'https://[fd00::1]:443',
    certificateAuthority: 'CA',
    defaultNamespace: 'portolan-system',
  });
  files[`${directory}/token`] = 'two\n';
  expect(await access.bearerToken?.()).toBe('two');
});

interface TestHost {
  readonly files?: Record<string, string>;
  readonly environment?: Record<string, string>;
  readonly run?: Host['run'];
  readonly sim?: Simulation;
}

function hostOf({ files = {}, environment = {}, run }: TestHost): Host {
  const noProgram = async (): Promise<CommandResult> => ({ kind: 'not started', reason: 'none', isMissing: true });
  return { environment, readText: async (path) => files[path], run: run ?? noProgram };
}

function load(text: string, options: TestHost & { context?: string } = {}) {
  const clock = (options.sim ?? new Simulation({ seed: 1 })).world('x').clock;
  return loadKubeconfig(text, { host: hostOf(options), clock, context: options.context, path: '/etc/k/config' });
}

function find(options: TestHost & { kubeconfig?: string; context?: string }) {
  const clock = new Simulation({ seed: 1 }).world('x').clock;
  return findHome({ host: hostOf(options), clock, kubeconfig: options.kubeconfig, context: options.context });
}

function kubeconfig(user: string, cluster = ''): string {
  return `apiVersion: v1
kind: Config
current-context: one
clusters:
- name: c
  cluster:
    server: https://10.0.0.1:6443/
    ${cluster}
users:
- name: u
  user:
    ${user}
contexts:
- name: one
  context: { cluster: c, user: u, namespace: shop }`;
}

function named(host: string): string {
  return kubeconfig('token: t').replace('10.0.0.1:6443/', host);
}

function exec(apiVersion = 'client.authentication.k8s.io/v1'): string {
  return `exec:
      apiVersion: ${apiVersion}
      command: get-token
      args: [--for, home]
      env: [{ name: REGION, value: north }]
      installHint: install it with apt`;
}

function printed(credential: object): CommandResult {
  return { kind: 'exited', code: 0, stdout: JSON.stringify(credential), stderr: '' };
}

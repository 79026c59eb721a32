// `portolan api` on a real etcd: what kubectl sees is what it sees on SQLite; a second process takes over when the first is
// killed or frozen; a home moves to etcd and back; what does not belong there is refused.

import { execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ApiProcess, connect, startApi } from './support/api-process.ts';
import { describeWith, pathOf } from './support/counterparts.ts';
import { type EtcdProcess, startEtcd } from './support/dns-process.ts';
import { freePort } from './support/free-port.ts';
import { Kubectl, until } from './support/kubectl.ts';

const portolan = fileURLToPath(new URL('../bin/portolan', import.meta.url));
const run = promisify(execFile);

/** Commands with what they read, run one after the other on both stores. */
const commands: readonly (readonly [line: string, stdin?: string])[] = [
  ['create namespace shop'],
  ['-n shop create configmap settings --from-literal=a=1'],
  ['-n shop create secret generic token --from-literal=t=hunter2'],
  ['-n shop create service clusterip web --tcp=80:8080 --clusterip=10.96.5.5'],
  ['-n shop get configmap,secret,service -o name'],
  ['-n shop patch configmap settings --type=merge -p {"data":{"b":"2"}}'],
  ['-n shop get configmap settings -o jsonpath={.data}'],
  ['-n shop label configmap settings tier=front'],
  ['-n shop get configmap -l tier=front -o name'],
  ['-n shop create configmap settings --from-literal=a=1'],
  ['-n shop create service clusterip other --tcp=80:8080 --clusterip=10.96.5.5'],
  [
    'apply --server-side --field-manager=me -f -',
    '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied","namespace":"shop"},"data":{"x":"1"}}',
  ],
  [
    'apply --server-side --field-manager=other -f -',
    '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied","namespace":"shop"},"data":{"x":"2"}}',
  ],
  ['-n shop get configmap missing'],
  ['-n shop delete configmap settings'],
  ['-n shop get configmap -o name'],
  ['auth can-i create pods --as=nobody'],
  ['delete namespace shop'],
  ['get namespace shop'],
];

// They wait for leases, deadlines and new processes: all at the same time.
describeWith(['etcd', 'kubectl'], 'portolan api on etcd', () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-api-etcd-'));
  const running: ApiProcess[] = [];
  let etcd: EtcdProcess;
  beforeAll(async () => {
    etcd = await startEtcd(join(directory, 'etcd'));
  });
  afterAll(async () => {
    await Promise.all(running.map((api) => api.stop('SIGKILL')));
    await etcd?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  const onEtcd = (prefix: string) => ['--etcd', etcd.url, '--etcd-prefix', prefix, '--snapshots', 'none'];
  const start = async (name: string, args: readonly string[], port?: number) => {
    const api = await startApi({ data: join(directory, name), args, ...(port === undefined ? {} : { port }) });
    running.push(api);
    return api;
  };
  const kubectlOf = (api: Pick<ApiProcess, 'kubeconfig'>, name: string) =>
    new Kubectl({
      path: pathOf('kubectl')!,
      kubeconfig: api.kubeconfig,
      directory: join(directory, `kubectl-${name}`),
    });
  const refused = async (...args: string[]) => {
    const words = ['api', '--listen', `127.0.0.1:${await freePort()}`, ...args];
    const ended = await run(portolan, words, { timeout: 30_000 }).catch((error) => error);
    return `${ended.stdout ?? ''}${ended.stderr ?? ''}`;
  };

  test.concurrent('kubectl: a table of commands on SQLite and on etcd -> equal results', async () => {
    const homes = await Promise.all([start('sqlite', ['--snapshots', 'none']), start('table', onEtcd('/table/'))]);
    const [sqlite, inEtcd] = homes.map((api, index) => kubectlOf(api, `table-${index}`)) as [Kubectl, Kubectl];
    for (const [line, stdin] of commands) {
      const [one, other] = await Promise.all([sqlite.run(line, stdin), inEtcd.run(line, stdin)]);
      expect({ line, ...other }).toEqual({ line, ...one });
    }
  });

  test.concurrent('two processes: the second passes connections on, and serves when the first is killed or frozen; nothing is lost', async () => {
    const [one, two] = [await freePort(), await freePort()];
    const keys = join(directory, 'keys');
    writeFileSync(keys, `${Buffer.alloc(32, 7).toString('base64')}\n`, { mode: 0o600 });
    const args = [...onEtcd('/two/'), '--etcd-keys-file', keys];
    const first = await start('two-a', args, one);
    const words = ['api', '--data', join(directory, 'two-b'), '--listen', `127.0.0.1:${two}`, ...args];
    const second = spawn(portolan, words, { stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    for (const stream of [second.stdout, second.stderr]) stream.on('data', (chunk) => (said += chunk));
    try {
      await until(() => said.includes('waiting, and passing connections on'));
      const kubectl = kubectlOf(first, 'two');
      await kubectl.ok('create configmap before --from-literal=a=1');
      expect(await kubectl.ok(`--server https://127.0.0.1:${two} get configmap before -o name`)).toBe(
        'configmap/before',
      );
      first.child.kill('SIGSTOP');
      await until(() => said.includes('ready https://'));
      const other = `--server https://127.0.0.1:${two}`;
      expect(await kubectl.ok(`${other} get configmap before -o name`)).toBe('configmap/before');
      await kubectl.ok(`${other} create configmap after --from-literal=a=1`);
      first.child.kill('SIGCONT');
      await until(() => first.child.exitCode !== null);
      expect(first.child.exitCode).toBe(1);
      expect(first.errors()).toContain('the store is lost');
    } finally {
      second.kill('SIGTERM');
    }
    await until(() => second.exitCode !== null || second.signalCode !== null);
    const again = await start('two-a', args, one);
    expect(await kubectlOf(again, 'again').ok('get configmap before after -o name')).toBe(
      'configmap/before\nconfigmap/after',
    );
  });

  test.concurrent('killed: the process that waits, or one at the same address, serves long before the lease has ended', async ({
    onTestFinished,
  }) => {
    // Where elections may take 50 s, no lease is shorter than 75 s.
    const slow = await startEtcd(join(directory, 'etcd-slow'), [
      '--heartbeat-interval=1000',
      '--election-timeout=50000',
    ]);
    onTestFinished(() => slow.stop());
    const keys = join(directory, 'keys-killed');
    writeFileSync(keys, `${Buffer.alloc(32, 7).toString('base64')}\n`, { mode: 0o600 });
    const args = ['--etcd', slow.url, '--etcd-keys-file', keys, '--snapshots', 'none'];
    const first = await start('killed-a', args);
    await kubectlOf(first, 'killed').ok('create configmap kept --from-literal=a=1');
    const waiting = start('killed-b', args, await freePort());
    await first.stop('SIGKILL');
    const second = await waiting;
    await second.stop('SIGKILL');
    const third = await start('killed-b', args, second.port);
    expect(await kubectlOf(third, 'third').ok('get configmap kept -o name')).toBe('configmap/kept');
  });

  test.concurrent('etcd frozen: requests are refused with a Status, readyz says why, watches end; when it is back all is well', async ({
    onTestFinished,
  }) => {
    const frozen = await startEtcd(join(directory, 'etcd-frozen'));
    onTestFinished(() => frozen.stop());
    const api = await start('frozen', ['--etcd', frozen.url, '--snapshots', 'none']);
    const connection = await connect(api.kubeconfig);
    const create = async (name: string) => {
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } };
      const { status, body } = await connection.request('POST', '/api/v1/namespaces/default/configmaps', object);
      return { http: status, ...JSON.parse(body.toString()) };
    };
    const get = async (path: string) => {
      const { status, body } = await connection.request('GET', path);
      return `${status} ${body}`;
    };
    expect((await create('one')).http).toBe(201);
    const watch = connection.stream('/api/v1/configmaps?watch=true');
    const watchEnded = new Promise((resolve) => watch.once('end', resolve).resume());
    frozen.signal('SIGSTOP');
    try {
      const underWay = await create('two');
      expect(underWay).toMatchObject({ http: 503, code: 503, reason: 'ServiceUnavailable' });
      expect(underWay.message).toMatch(/whether it was written is not known yet: .*no answer within/);
      const next = await create('three');
      expect([next.http, next.message]).toEqual([
        503,
        expect.stringMatching(/the store (takes no writes|cannot be read): etcd/),
      ]);
      expect(await get('/readyz?verbose')).toMatch(/^503 [\s\S]*\[-\]store failed: etcd/);
      // Nobody knows whether another process serves now: it would show nothing of what happens there.
      await watchEnded;
      expect(await get('/api/v1/namespaces/default/configmaps/one')).toMatch(/^503 .*etcd does not answer/);
    } finally {
      frozen.signal('SIGCONT');
    }
    await until(async () => (await get('/readyz')) === '200 ok');
    expect(await get('/api/v1/namespaces/default/configmaps/one')).toMatch(/^200/);
    expect((await create('four')).http).toBe(201);
    connection.close();
  });

  test.concurrent('migrate: to etcd and back -> uids, addresses, creation times and revisions stay; an older revision is 410', async () => {
    const before = await start('moving', ['--snapshots', 'none']);
    const kubectl = kubectlOf(before, 'moving');
    await kubectl.ok('create service clusterip web --tcp=80:8080');
    const fields =
      'jsonpath={.metadata.uid},{.spec.clusterIP},{.metadata.creationTimestamp},{.metadata.resourceVersion}';
    const web = await kubectl.ok(['get', 'service', 'web', '-o', fields]);
    const data = join(directory, 'moving');
    const etcdFlags = ['--etcd', etcd.url, '--etcd-prefix', '/moving/'];
    const migrate = (to: string) => run(portolan, ['api', 'migrate', '--data', data, ...etcdFlags, '--to', to]);
    await expect(migrate('etcd')).rejects.toThrow(/another process has it open/);
    await before.stop();
    await migrate('etcd');
    expect(await refused('--data', data)).toMatch(/this home has moved to etcd under \/moving\//);
    const moved = await start('moving', onEtcd('/moving/'), before.port);
    expect(await kubectl.ok(['get', 'service', 'web', '-o', fields])).toBe(web);
    const old = await kubectl.refused('get --raw /api/v1/services?resourceVersion=2&resourceVersionMatch=Exact');
    expect(old).toMatch(/too old|Expired|410|Gone/i);
    await expect(migrate('folder')).rejects.toThrow(/has the home open in etcd/);
    await kubectl.ok('create configmap there --from-literal=a=1');
    await moved.stop();
    await migrate('folder');
    expect(await refused('--data', data, ...onEtcd('/moving/'))).toMatch(/holds a home already|has moved to/);
    await start('moving', ['--snapshots', 'none'], before.port);
    expect(await kubectl.ok(['get', 'service', 'web', '-o', fields])).toBe(web);
    expect(await kubectl.ok('get configmap there -o name')).toBe('configmap/there');
  });

  test.concurrent('refused with reason: another home under the prefix, other keys, no keys, an older etcd', async () => {
    const home = await start('mine', onEtcd('/mine/'));
    await kubectlOf(home, 'mine').ok('create configmap one --from-literal=a=1');
    await home.stop();
    const other = await start('theirs', ['--snapshots', 'none']);
    await other.stop();
    rmSync(join(directory, 'theirs', 'store'), { recursive: true });
    expect(await refused('--data', join(directory, 'theirs'), ...onEtcd('/mine/'))).toMatch(
      /home \w+ is stored there, and .* has the keys of home/,
    );
    const empty = join(directory, 'empty');
    mkdirSync(empty);
    expect(await refused('--data', empty, ...onEtcd('/mine/'))).toMatch(/has no keys; copy pki\//);
    const seen = join(directory, 'mine', 'etcd-seen.json');
    writeFileSync(seen, JSON.stringify({ prefix: '/mine/', revision: 1_000_000 }));
    expect(await refused('--data', join(directory, 'mine'), ...onEtcd('/mine/'))).toMatch(
      /restored from an older backup/,
    );
    const accepted = await start('mine', [...onEtcd('/mine/'), '--etcd-accept-restored']);
    const list = JSON.parse(await kubectlOf(accepted, 'accepted').ok('get --raw /api/v1/configmaps'));
    expect(Number(list.metadata.resourceVersion)).toBeGreaterThan(1_000_000);
  });
});

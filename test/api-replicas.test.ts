// A home of two processes on one etcd: clients know the addresses of both and move on; a clusterset goes on while its broker
// loses a process and a member of its etcd; keys are replaced one process after the other; `portolan up` on etcd.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { measureBrokerFaults } from '../bench/mcs/broker-faults.ts';
import { parseJoinToken } from '../src/clusterset/membership/join-token.ts';
import { type ApiProcess, startApi } from './support/api-process.ts';
import { describeWith, pathOf } from './support/counterparts.ts';
import { type EtcdProcess, startEtcd } from './support/dns-process.ts';
import { freePort } from './support/free-port.ts';
import { Kubectl, until } from './support/kubectl.ts';
import { portolan, runPortolan } from './support/portolan.ts';
import { type RoleProcess, startRole } from './support/roles.ts';

// They wait for leases and new processes: all at the same time.
describeWith(['etcd', 'kubectl'], 'a home of several processes', () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-replicas-'));
  const running: (ApiProcess | RoleProcess)[] = [];
  let etcd: EtcdProcess;
  beforeAll(async () => {
    etcd = await startEtcd(join(directory, 'etcd'));
  });
  afterAll(async () => {
    await Promise.all(running.map((process) => process.stop('SIGKILL')));
    await etcd?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  const onEtcd = (prefix: string) => ['--etcd', etcd.url, '--etcd-prefix', prefix, '--snapshots', 'none'];
  const keysFile = (name: string, ...numbers: number[]) => {
    const path = join(directory, name);
    const lines = numbers.map((number) => `${Buffer.alloc(32, number).toString('base64')}\n`);
    writeFileSync(path, lines.join(''), { mode: 0o600 });
    return path;
  };
  const start = async (name: string, args: readonly string[], port?: number) => {
    const options = { data: join(directory, name), args, ...(port === undefined ? {} : { port }) };
    const api = await startApi({ ...options, waitMs: 300_000 });
    running.push(api);
    return api;
  };
  const kubectlOf = (kubeconfig: string, name: string) =>
    new Kubectl({ path: pathOf('kubectl')!, kubeconfig, directory: join(directory, `kubectl-${name}`) });

  test.concurrent('the serving process is killed: its kubeconfig and join tokens name both; kubectl, commands and a part go on at the other', async () => {
    const [one, two] = [await freePort(), await freePort()];
    const keys = ['--etcd-keys-file', keysFile('keys', 7)];
    const first = await start('a', [...onEtcd('/both/'), ...keys, '--replica', `127.0.0.1:${two}`], one);
    const second = start('b', [...onEtcd('/both/'), ...keys, '--replica', `127.0.0.1:${one}`], two);
    const at = ['--kubeconfig', first.kubeconfig];
    expect(await kubectlOf(first.kubeconfig, 'both').ok('create namespace shop')).toMatch(/created/);
    expect((await runPortolan(['broker', 'init', ...at])).code).toBe(0);
    const both = `https://127.0.0.1:${one},https://127.0.0.1:${two}`;
    const serverOf = async (...more: string[]) => {
      const token = await runPortolan(['broker', 'token', 'east', ...at, ...more]);
      expect(token).toMatchObject({ code: 0 });
      return parseJoinToken(token.out).server;
    };
    expect(await serverOf()).toBe(both);
    expect(await serverOf('--server', 'https://x:1/, https://y:2')).toBe('https://x:1,https://y:2');
    const words = ['--cluster-id', 'west', '--listen', '127.0.0.1:0', '--log-level', 'error'];
    const dns = await startRole(['dns', ...at, ...words, '--admin-listen', '127.0.0.1:0']);
    running.push(dns);
    await until(async () => (await dns.readyz()).status === 200);
    await first.stop('SIGKILL');
    await second;
    expect((await kubectlOf((await second).kubeconfig, 'second').ok('get namespace shop -o name')).trim()).toBe(
      'namespace/shop',
    );
    expect((await runPortolan(['status', ...at])).err).toBe('');
    expect(await serverOf('--renew')).toBe(both);
    const written = () => kubectlOf(`${directory}/b/admin.kubeconfig`, 'lease').ok('get lease -A -o json');
    const renewals = async () =>
      (JSON.parse(await written()).items as { metadata: { name: string }; spec: { renewTime: string } }[])
        .filter(({ metadata }) => metadata.name.includes('dns'))
        .map(({ spec }) => spec.renewTime);
    const before = await renewals();
    expect(before.length).toBeGreaterThan(0);
    await until(async () => (await renewals()).some((time) => !before.includes(time)));
  });

  test.concurrent('--replica without --etcd -> usage', async () => {
    const ended = await runPortolan(['api', '--data', join(directory, 'never'), '--replica', '127.0.0.1:1']);
    expect([ended.code, ended.err]).toEqual([
      2,
      expect.stringContaining('--replica: the processes of a home share an etcd'),
    ]);
  });

  test.concurrent('a key is put in front, then the old one removed -> the home starts each time, and nothing is sealed by the old one', async () => {
    const started = async (...numbers: number[]) => {
      const api = await start('rotated', [
        ...onEtcd('/rotated/'),
        '--etcd-keys-file',
        keysFile('rotated-keys', ...numbers),
      ]);
      const kubectl = kubectlOf(api.kubeconfig, 'rotated');
      return { kubectl, stop: () => api.stop() };
    };
    const before = await started(1);
    await before.kubectl.ok('create secret generic token --from-literal=t=hunter2');
    await before.stop();
    await (await started(2, 1)).stop();
    const after = await started(2);
    expect(await after.kubectl.ok('get secret token -o jsonpath={.data.t}')).toBe(
      Buffer.from('hunter2').toString('base64'),
    );
  });

  test.concurrent('portolan up on etcd: its objects are there for the next process, which ends when it is asked to while it waits', async () => {
    const flags = ['up', '--dashboard', 'none', '--proxy', 'off', '--dns-listen', '127.0.0.1:0', ...onEtcd('/up/')];
    const up = (...more: string[]) => startRole([...flags, ...more], /^home .*kubeconfig/m);
    const port = await freePort();
    const first = await up('--data', join(directory, 'up'), '--listen', `127.0.0.1:${port}`);
    running.push(first);
    const kubectl = kubectlOf(join(directory, 'up', 'admin.kubeconfig'), 'up');
    await kubectl.ok('create namespace shop');
    const words = [...flags, '--data', join(directory, 'up-2'), '--log-level', 'info'];
    const waiting = spawn(portolan, words, { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    waiting.stderr.on('data', (chunk) => (said += chunk));
    await until(() => said.includes('another process serves this home'));
    waiting.kill('SIGTERM');
    await until(() => waiting.exitCode !== null || waiting.signalCode !== null);
    await first.stop();
    const second = await up('--data', join(directory, 'up'), '--listen', `127.0.0.1:${port}`);
    running.push(second);
    expect(await kubectl.ok('get namespace shop -o name')).toBe('namespace/shop');
  });

  test.concurrent('a broker on an etcd of three members: its process and a member are killed while endpoints change -> every change arrives', async () => {
    const options = { clusters: 2, services: 20, seconds: 3, changesPerSecond: 2 };
    const figures = await measureBrokerFaults(options, ['etcd']);
    const figure = (name: string) => figures.find(({ name: found }) => found.endsWith(name))!.value;
    expect(figure('change to the last cluster, p99')).toBeGreaterThan(0);
    expect(figure('of them failed')).toBeLessThan(figure('writes to the broker'));
  });
});

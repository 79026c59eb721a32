// External services by the real processes of a cluster that is in no clusterset: what a person types, and what DNS answers.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { firstAsItStands, mongo } from '../src/external/testing/seed-examples.ts';
import { type ApiProcess, startApi } from './support/api-process.ts';
import { describeWith, pathOf } from './support/counterparts.ts';
import { type DnsProcess, startDnsProcess } from './support/dns-process.ts';
import { portolan, run, runPortolan } from './support/portolan.ts';

const folder = mkdtempSync(join(tmpdir(), 'external-roles-'));
const eventually = <T>(read: () => Promise<T> | T) => expect.poll(read, { timeout: 30_000, interval: 200 });

describeWith(['kubectl', 'dig'], 'external services, roles', () => {
  let api: ApiProcess;
  let agent: ChildProcess;
  let dns: DnsProcess;
  const kubectl = (args: string[], input = '') =>
    run(pathOf('kubectl')!, ['--kubeconfig', api.kubeconfig, '--cache-dir', join(folder, 'cache'), ...args], { input });

  beforeAll(async () => {
    api = await startApi({ data: join(folder, 'home') });
    agent = spawn(portolan, ['agent', '--kubeconfig', api.kubeconfig], { stdio: 'ignore' });
    dns = await startDnsProcess(['--kubeconfig', api.kubeconfig, '--cluster-id', 'east']);
    await dns.whenReady();
  }, 90_000);

  afterAll(async () => {
    agent?.kill('SIGKILL');
    await dns?.stop();
    await api?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test('[004-01] kubectl create: the first example of the seed -> refused with all its mistakes', async () => {
    const { code, err } = await kubectl(['create', '-f', '-'], firstAsItStands);
    expect(code).not.toBe(0);
    for (const field of [
      'spec.destination.extension',
      'spec.destination.endpoints[2].address',
      'caCert.inline',
      'clientKey.secret',
    ])
      expect(err).toContain(field);
  });

  test('[004-06, 004-45, 004-46] kubectl create: the mongo example -> an address of 242.0.0.0/8 that DNS answers, and explain knows', async () => {
    const created = await kubectl(['create', '-f', '-'], mongo.replace(/status:[\s\S]*/, ''));
    expect(created.err).toBe('');
    const vip = async () =>
      (await kubectl(['-n', 'portolan-system', 'get', 'mes', 'mongo', '-o', 'jsonpath={.status.vips[0].ip}'])).out;
    await eventually(vip).toMatch(/^242\./);
    const address = await vip();
    const dig = async () =>
      (
        await run(pathOf('dig')!, ['@127.0.0.1', '-p', String(dns.port), '+short', 'mongo.ext.svc.local', 'A'])
      ).out.trim();
    await eventually(dig).toBe(address);
    const explained = await runPortolan([
      'explain',
      'connection',
      '--to',
      `${address}:27017`,
      '--kubeconfig',
      api.kubeconfig,
    ]);
    expect(explained.err).toBe('');
    expect(explained.out).toContain('mongo spec.match[0]: virtual IP port 27017 tcp');
    expect(explained.out).toContain('10.0.0.1:27017, 10.0.0.2:27017');
    const asked = ['--to', '10.9.9.9:27017', '--host', 'mongo.ext.svc.local', '--kubeconfig', api.kubeconfig];
    const byHost = await runPortolan(['explain', 'connection', ...asked]);
    expect(byHost.err).toBe('');
    expect(byHost.out).toContain('no rule captures it');
    const wrong = await runPortolan(['explain', 'connection', '--to', 'nowhere', '--kubeconfig', api.kubeconfig]);
    expect(wrong.err).toContain('write IP:PORT');
    expect(wrong.code).not.toBe(0);
  });

  test('[004-02] another namespace -> refused', async () => {
    const { err } = await kubectl(
      ['create', '-f', '-'],
      mongo.replace('namespace: portolan-system', 'namespace: default'),
    );
    expect(err).toContain('only accepted in namespace portolan-system');
  });
});

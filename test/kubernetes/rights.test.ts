// Every part as a local process with the token of its own account on a real Kubernetes API server: it works, and none of its
// requests is refused.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { asArgs } from '../support/kubectl.ts';
import { portolan, runPortolan } from '../support/portolan.ts';
import { KubernetesApiServer, kubeconfigText } from './api-server.ts';

const namespace = 'portolan-system';

interface AuditLine {
  readonly verb: string;
  readonly user: { readonly username: string };
  readonly objectRef?: { readonly apiGroup?: string; readonly resource: string; readonly subresource?: string };
  readonly responseStatus?: { readonly code: number };
}

describe('rights on Kubernetes', () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-rights-'));
  const parts = new Map<string, { readonly child: ChildProcess; admin: string; log: string }>();
  let broker: KubernetesApiServer;
  let member: KubernetesApiServer;

  beforeAll(async () => {
    [broker, member] = await Promise.all([KubernetesApiServer.start(), KubernetesApiServer.start()]);
  });
  afterAll(async () => {
    for (const { child } of parts.values()) child.kill('SIGKILL');
    await Promise.all([broker?.stop(), member?.stop()]);
    rmSync(directory, { recursive: true, force: true });
  });

  const type = async (at: KubernetesApiServer, line: string) => {
    const { code, out, err } = await runPortolan([...asArgs(line), '--kubeconfig', at.kubeconfig]);
    expect([line, code, err.replace(/^(note|warning):.*\n/gm, '')]).toEqual([line, 0, '']);
    return out;
  };

  function start(name: string, ...args: string[]): void {
    const kubeconfig = join(directory, `${name}.kubeconfig`);
    const token = member.kubectl('create', 'token', `portolan-${name}`, '-n', namespace, '--duration=1h').trim();
    writeFileSync(kubeconfig, kubeconfigText(member, token));
    const child = spawn(portolan, [...args, '--kubeconfig', kubeconfig, '--admin-listen', '127.0.0.1:0'], {
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: directory,
    });
    const part = { child, admin: '', log: '' };
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        part.log += chunk;
        part.admin ||= /admin\D*(http:\/\/127\.0\.0\.1:\d+)/.exec(part.log)?.[1] ?? '';
      });
    }
    parts.set(name, part);
  }

  test('all parts with their own accounts -> ready, and a service exported here is imported', async () => {
    const set = ['peering.enabled=true', 'peering.trustDomain=acme.example', 'peering.advertise=127.0.0.1:8008'];
    await type(member, `install ${[...set, 'xds.enabled=true'].map((one) => `--set ${one}`).join(' ')}`);
    await type(broker, 'broker init --clusterset prod --clusterset-range 127.77.0.0/16');
    const token = (await type(broker, 'broker token east --clusterset prod')).trim().split(/\s+/).at(-1)!;
    await type(member, `join ${token}`);
    start('agent', 'agent');
    start('dns', 'dns', '--cluster-id', 'east', '--listen', '127.0.0.1:0');
    start('proxy', 'proxy', '--mode', 'userspace', '--range', '127.77.0.0/16', '--node', 'one');
    start('peering', 'peering', '--trust-domain', 'acme.example', '--listen', '127.0.0.1:0');
    start('xds', 'xds', '--cluster-id', 'east', '--listen', '127.0.0.1:0');
    member.kubectl('create', 'namespace', 'shop');
    member.kubectl('create', 'service', 'clusterip', 'checkout', '--tcp=80:8080', '-n', 'shop');
    const slice = {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'checkout-1', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'checkout' } },
      addressType: 'IPv4',
      ports: [{ name: '80-8080', port: 8080, protocol: 'TCP' }],
      endpoints: [{ addresses: ['10.1.0.7'], conditions: { ready: true } }],
    };
    const file = join(directory, 'slice.json');
    writeFileSync(file, JSON.stringify(slice));
    member.kubectl('create', '-f', file);
    await type(member, 'export shop/checkout --wait');
    for (const [name, part] of parts) {
      await until(
        `${name} is ready`,
        () => part.log,
        async () => part.admin !== '' && (await fetch(`${part.admin}/readyz`)).ok,
      );
    }
    const imported = () => member.kubectl('get', 'serviceimports.multicluster.x-k8s.io', '-n', 'shop', '-o', 'name');
    await until('the import is there', imported, async () => imported().includes('checkout'));
    const leases = () => member.kubectl('get', 'leases', '-n', namespace, '-l', 'portolan.dev/part', '-o', 'name');
    await until('all parts report', leases, async () =>
      [...parts.keys()].every((name) => leases().includes(`portolan-${name}-`)),
    );
  });

  test('the audit log -> no request of any part was refused; rights that were not used are listed', async () => {
    await pause(3_000);
    const lines = readFileSync(member.auditLog, 'utf8')
      .split('\n')
      .filter((line) => line.includes(`system:serviceaccount:${namespace}:portolan-`))
      .map((line) => JSON.parse(line) as AuditLine);
    const refused = lines.filter(({ responseStatus }) => responseStatus?.code === 403).map(describeLine);
    expect([...new Set(refused)]).toEqual([]);
    for (const name of parts.keys()) {
      const own = lines.filter(({ user }) => user.username.endsWith(`:portolan-${name}`));
      console.log(`${name}: ${[...new Set(own.map(describeLine))].sort().join(', ')}`);
    }
  });
});

function describeLine({ user, verb, objectRef }: AuditLine): string {
  const account = user.username.split(':').at(-1);
  const group = objectRef?.apiGroup === undefined ? '' : `.${objectRef.apiGroup}`;
  const sub = objectRef?.subresource === undefined ? '' : `/${objectRef.subresource}`;
  return `${account} ${verb} ${objectRef?.resource ?? 'path'}${group}${sub}`;
}

async function until(what: string, state: () => string, isSo: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 120; tries++) {
    if (await isSo().catch(() => false)) return;
    await pause(500);
  }
  throw new Error(`after 60 s still not: ${what}\n${state()}`);
}

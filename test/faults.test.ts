// Faults made on real processes: parts killed, a home and a broker that go away, a clock that is off. Output of
// status, doctor, peer list and /readyz of each part meanwhile. The whole table of faults is simulated, in
// sim/scenarios/doctor.test.ts.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { addressClaimType } from '../src/addresses/address-claim.ts';
import { claimFor } from '../src/addresses/claim.ts';
import { createRealHost } from '../src/base/real/host.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { serviceImportType } from '../src/clusterset/kinds/service-import.ts';
import type { Diagnosis } from '../src/doctor/diagnosis.ts';
import { requestToken } from '../src/kube/client/account-token.ts';
import { type Client, createClient } from '../src/kube/client/client.ts';
import { findHome } from '../src/kube/client/kubeconfig.ts';
import { type Lease, leaseType } from '../src/kube/objects/lease.ts';
import { namespaceType } from '../src/kube/objects/namespace.ts';
import { type AnyObject, apiVersionOf } from '../src/kube/objects/object.ts';
import { partLabel, partState } from '../src/kube/objects/part-lease.ts';
import { clusterRoleBindingType } from '../src/kube/objects/rbac.ts';
import { peerType } from '../src/peering/kinds/peer.ts';
import { type ApiProcess, startApi } from './support/api-process.ts';
import { describeWith, pathOf } from './support/counterparts.ts';
import { until } from './support/dns-process.ts';
import { takeLoopbackPart } from './support/loopback-part.ts';
import { portolan, run, runPortolan } from './support/portolan.ts';
import { type RoleProcess, startRole } from './support/roles.ts';

const directory = mkdtempSync(join(tmpdir(), 'portolan-faults-'));
const loopbackPart = await takeLoopbackPart();
const parts = ['agent', 'dns', 'peering', 'proxy', 'xds'] as const;
type Part = (typeof parts)[number];

let broker: ApiProcess;
let home: ApiProcess;
let authority: RoleProcess;
const running = new Map<Part, RoleProcess>();

const at = (api: ApiProcess) => ['--kubeconfig', api.kubeconfig];
const free = ['--admin-listen', '127.0.0.1:0'];

function argsOf(part: Part): string[] {
  const common = [part, ...at(home), ...free, '--log-level', 'error'];
  const own: Record<Part, string[]> = {
    agent: [],
    dns: ['--cluster-id', 'west', '--listen', '127.0.0.1:0'],
    peering: ['--trust-domain', 'west.example', '--listen', '127.0.0.1:0'],
    proxy: ['--mode', 'userspace', '--range', `127.${loopbackPart}.0.0/24`, '--cluster-id', 'west'],
    xds: ['--cluster-id', 'west', '--listen', '127.0.0.1:0', '--virtual-port', '0', '--ingress-port', '0'],
  };
  return [...common, ...own[part]];
}

async function startParts(): Promise<void> {
  await Promise.all(parts.map(async (part) => running.set(part, await startRole(argsOf(part)))));
}

async function doctor(...more: string[]): Promise<Diagnosis & { exitCode: number | null }> {
  const { out, code } = await runPortolan(['doctor', '-o', 'json', ...at(home), ...more]);
  return { ...(JSON.parse(out) as Diagnosis), exitCode: code };
}

async function clientOf({ kubeconfig }: ApiProcess): Promise<Client> {
  const world = createRealWorld();
  const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig });
  return createClient(world.network.http(access), { world, userAgent: 'test' });
}

const codesOf = ({ findings }: Diagnosis) => [...new Set(findings.map(({ code }) => code))].sort();

beforeAll(async () => {
  const started = (name: string) => startApi({ data: join(directory, name) });
  [broker, home] = await Promise.all([started('broker'), started('west')]);
  const typed = async (...words: string[]) => {
    const { code, out, err } = await runPortolan(words);
    expect(code, err).toBe(0);
    return out.trim();
  };
  await typed('broker', 'init', '--clusterset', 'prod', ...at(broker));
  const token = await typed('broker', 'token', 'west', '--clusterset', 'prod', ...at(broker));
  await typed('join', token.split('\n').at(-1)!, ...at(home));
  await startParts();
  const federation = ['--federation', 'world', '--clusterset', 'prod', '--broker-kubeconfig', broker.kubeconfig];
  authority = await startRole(['authority', ...federation, '--listen', '127.0.0.1:0', ...free, '--log-level', 'error']);
  const client = await clientOf(home);
  await client.create(peerType, {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'Peer',
    metadata: { name: 'acme', namespace: 'portolan-system' },
    spec: { trust: { domain: 'acme.example', bundle: 'PEM' } },
  });
  client.close();
}, 120_000);

afterAll(async () => {
  for (const process of [...running.values(), authority]) await process?.stop('SIGKILL');
  for (const api of [home, broker]) await api?.stop('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
});

describe('faults of processes', () => {
  test('every part runs -> ready, and doctor asks resolver and proxy through the home', async () => {
    for (const [part, process] of running)
      await until(`${part} is ready`, async () => (await process.readyz()).status === 200);
    await until('all parts were asked', async () => {
      const { complete, skipped } = await doctor();
      return complete && skipped.length === 0;
    });
  });

  describeWith(['faketime'], 'a clock', () => {
    test('the clock of this machine is two minutes ahead -> PTL0701 in doctor and status, exit code 7', async () => {
      const ahead = (...words: string[]) => run(pathOf('faketime')!, ['-f', '+2m', portolan, ...words]);
      const found = await ahead('doctor', '-o', 'json', ...at(home));
      expect(codesOf(JSON.parse(found.out))).toContain('PTL0701');
      expect(found.code).toBe(7);
      const { out, code } = await ahead('status', ...at(home));
      expect(out).toMatch(/^problem: PTL0701 .* its clock is .* behind this machine's; next step: Synchronise/m);
      expect(code).toBe(7);
    });
  });

  test('a resolver loses its right to read -> PTL0502, PTL0503 once an import changes, and PTL0105 names the right; given back -> all gone', async () => {
    const rights = ['install', '--rights-only', '--set', 'dns.clusterId=west', ...at(home)];
    expect((await runPortolan(rights)).code).toBe(0);
    const client = await clientOf(home);
    const account = { namespace: 'portolan-system', name: 'portolan-dns' };
    const { token } = await requestToken(client, { ...account, lifetimeMs: 3_600_000 });
    const kubeconfig = join(directory, 'dns.kubeconfig');
    const { users: _admin, ...config } = parse(readFileSync(home.kubeconfig, 'utf8'));
    const user = config.contexts[0].context.user;
    writeFileSync(kubeconfig, JSON.stringify({ ...config, users: [{ name: user, user: { token } }] }));
    await running.get('dns')!.stop();
    running.set(
      'dns',
      await startRole(argsOf('dns').map((word, i, all) => (all[i - 1] === '--kubeconfig' ? kubeconfig : word))),
    );
    await client.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    const metadata = { namespace: 'shop', name: 'pay' };
    const spec = { type: 'ClusterSetIP', ips: ['243.0.0.9'], ports: [{ port: 80, protocol: 'TCP' }] };
    for (const address of ['243.0.0.9', '243.0.0.10'])
      await client.create(addressClaimType, claimFor({ kind: 'ServiceImport', ...metadata }, address));
    await client.create(serviceImportType, {
      ...{ apiVersion: apiVersionOf(serviceImportType), kind: 'ServiceImport', metadata, spec },
    } as AnyObject);
    const told = ['PTL0105', 'PTL0502', 'PTL0503'];
    const found = async () => codesOf(await doctor()).filter((code) => told.includes(code));
    await until('it answers as it should', async () => (await found()).length === 0 && (await doctor()).complete);

    await client.delete(clusterRoleBindingType, { name: 'portolan:dns' });
    await client.patch(serviceImportType, metadata, { kind: 'merge', body: { spec: { ips: ['243.0.0.10'] } } });
    await until('all are found', async () => (await found()).length === told.length);
    const { findings } = await doctor();
    const messageOf = (code: string) => findings.find((one) => one.code === code)?.message;
    expect(messageOf('PTL0502')).toMatch(/^it answers .*clusterset\.local.* from old data/);
    expect(messageOf('PTL0105')).toMatch(
      /^its account may not .*\b(list|watch) serviceimports\.multicluster\.x-k8s\.io/,
    );
    expect(messageOf('PTL0503')).toBe('it answers 243.0.0.9, expected 243.0.0.10');

    expect((await runPortolan(rights)).code).toBe(0);
    await until('none is', async () => (await found()).length === 0);
    await client.delete(serviceImportType, metadata);
    client.close();
  });

  test('the broker is killed -> the agent is not ready, status ends with 6, doctor names it; back -> gone', async () => {
    await broker.stop('SIGKILL');
    const agent = running.get('agent')!;
    await until('the agent notices', async () => (await agent.readyz()).status === 503);
    expect((await agent.readyz()).text).toMatch(/broker/);
    const { out, code } = await runPortolan(['status', ...at(home)]);
    expect(out).toMatch(/^problem: PTL0201 .*; next step: Start the broker/m);
    expect(code).toBe(6);
    expect(codesOf(await doctor())).toContain('PTL0201');
    broker = await startApi({ data: join(directory, 'broker'), port: broker.port });
    await until('the agent is ready again', async () => (await agent.readyz()).status === 200);
    expect(codesOf(await doctor())).not.toContain('PTL0201');
  });

  test('the home is killed -> agent, peering and proxy are not ready; dns and xds serve on and say so in /readyz', async () => {
    await home.stop('SIGKILL');
    for (const part of ['agent', 'peering', 'proxy'] as const)
      await until(`${part} is not ready`, async () => (await running.get(part)!.readyz()).status === 503);
    for (const part of ['dns', 'xds'] as const) {
      const says = /^ok\nstill (answering|serving) .*what was read last: .*home/;
      await until(`${part} says so`, async () => says.test((await running.get(part)!.readyz()).text));
      expect((await running.get(part)!.readyz()).status).toBe(200);
    }
    const { err, code } = await runPortolan(['status', ...at(home)]);
    expect(err).toMatch(/is the server running/);
    expect(code).toBe(6);
    expect((await doctor()).exitCode).toBe(6);
    home = await startApi({ data: join(directory, 'west'), port: home.port });
    for (const [part, process] of running)
      await until(`${part} is ready again`, async () => (await process.readyz()).text === 'ok\n');
  });

  test('all parts are killed -> each is silent in doctor and status, peer list ends with 7; started again -> gone', async () => {
    for (const process of [...running.values(), authority]) await process.stop('SIGKILL');
    const silent = ['PTL0202', 'PTL0501', 'PTL0601', 'PTL0902'];
    const client = await clientOf(home);
    await until('their leases have run out', async () => {
      const { items } = await client.list<Lease>(leaseType, { namespace: 'portolan-system', labelSelector: partLabel });
      return items.every((lease) => partState(lease, Date.now()).kind === 'silent');
    });
    client.close();
    const { findings, exitCode } = await doctor();
    const subjects = findings.map(({ subject }) => subject.replace(/ on .*/, ''));
    for (const part of parts) expect(subjects).toContain(part);
    expect([exitCode, findings.map(({ code }) => code)]).toEqual([7, expect.arrayContaining(silent)]);
    const status = await runPortolan(['status', ...at(home)]);
    for (const code of silent) expect(status.out).toMatch(new RegExp(`^problem: ${code} .*; next step: `, 'm'));
    expect(status.code).toBe(7);
    const list = await runPortolan(['peer', 'list', ...at(home)]);
    expect(list.out).toContain(
      'problem: the peering process does not report, this may be outdated; start portolan peering',
    );
    expect(list.code).toBe(7);
    await until('the authority is away at the broker', async () => {
      const atBroker = await runPortolan(['doctor', '-o', 'json', ...at(broker)]);
      return codesOf(JSON.parse(atBroker.out)).includes('PTL0505');
    });
    await startParts();
    await until('none is silent', async () => codesOf(await doctor()).every((code) => !silent.includes(code)));
    expect((await runPortolan(['peer', 'list', ...at(home)])).code).toBe(0);
  }, 240_000);
});

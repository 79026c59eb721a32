// Homes, broker, agent and authority as processes of their own that are frozen (SIGSTOP) or killed: everybody concerned is told
// within 15 s, and the endpoints of a cluster whose home is away go by the staleness policy. The tests follow each other.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRealHost } from '../src/base/real/host.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { type ServiceExport, serviceExportType } from '../src/clusterset/kinds/service-export.ts';
import { type Client, createClient } from '../src/kube/client/client.ts';
import { findHome } from '../src/kube/client/kubeconfig.ts';
import { conditionOf } from '../src/kube/objects/conditions.ts';
import { type ApiProcess, startApi } from './support/api-process.ts';
import { makeNamespace } from './support/clusterset.ts';
import { until } from './support/dns-process.ts';
import { takeLoopbackPart } from './support/loopback-part.ts';
import { run, runPortolan } from './support/portolan.ts';
import { type RoleProcess, startRole } from './support/roles.ts';

const directory = mkdtempSync(join(tmpdir(), 'portolan-frozen-'));
const loopbackPart = await takeLoopbackPart();
const quiet = ['--admin-listen', '127.0.0.1:0', '--log-level', 'error'];
const toldMsMax = 15_000;

let broker: ApiProcess;
let east: ApiProcess;
let west: ApiProcess;
let westClient: Client;
let dnsPort = '';
const roles = new Map<string, RoleProcess>();

const at = ({ kubeconfig }: ApiProcess) => ['--kubeconfig', kubeconfig];

async function clientOf({ kubeconfig }: ApiProcess): Promise<Client> {
  const world = createRealWorld();
  const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig });
  return createClient(world.network.http(access), { world, userAgent: 'test' });
}

async function typed(...words: string[]): Promise<string> {
  const { code, out, err } = await runPortolan(words);
  expect(code, `${words.join(' ')}: ${out}${err}`).toBe(0);
  return out.trim();
}

async function say(...words: string[]): Promise<string> {
  const { out, err } = await runPortolan([...words, ...at(west)]);
  return out + err;
}

/** Addresses of the service as west's resolver answers. */
async function answers(): Promise<string[]> {
  const name = 'checkout.shop.svc.clusterset.local';
  const { out } = await run('dig', ['@127.0.0.1', '-p', dnsPort, '+short', '+tries=1', '+time=2', name, 'A']);
  return out.split('\n').filter(Boolean).sort();
}

/** Milliseconds until a command that was started then tells. */
async function toldAfter(isTold: () => Promise<boolean>): Promise<number> {
  const beganMs = performance.now();
  for (;;) {
    const askedMs = performance.now() - beganMs;
    if (await isTold()) return askedMs;
    expect(askedMs, 'nobody was told').toBeLessThan(90_000);
    await pause(250);
  }
}

async function frozen(pid: number, work: () => Promise<void>): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  try {
    await work();
  } finally {
    process.kill(pid, 'SIGCONT');
  }
}

/** The resolvers here take no stub zones (PTL0504), which is no matter of this test. */
async function isAllWell(): Promise<boolean> {
  const text = await say('status');
  return /^east .* alive /m.test(text) && !/PTL0[12]\d\d|PTL0505|not trusted/.test(text);
}

async function readyOf(): Promise<string | undefined> {
  const ref = { namespace: 'shop', name: 'pay' };
  const object = await westClient.get<ServiceExport>(serviceExportType, ref, { timeoutMs: 3_000 });
  return conditionOf(object.status?.conditions, 'Ready')?.status;
}

beforeAll(async () => {
  const started = (name: string) => startApi({ data: join(directory, name) });
  [broker, east, west] = await Promise.all([started('broker'), started('east'), started('west')]);
  westClient = await clientOf(west);
  await typed('broker', 'init', '--clusterset', 'prod', '--clusterset-ip', 'none', ...at(broker));
  for (const [id, home] of [
    ['east', east],
    ['west', west],
  ] as const) {
    const token = await typed('broker', 'token', id, '--clusterset', 'prod', ...at(broker));
    await typed('join', token.split('\n').at(-1)!, ...at(home));
    roles.set(`${id} agent`, await startRole(['agent', ...at(home), ...quiet]));
    const client = await clientOf(home);
    await makeNamespace(client, 'shop');
    client.close();
    const [service, address] = id === 'east' ? ['shop/checkout', '10.81.0.1'] : ['shop/pay', '10.82.0.1'];
    await typed('register', service!, '--address', address!, '--port', '80', ...at(home));
    await typed('export', service!, '--wait', ...at(home));
  }
  const dnsArgs = ['dns', '--cluster-id', 'west', '--listen', '127.0.0.1:0', ...at(west), ...quiet];
  const dns = await startRole(dnsArgs, /^listening \S+$/m);
  roles.set('west dns', dns);
  dnsPort = /^listening \S+:(\d+)/m.exec(dns.out())?.[1] ?? '';
  const range = `127.${loopbackPart}.0.0/24`;
  const proxy = ['proxy', '--mode', 'userspace', '--range', range, '--cluster-id', 'west', ...at(west), ...quiet];
  roles.set('west proxy', await startRole(proxy));
  await typed('federation', 'create', 'world', '--nameserver', '127.0.0.53', '--clusterset', 'prod', ...at(broker));
  const federation = ['--federation', 'world', '--clusterset', 'prod', '--broker-kubeconfig', broker.kubeconfig];
  roles.set('authority', await startRole(['authority', ...federation, '--listen', '127.0.0.1:0', ...quiet]));
}, 180_000);

afterAll(async () => {
  for (const role of roles.values()) {
    role.child.kill('SIGCONT');
    await role.stop('SIGKILL');
  }
  for (const api of [east, west, broker]) {
    if (api === undefined) continue;
    api.child.kill('SIGCONT');
    await api.stop('SIGKILL');
  }
  westClient?.close();
  rmSync(directory, { recursive: true, force: true });
});

describe('frozen processes', () => {
  test('nothing is frozen -> the service of east is answered in west, and all is well', async () => {
    await until('the address of east', async () => (await answers()).length === 1);
    await until('all is well', isAllWell);
  }, 180_000);

  test('the home of another cluster is frozen -> told within 15 s, its endpoints withdrawn with the reason; back -> back', async () => {
    await frozen(east.pid, async () => {
      const toldMs = await toldAfter(async () => (await say('status')).includes('PTL0207 home of cluster east'));
      expect(toldMs).toBeLessThan(toldMsMax);
      expect(await answers()).toEqual(['10.81.0.1']);
      expect(await say('explain', 'shop/checkout')).toMatch(/^east .* home away since /m);
      await until('withdrawn', async () => (await answers()).length === 0);
      expect(await say('status')).toContain('because its agent has had no answer from its home since');
    });
    await until('back', async () => (await answers()).length === 1);
    await until('all is well', isAllWell);
  }, 180_000);

  test('the home of another cluster is killed -> told within 15 s; started again on its port -> all is well', async () => {
    const { port } = east;
    await east.stop('SIGKILL');
    const toldMs = await toldAfter(async () => (await say('doctor')).includes('PTL0207'));
    expect(toldMs).toBeLessThan(toldMsMax);
    east = await startApi({ data: join(directory, 'east'), port });
    await until('all is well', isAllWell);
  }, 180_000);

  test('the broker is frozen -> the condition is Unknown and status tells within 15 s what was known until when; back -> known', async () => {
    await frozen(broker.pid, async () => {
      const conditionMs = await toldAfter(async () => (await readyOf()) === 'Unknown');
      expect(conditionMs).toBeLessThan(toldMsMax);
      const text = await say('status');
      expect(text).toMatch(/this is the last known state, of \S+, when the agent here had its last answer/);
      expect(text).toMatch(/^east .* unknown \(was alive\)/m);
      expect(await answers()).toEqual(['10.81.0.1']);
      const { status } = await roles.get('west agent')!.readyz();
      expect(status).toBe(503);
    });
    await until('known again', async () => (await readyOf()) === 'True');
    await until('all is well', isAllWell);
    expect(await say('status')).not.toMatch(/PTL0205|unknown/);
  }, 180_000);

  for (const name of ['east agent', 'authority']) {
    const code = name === 'authority' ? 'PTL0505 Federation' : 'PTL0202 agent of cluster east';
    test(`${name} is frozen -> status tells within 15 s; back -> all is well`, async () => {
      await frozen(roles.get(name)!.child.pid!, async () => {
        const toldMs = await toldAfter(async () => (await say('status')).includes(code));
        expect(toldMs).toBeLessThan(toldMsMax);
      });
      await until('all is well', isAllWell);
    }, 180_000);
  }

  test('the home of this cluster is frozen -> status and doctor say so within 15 s, names are answered', async () => {
    await frozen(west.pid, async () => {
      for (const [verb, told] of [
        ['status', 'no answer within'],
        ['doctor', 'PTL0101'],
      ] as const) {
        const beganMs = performance.now();
        expect(await say(verb)).toContain(told);
        expect(performance.now() - beganMs, verb).toBeLessThan(toldMsMax);
      }
      expect(await answers()).toEqual(['10.81.0.1']);
    });
    await until('all is well', isAllWell);
  }, 120_000);
});

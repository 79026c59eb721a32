// `portolan dns --state` as a process: it restarts while its home is away and goes on with the names it had, said to be old;
// the home comes back, and nothing old remains.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import packet from 'dns-packet';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silentLog } from '../src/base/log.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { readCopy } from '../src/catalog/copy/name-copy.ts';
import {
  type ClusterProperty,
  clusterIdProperty,
  clusterPropertyType,
} from '../src/clusterset/kinds/cluster-property.ts';
import { serviceImportType } from '../src/clusterset/kinds/service-import.ts';
import { dnsOptionsManifest } from '../src/clusterset/rules/clusterset-dns.ts';
import { describeAnswer, encodeQuestion, extendedErrorOf } from '../src/dns/testing/ask.ts';
import { askUdpRaw } from '../src/dns/testing/edge/client.ts';
import { type Client, createClient } from '../src/kube/client/client.ts';
import { configMapType } from '../src/kube/objects/config-map.ts';
import { namespaceType } from '../src/kube/objects/namespace.ts';
import { systemNamespace } from '../src/kube/objects/ours.ts';
import { serviceType } from '../src/kube/objects/service.ts';
import { type Home, startHome } from '../src/main/home/part.ts';
import { describeWith } from './support/counterparts.ts';
import { type DnsProcess, startDnsProcess, startEtcd, until } from './support/dns-process.ts';
import { freePort } from './support/free-port.ts';

const world = createRealWorld();
const directory = mkdtempSync(join(tmpdir(), 'portolan-warm-'));
const running = new Set<DnsProcess>();
let home: Home;
let client: Client;
let homePort: number;
let states = 0;

async function startTheHome(): Promise<void> {
  const listen = { host: '127.0.0.1', port: homePort };
  home = await startHome({ world, log: silentLog, directory: `${directory}/home`, listen });
  client = createClient(home.transport, { world, userAgent: 'test' });
}

const newState = () => join(directory, `state-${states++}`);

async function resolver(state: string, ...args: string[]): Promise<DnsProcess> {
  const where = ['--cluster-id', 'east', '--kubeconfig', home.kubeconfig, '--state', state];
  const dns = await startDnsProcess([...where, ...args]);
  running.add(dns);
  return dns;
}

/** Runs until it has read everything, then stops on a signal. */
async function runOnce(state: string, ...args: string[]): Promise<void> {
  const dns = await resolver(state, ...args);
  await dns.whenReady();
  await dns.stop();
}

async function addService(name: string, clusterIP: string): Promise<void> {
  const metadata = { name, namespace: 'shop' };
  const spec = { clusterIP, ports: [{ port: 80, protocol: 'TCP' as const }] };
  await client.create(serviceType, { apiVersion: 'v1', kind: 'Service', metadata, spec });
}

/** The answer, and the number of its extended error. */
async function ask({ target }: DnsProcess, question: string): Promise<string> {
  const reply = packet.decode(await askUdpRaw(target, encodeQuestion(question, { edns: true })));
  const error = extendedErrorOf(reply)?.split(' ')[0];
  return error === undefined ? describeAnswer(reply) : `${describeAnswer(reply)} (${error})`;
}

beforeAll(async () => {
  homePort = await freePort();
  await startTheHome();
  await client.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  await addService('web', '10.96.7.7');
  await client.create(serviceImportType, {
    apiVersion: `${serviceImportType.group}/${serviceImportType.version}`,
    kind: 'ServiceImport',
    metadata: { name: 'cart', namespace: 'shop' },
    spec: { type: 'ClusterSetIP', ips: ['243.0.0.9'], ports: [{ port: 80, protocol: 'TCP' }] },
  } as never);
});

afterAll(async () => {
  await Promise.all([...running].map((dns) => dns.stop('SIGKILL')));
  await home.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** As `portolan join` writes it; undefined deletes it. */
async function joinAs(id: string | undefined): Promise<void> {
  await client.delete(clusterPropertyType, { name: clusterIdProperty }).catch(() => {});
  if (id === undefined) return;
  const { group, version, kind } = clusterPropertyType;
  const metadata = { name: clusterIdProperty };
  const property = { apiVersion: `${group}/${version}`, kind, metadata, spec: { value: id } };
  await client.create<ClusterProperty>(clusterPropertyType, property);
}

describe('portolan dns without --cluster-id', () => {
  const start = async (...args: string[]) => {
    const dns = await startDnsProcess(['--kubeconfig', home.kubeconfig, ...args]);
    running.add(dns);
    return dns;
  };
  /** Its id as its admin endpoint says it. */
  const idOf = async ({ admin }: DnsProcess) =>
    ((await (await fetch(`${admin}/status`)).json()) as { cluster?: string }).cluster;

  test('a cluster that has joined -> its id; restarted without the home -> the id of the copy, and old names', async () => {
    await joinAs('east');
    const state = newState();
    const first = await start('--state', state);
    await first.whenReady();
    expect(await idOf(first)).toBe('east');
    await first.stop();
    await home.stop();
    const again = await start('--state', state);
    expect(await idOf(again)).toBe('east');
    expect(await ask(again, 'web.shop.svc.cluster.local A')).toBe('10.96.7.7 (3)');
    await again.stop();
    await startTheHome();
    await joinAs(undefined);
  });

  test('a cluster that joins later, and anew -> served before, and each id is taken on the same ports', async () => {
    const dns = await start('--workers', '2');
    await dns.whenReady();
    expect(await idOf(dns)).toBe('cluster');
    expect(await ask(dns, 'web.shop.svc.cluster.local A')).toBe('10.96.7.7');
    for (const id of ['east', 'west']) {
      await joinAs(id);
      await until(`it serves ${id}`, async () => (await idOf(dns).catch(() => '')) === id);
      await until('it answers', async () => (await ask(dns, 'web.shop.svc.cluster.local A')) === '10.96.7.7');
    }
    await dns.stop();
    expect(dns.child.exitCode).toBe(0);
    await joinAs(undefined);
  });

  test('a home that is away at the first start -> listens, and takes the id when the home answers', async () => {
    await joinAs('east');
    await home.stop();
    const dns = await start();
    expect(await ask(dns, 'web.shop.svc.cluster.local A')).toBe('SERVFAIL (14)');
    await startTheHome();
    await until('it serves east', async () => (await idOf(dns).catch(() => '')) === 'east');
    await dns.whenReady();
    await dns.stop();
    await joinAs(undefined);
  });
});

describe('portolan dns --state', () => {
  test.each([['0'], ['2']])(
    'restarted without its home, %s workers -> old names at once, as old; with it again -> as it is now, no leftovers',
    async (workers) => {
      const state = newState();
      await addService('gone', '10.96.7.8');
      await runOnce(state, '--workers', workers);
      expect(statSync(`${state}/names`).mode & 0o777).toBe(0o600);
      await home.stop();
      const dns = await resolver(state, '--workers', workers);
      for (let i = 0; i < 8; i++) {
        expect(await ask(dns, 'web.shop.svc.cluster.local A')).toBe('10.96.7.7 (3)');
        expect(await ask(dns, 'gone.shop.svc.cluster.local A')).toBe('10.96.7.8 (3)');
        expect(await ask(dns, 'cart.shop.svc.clusterset.local A')).toBe('243.0.0.9 (3)');
        expect(await ask(dns, 'new.shop.svc.cluster.local A')).toBe('SERVFAIL (14)');
      }
      expect((await fetch(`${dns.admin}/readyz`)).status).toBe(503);
      expect(dns.log()).toContain('names are answered from the copy on disk until the home has been read');
      await startTheHome();
      await client.delete(serviceType, { namespace: 'shop', name: 'gone' });
      await addService('new', '10.96.7.9');
      await dns.whenReady();
      await until('it is fresh', async () => (await ask(dns, 'web.shop.svc.cluster.local A')) === '10.96.7.7');
      for (let i = 0; i < 8; i++) {
        expect(await ask(dns, 'web.shop.svc.cluster.local A')).toBe('10.96.7.7');
        expect(await ask(dns, 'gone.shop.svc.cluster.local A')).toBe('NXDOMAIN');
        expect(await ask(dns, 'new.shop.svc.cluster.local A')).toBe('10.96.7.9');
      }
      await client.delete(serviceType, { namespace: 'shop', name: 'new' });
      await dns.stop();
    },
  );

  test('restarted twice without its home, killed the second time -> the copy stays what it was', async () => {
    const state = newState();
    await runOnce(state);
    const left = readFileSync(`${state}/names`);
    await home.stop();
    await (await resolver(state)).stop();
    await (await resolver(state)).stop('SIGKILL');
    expect(Buffer.compare(readFileSync(`${state}/names`), left)).toBe(0);
    const dns = await resolver(state);
    expect(await ask(dns, 'web.shop.svc.cluster.local A')).toBe('10.96.7.7 (3)');
    await dns.stop();
    await startTheHome();
  });

  test('killed, not stopped -> what it wrote while it ran is there', async () => {
    const state = newState();
    const dns = await resolver(state);
    await until('a copy', () => existsSync(`${state}/names`));
    await dns.stop('SIGKILL');
    await home.stop();
    const again = await resolver(state);
    expect(await ask(again, 'web.shop.svc.cluster.local A')).toBe('10.96.7.7 (3)');
    await again.stop();
    await startTheHome();
  });

  test('the home takes connections and never answers -> old names all the same', async () => {
    const state = newState();
    await runOnce(state);
    await home.stop();
    const taken = new Set<Socket>();
    const blackHole = createServer((socket) => taken.add(socket)).listen(homePort, '127.0.0.1');
    await once(blackHole, 'listening');
    const dns = await resolver(state);
    expect(await ask(dns, 'web.shop.svc.cluster.local A')).toBe('10.96.7.7 (3)');
    await dns.stop('SIGKILL');
    for (const socket of taken) socket.destroy();
    await new Promise((resolve) => blackHole.close(resolve));
    await startTheHome();
  });

  test('the clusterset has a zone of its own, which only the home knows -> it is known without the home', async () => {
    const state = newState();
    const { object } = dnsOptionsManifest({ zone: 'mesh.example', ttlSeconds: 5, clusterNames: 'Hidden' });
    await client.create(configMapType, object);
    await runOnce(state);
    await home.stop();
    const dns = await resolver(state);
    expect(await ask(dns, 'cart.shop.svc.mesh.example A')).toBe('243.0.0.9 (3)');
    await startTheHome();
    await dns.whenReady();
    await until('it is fresh', async () => (await ask(dns, 'cart.shop.svc.mesh.example A')) === '243.0.0.9');
    await dns.stop();
    await client.delete(configMapType, { namespace: systemNamespace, name: object.metadata.name });
  });

  test.each([
    ['damaged', [], 'it is damaged or cut off'],
    ['of another cluster', ['--cluster-id', 'west'], 'its names are those of cluster east, and this is cluster west'],
    [
      'of other domains',
      ['--cluster-domain', 'other.local'],
      'its names end in cluster.local, and here in other.local',
    ],
  ])('the copy is %s -> a cold start, and the log says why', async (kind, args, why) => {
    const state = newState();
    await runOnce(state);
    if (kind === 'damaged') {
      const file = readFileSync(`${state}/names`);
      file[file.length >> 1]! ^= 1;
      writeFileSync(`${state}/names`, file);
    }
    await home.stop();
    const dns = await resolver(state, ...args);
    const zone = args[0] === '--cluster-domain' ? args[1] : 'cluster.local';
    expect(await ask(dns, `web.shop.svc.${zone} A`)).toBe('SERVFAIL (14)');
    expect(await ask(dns, 'cart.shop.svc.clusterset.local A')).toBe('SERVFAIL (14)');
    await until('a line', () => dns.log().includes(why));
    await dns.stop();
    await startTheHome();
  });

  test('an age that makes no sense -> refused', async () => {
    await expect(resolver(newState(), '--state-max-age', 'soon')).rejects.toThrow(
      /--state-max-age soon: want a number/,
    );
  });
});

describeWith(['etcd'], "a federation's authority", () => {
  test('restarted without its etcd -> the shards it had, in the order of the one who asks, as old', async () => {
    const etcd = await startEtcd(`${directory}/etcd`);
    const put = (cluster: string, value: object) =>
      fetch(`${etcd.url}/v3/kv/put`, {
        method: 'POST',
        body: JSON.stringify({
          key: Buffer.from(`/world/shop/web/${cluster}`).toString('base64'),
          value: Buffer.from(JSON.stringify(value)).toString('base64'),
        }),
      });
    await put('foo', { externalIP: '104.32.64.1', clusterIP: '10.0.0.1' });
    await put('bar', { externalIP: '104.32.64.2', clusterIP: '10.0.0.2' });
    const state = newState();
    const start = async () => {
      const from = ['--federation', 'world', '--etcd', etcd.url, '--trusted-range', '127.0.0.1/32'];
      const dns = await startDnsProcess([...from, '--state', state]);
      running.add(dns);
      return dns;
    };
    const first = await start();
    await first.whenReady();
    await first.stop();
    await etcd.stop();
    const dns = await start();
    const source = { code: 65_001, data: Buffer.from('bar') } as never;
    const message = encodeQuestion('web.shop.world.svc.federation A', { edns: { options: [source] } });
    const reply = packet.decode(await askUdpRaw(dns.target, message));
    expect(`${describeAnswer(reply)} (${extendedErrorOf(reply)?.split(' ')[0]})`).toBe('10.0.0.2, 104.32.64.1 (3)');
    expect(await ask(dns, 'new.shop.world.svc.federation A')).toBe('SERVFAIL (14)');
    await dns.stop();
  });
});

test('copy of names: killed with -9 while writing, ten times -> always whole, and no leavings pile up', async () => {
  const path = join(directory, 'killed', 'names');
  const script = fileURLToPath(new URL('support/copy-writer.ts', import.meta.url));
  let last = 0;
  for (let round = 0; round < 10; round++) {
    const writer = spawn(process.execPath, [script, path], { stdio: ['ignore', 'pipe', 'inherit'] });
    let out = '';
    writer.stdout.setEncoding('utf8').on('data', (chunk: string) => (out += chunk));
    await until('a copy', () => out.includes('\n'));
    await new Promise((resolve) => setTimeout(resolve, 3 * round));
    writer.kill('SIGKILL');
    await once(writer, 'close');
    const read = readCopy(readFileSync(path));
    expect(read.kind).toBe('copy');
    last = Number(out.trim().split('\n').at(-1));
    if (read.kind === 'copy') expect(read.facts.asOfMs).toBeGreaterThanOrEqual(last);
    expect(readdirSync(join(directory, 'killed')).filter((name) => name !== 'names' && name !== 'names.tmp')).toEqual(
      [],
    );
  }
  expect(last).toBeGreaterThan(0);
});

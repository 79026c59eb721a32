// The skew policy: the previous release and this one in one clusterset, on brokers of either, also while the broker is
// upgraded in place. Real processes of both.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { importLine } from '../sim/look.ts';
import { createRealHost } from '../src/base/real/host.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { version } from '../src/base/version.ts';
import { type Cluster, clusterType } from '../src/clusterset/kinds/cluster.ts';
import { type Client, createClient } from '../src/kube/client/client.ts';
import { findHome } from '../src/kube/client/kubeconfig.ts';
import { endpointSliceType } from '../src/kube/objects/endpoint-slice.ts';
import type { AnyObject } from '../src/kube/objects/object.ts';
import { serviceType } from '../src/kube/objects/service.ts';
import { makeNamespace, until } from './support/clusterset.ts';
import { freePort } from './support/free-port.ts';
import { run, portolan as thisProgram } from './support/portolan.ts';
import { buildPreviousRelease, hasHistory, type PreviousRelease } from './support/previous-release.ts';

const directory = mkdtempSync(join(tmpdir(), 'portolan-skew-'));
const world = createRealWorld();
const children = new Set<ChildProcess>();
const clients: Client[] = [];
let previous: PreviousRelease;

afterAll(async () => {
  for (const client of clients) client.close();
  await Promise.all([...children].map((child) => end(child)));
  rmSync(directory, { recursive: true, force: true });
});

interface SkewHome {
  readonly name: string;
  readonly kubeconfig: string;
  readonly client: Client;
}

/** Resolves when it has printed `ready`. */
function start(program: string, args: readonly string[]): Promise<ChildProcess> {
  const child = spawn(program, [...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  children.add(child);
  let out = '';
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`${program} ${args[0]} ended with ${code}: ${out}`)));
    for (const stream of [child.stdout!, child.stderr!])
      stream.on('data', (chunk) => {
        out += chunk;
        if (/ready/.test(out)) resolve(child);
      });
  });
}

/** A home of the previous release may not end while it reads its certificate authority; ours must. */
async function end(child: ChildProcess): Promise<void> {
  children.delete(child);
  const gone = new Promise((resolve) => child.once('exit', resolve));
  if (child.exitCode !== null || child.signalCode !== null || !child.kill('SIGTERM')) return;
  const killer = setTimeout(() => child.kill('SIGKILL'), 30_000);
  await gone;
  clearTimeout(killer);
  if (child.spawnfile === thisProgram) expect(child.signalCode, child.spawnargs.join(' ')).not.toBe('SIGKILL');
}

const apiArgs = (name: string, port: number) => [
  'api',
  '--data',
  join(directory, name),
  '--listen',
  `127.0.0.1:${port}`,
];

async function openHome(name: string): Promise<SkewHome> {
  const kubeconfig = join(directory, name, 'admin.kubeconfig');
  const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig });
  const client = createClient(world.network.http(access), { world, userAgent: 'test' });
  clients.push(client);
  return { name, kubeconfig, client };
}

async function type(program: string, line: string, { kubeconfig }: SkewHome): Promise<string> {
  const { code, out, err } = await run(program, [...line.split(' '), '--kubeconfig', kubeconfig]);
  expect([line, code, code === 0 ? '' : out + err]).toEqual([line, 0, '']);
  return out;
}

async function addService({ client }: SkewHome, name: string, ip: string): Promise<void> {
  const metadata = { name, namespace: 'shop' };
  const ports = [{ name: 'http', port: 80 }];
  await client.create(serviceType, { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports } } as AnyObject);
  await client.create(endpointSliceType, {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { ...metadata, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
    endpoints: [{ addresses: [ip], conditions: { ready: true } }],
  } as AnyObject);
}

const imported = (home: SkewHome, name: string, from: string) =>
  until(`${home.name} imports ${name} from ${from}`, async () =>
    (await importLine(home.client, `shop/${name}`).catch(() => '')).includes(from),
  );

describe.skipIf(!hasHistory())('skew (needs the history)', () => {
  beforeAll(() => {
    previous = buildPreviousRelease(join(directory, 'previous'));
  });

  describe.each<[string, 'previous' | 'this', 'previous' | 'this']>([
    ['a broker of the previous release, upgraded while agents of both run', 'previous', 'this'],
    ['a broker of this release, put back to the previous one', 'this', 'previous'],
  ])('%s', (_title, first, second) => {
    const set = first === 'previous' ? 'old' : 'new';
    const programOf = (which: 'previous' | 'this') => (which === 'this' ? thisProgram : previous.program);
    let broker: SkewHome;
    let brokerProcess: ChildProcess;
    let port: number;
    /** east runs this release, west the previous one. */
    const members: SkewHome[] = [];
    const programs = [thisProgram, ''];

    beforeAll(async () => {
      programs[1] = previous.program;
      port = await freePort();
      brokerProcess = await start(programOf(first), apiArgs(`${set}-broker`, port));
      broker = await openHome(`${set}-broker`);
      await type(programOf(first), 'broker init --clusterset prod --lease-renew 1 --lease-duration 4', broker);
      for (const [index, name] of ['east', 'west'].entries()) {
        const program = programs[index]!;
        await start(program, apiArgs(`${set}-${name}`, 0));
        const home = await openHome(`${set}-${name}`);
        members.push(home);
        const token = (await type(programOf(first), `broker token ${name} --clusterset prod`, broker)).trim();
        await type(program, `join ${token.split(/\s+/).at(-1)}`, home);
        await start(program, ['agent', '--kubeconfig', home.kubeconfig]);
        await makeNamespace(home.client, 'shop');
        await addService(home, name, `10.${index + 1}.0.7`);
      }
    });

    test('both export -> each imports from the other', async () => {
      const [east, west] = members;
      await type(thisProgram, 'export shop/east --wait', east!);
      await type(previous.program, 'export shop/west --wait', west!);
      await imported(west!, 'east', 'from east');
      await imported(east!, 'west', 'from west');
    });

    test('the broker changes under them -> they go on, both ways', async () => {
      await end(brokerProcess);
      brokerProcess = await start(programOf(second), apiArgs(`${set}-broker`, port));
      await type(programOf(second), 'broker init --clusterset prod', broker);
      const [east, west] = members;
      for (const [index, home] of members.entries()) {
        await addService(home, 'later', `10.${index + 1}.0.9`);
        await type(programs[index]!, 'export shop/later --wait', home);
      }
      await imported(west!, 'later', 'east');
      await imported(east!, 'later', 'west');
    });

    test('portolan version -> names the agent that is behind, and no other', async () => {
      const [east, west] = members;
      const shown = (home: SkewHome) => run(thisProgram, ['version', '--kubeconfig', home.kubeconfig]);
      const behind = await shown(west!);
      expect([behind.code, behind.out]).toEqual([
        7,
        expect.stringContaining(`another version than ${version}: agent/`),
      ]);
      expect(behind.out).toContain(previous.version);
      expect((await shown(east!)).code).toBe(0);
      const atBroker = await shown(broker);
      expect([atBroker.code, atBroker.out]).toEqual([7, expect.stringContaining('member/west')]);
      expect(atBroker.out).not.toContain('member/east,');
      expect(atBroker.out).toMatch(new RegExp(`^member +east +${version.replaceAll('.', '\\.')}$`, 'm'));
    });

    // A broker of the previous release knows no networks either.
    if (second === 'previous') return;
    test('a network is set while west knows none -> refused, and names west alone', async () => {
      const accept = ['broker', 'accept', 'east', '--clusterset', 'prod', '--network', 'aws', '--no-ranges'];
      const { code, err } = await run(thisProgram, [...accept, '--kubeconfig', broker.kubeconfig]);
      const older = 'the agents of west are of a release that knows no networks';
      expect([code, err]).toEqual([5, expect.stringContaining(older)]);
      // By whatever program.
      const at = { namespace: 'prod', name: 'east' };
      const east = await broker.client.get<Cluster>(clusterType, at);
      const moved = broker.client.update<Cluster>(clusterType, { ...east, spec: { ...east.spec, network: 'aws' } });
      await expect(moved).rejects.toThrow(older);
      expect((await broker.client.get<Cluster>(clusterType, at)).spec.network).toBeUndefined();
    });
  });
});

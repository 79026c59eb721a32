// The DNS server beside real programs: dig asks, a real etcd holds a federation's records, BIND is the upstream.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { silentLog } from '../src/base/log.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { Catalog } from '../src/catalog/catalog.ts';
import { FederationTable } from '../src/catalog/federation/federation-table.ts';
import { NameTable } from '../src/catalog/names/name-table.ts';
import { type DnsServer, startDns } from '../src/dns/server.ts';
import { askUdp } from '../src/dns/testing/edge/client.ts';
import { EtcdRecords } from '../src/federation/records/etcd-records.ts';
import { describeWith, pathOf } from './support/counterparts.ts';
import { freePort } from './support/free-port.ts';

const world = createRealWorld();

async function until(condition: () => Promise<boolean>): Promise<void> {
  for (let i = 0; i < 200; i++) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`did not happen: ${condition}`);
}

// Not synchronous: the server that answers runs in this very process.
async function dig(port: number, ...args: string[]): Promise<string[]> {
  const all = ['@127.0.0.1', '-p', String(port), '+tries=1', '+time=3', ...args];
  const { stdout } = await promisify(execFile)(pathOf('dig')!, all);
  return stdout.split('\n').filter((line) => line !== '' && !line.startsWith(';'));
}

const seedRecords: readonly [string, string][] = [
  ['/myfederation/myns/myservice/foo', '{\n    "externalIP": "104.32.64.128",\n    "clusterIP": "10.0.3.64",\n}'],
  ['/myfederation/myns/myservice/bar', '{\n    "externalIP": "104.32.64.130",\n    "clusterIP": "10.0.4.20",\n}'],
  ['/myfederation/myns/myservice/baz', '{\n    "externalIP": "108.120.45.12",\n    "clusterIP": "10.56.62.6",\n}'],
];
const name = 'myservice.myns.myfederation.svc.federation';

describeWith(['etcd', 'dig'], 'federated DNS on a real etcd', () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-etcd-'));
  const servers: DnsServer[] = [];
  const following = new AbortController();
  let etcd: ChildProcess;
  let records: EtcdRecords;
  let authorities: DnsServer[];
  const resolvers = new Map<string, DnsServer>();

  async function startAuthority(): Promise<DnsServer> {
    const federation = new FederationTable({ table: new NameTable({ serial: 1 }) });
    void records.follow(federation, following.signal);
    const server = await startDns({
      world,
      log: silentLog,
      federations: [federation],
      listen: { hosts: ['127.0.0.1'], port: 0 },
      trusted: { ranges: ['127.0.0.1'], identities: [] },
    });
    servers.push(server);
    return server;
  }

  async function startResolver(cluster: string): Promise<DnsServer> {
    const catalog = new Catalog({ clock: world.clock, timers: world.timers, cluster: { id: cluster } });
    catalog.setSynced('services');
    catalog.setSynced('imports');
    const nameservers = authorities.map(({ udpPort }) => `127.0.0.1:${udpPort}`);
    const server = await startDns({
      world,
      log: silentLog,
      catalog,
      listen: { hosts: ['127.0.0.1'], port: 0 },
      stubZones: [{ zone: 'myfederation.svc.federation', nameservers, sendsSource: true }],
    });
    servers.push(server);
    return server;
  }

  beforeAll(async () => {
    const [client, peer] = [await freePort(), await freePort()];
    const url = `http://127.0.0.1:${client}`;
    const peerUrl = `http://127.0.0.1:${peer}`;
    etcd = spawn(
      pathOf('etcd')!,
      [
        '--data-dir',
        directory,
        '--listen-client-urls',
        url,
        '--advertise-client-urls',
        url,
        '--listen-peer-urls',
        peerUrl,
        '--initial-advertise-peer-urls',
        peerUrl,
        '--initial-cluster',
        `default=${peerUrl}`,
      ],
      { stdio: 'ignore' },
    );
    records = new EtcdRecords({
      transports: [world.network.http({ server: url })],
      world,
      log: silentLog,
      federation: 'myfederation',
    });
    await until(() =>
      records.list().then(
        () => true,
        () => false,
      ),
    );
    for (const [key, value] of seedRecords) await records.put(key, value);
    authorities = [await startAuthority(), await startAuthority()];
    for (const cluster of ['foo', 'bar', 'baz']) resolvers.set(cluster, await startResolver(cluster));
    for (const { udpPort } of authorities) {
      await until(async () => (await dig(udpPort, '+short', name, 'A')).length === 3);
    }
  });

  afterAll(async () => {
    following.abort();
    // First what would outlive us.
    const ended = new Promise((resolve) => etcd.once('exit', resolve));
    etcd.kill('SIGKILL');
    await ended;
    await Promise.all(servers.map((server) => server.close()));
    rmSync(directory, { recursive: true, force: true });
  });

  test.each([
    ['foo', ['10.0.3.64', '104.32.64.130', '108.120.45.12']],
    ['bar', ['10.0.4.20', '108.120.45.12', '104.32.64.128']],
    ['baz', ['10.56.62.6', '104.32.64.130', '104.32.64.128']],
  ])("the seed's example asked with dig from cluster %s -> %j [001-33, 001-49]", async (cluster, expected) => {
    expect(await dig(resolvers.get(cluster)!.udpPort, '+short', name, 'A')).toEqual(expected);
  });

  test("one shard by its cluster's name -> only that one [001-04]", async () => {
    expect(await dig(resolvers.get('foo')!.udpPort, '+short', `bar.${name}`, 'A')).toEqual(['104.32.64.130']);
    expect(await dig(resolvers.get('bar')!.udpPort, '+short', `bar.${name}`, 'A')).toEqual(['10.0.4.20']);
  });

  test('a record changes in etcd -> both authorities answer by it [001-28]', async () => {
    await records.put('/myfederation/myns/other/foo', '{"externalIP": "104.32.64.99", "clusterIP": "10.0.3.99"}');
    for (const { udpPort } of authorities) {
      const ask = () => dig(udpPort, '+short', 'other.myns.myfederation.svc.federation', 'A');
      await expect.poll(ask, { timeout: 5000 }).toEqual(['104.32.64.99']);
    }
    await records.remove('/myfederation/myns/other/foo');
    for (const { udpPort } of authorities) {
      const ask = () => dig(udpPort, '+short', 'other.myns.myfederation.svc.federation', 'A');
      await expect.poll(ask, { timeout: 5000 }).toEqual([]);
    }
  });

  test('one of two authorities is killed under load -> no failed lookup [001-12]', async () => {
    const target = { host: '127.0.0.1', port: resolvers.get('foo')!.udpPort };
    const answers = new Map<string, number>();
    const ask = async (n: number) => {
      // A new name each time, so that the cache does not help.
      const answer = await askUdp(target, `x${n}.${name} A`);
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
    };
    for (let round = 0; round < 40; round++) {
      if (round === 10) await authorities[0]!.close();
      await Promise.all(Array.from({ length: 10 }, (_, i) => ask(10 * round + i)));
    }
    expect([...answers]).toEqual([['NXDOMAIN', 400]]);
    expect((await dig(target.port, '+short', name, 'A'))[0]).toBe('10.0.3.64');
  });
});

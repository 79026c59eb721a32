// Two network namespaces as two clusters with agents and `portolan proxy`, and clients that connect all the time: what proxies count,
// and a shift that meets a failure at 25 % and goes back without anybody. Needs root.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TrafficShift } from '../src/clusterset/kinds/traffic-shift.ts';
import { until } from './support/dns-process.ts';
import { Namespaces, namespacesMissing, type Place } from './support/namespaces.ts';
import { type Finished, portolan, run } from './support/portolan.ts';
import {
  ask,
  type ClientReport,
  type LineProcess,
  type NodeHome,
  type ProxyProcess,
  startClients,
  startNodeHome,
  startProxyProcess,
  startServers,
} from './support/proxy-processes.ts';

const why = namespacesMissing();
const ids = ['east', 'west'] as const;
type Id = (typeof ids)[number];

describe.skipIf(why !== '')(`a shift under load${why}`, () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-shift-'));
  const places = {} as Record<Id, Place>;
  const homes = {} as Record<Id, NodeHome>;
  const proxies = {} as Record<Id, ProxyProcess>;
  const servers = {} as Record<Id, LineProcess>;
  const running: LineProcess[] = [];
  let net: Namespaces;
  let broker: NodeHome;

  const pod = (id: Id) => `10.7${ids.indexOf(id) + 1}.0.1`;
  const object = (apiVersion: string, kind: string, rest: object = {}) => ({
    apiVersion,
    kind,
    metadata: { name: 'web', namespace: 'shop' },
    ...rest,
  });
  const clients = { kind: 'tcp', host: 'web.shop.svc.clusterset.local', port: 80 };
  const shift = (...args: string[]): Promise<Finished> => {
    const [program, ...rest] = [...net.within(places.east), portolan, 'shift', 'shop/web', ...args];
    return run(program!, [...rest, '--kubeconfig', homes.east.kubeconfig], { timeoutMs: 200_000 });
  };
  const seen = async () =>
    (await homes.east.order<TrafficShift>({ get: object('portolan.dev/v1alpha1', 'TrafficShift') as never })).status;
  const counted = async (): Promise<Record<string, number>> => {
    const { text } = await proxies.east.get('/metrics');
    const lines = text.matchAll(/^portolan_proxy_connections_total\{(.*)\} (\d+)$/gm);
    return Object.fromEntries(
      [...lines].map(([, labels = '', value]) => {
        const label = (name: string) => new RegExp(`${name}="([^"]*)"`).exec(labels)?.[1];
        return [`${label('destination_cluster')} ${label('outcome')}`, Number(value)];
      }),
    );
  };

  async function serve(id: Id): Promise<void> {
    servers[id] = await startServers(net, places[id], [{ kind: 'tcp', port: 8080, address: pod(id), says: id }]);
  }

  async function startCluster(id: Id): Promise<void> {
    const ranges = { podRange: `${pod(id)}/32`, serviceRange: `10.10${ids.indexOf(id)}.0.0/16` };
    homes[id] = await startNodeHome(net, places[id], {
      directory: `${directory}/${id}`,
      join: { id, region: 'one', zone: `${id}-a`, token: broker.tokens[id]!, ...ranges },
    });
    await homes[id].order({ put: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } } });
    proxies[id] = await startProxyProcess(net, places[id], ['--kubeconfig', homes[id].proxyKubeconfig, '--node', id]);
    await serve(id);
    await proxies[id].whenReady();
    await homes[id].order({ put: object('v1', 'Service', { spec: { ports: [{ name: 'http', port: 80 }] } }) });
    const labels = { 'kubernetes.io/service-name': 'web' };
    await homes[id].order({
      put: {
        ...object('discovery.k8s.io/v1', 'EndpointSlice', {
          addressType: 'IPv4',
          ports: [{ name: 'http', port: 8080 }],
          endpoints: [{ addresses: [pod(id)], conditions: { ready: true } }],
        }),
        metadata: { name: 'web-1', namespace: 'shop', labels },
      },
    });
    await homes[id].order({ put: object('multicluster.x-k8s.io/v1beta1', 'ServiceExport') });
  }

  beforeAll(async () => {
    net = new Namespaces('sh');
    for (const [index, id] of ids.entries()) {
      places[id] = net.addMachine(id, 11 + index);
      net.ip(places[id], `addr add ${pod(id)}/32 dev lo`);
      net.setResolver(places[id], places[id].address);
    }
    for (const id of ids)
      for (const other of ids)
        if (other !== id) net.ip(places[id], `route add ${pod(other)}/32 via ${places[other].address}`);
    const members = ids.map((id) => ({ id, region: 'one', zone: `${id}-a` }));
    broker = await startNodeHome(net, net.hub, { directory: `${directory}/broker`, members, leaseSeconds: 30 });
    await Promise.all(ids.map(startCluster));
    const policy = {
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'ServiceImportPolicy',
      metadata: { name: 'order' },
      spec: { clusters: [{ clusters: ['east'] }] },
    };
    await homes.east.order({ put: policy as never });
    await until('only east serves', async () => {
      const { answers, failures } = await ask(net, places.east, { ...clients, count: 40 });
      return Object.keys(failures).length === 0 && Object.keys(answers).join() === 'east';
    });
  });

  afterAll(async () => {
    for (const each of [...running, ...Object.values(servers)]) await each.stop();
    for (const proxy of Object.values(proxies)) await proxy.stop('SIGKILL');
    for (const home of [...Object.values(homes), broker]) await home?.stop();
    net?.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  test('dry run -> says what would happen and creates nothing', async () => {
    const { out, code } = await shift(
      '--from',
      'east',
      '--to',
      'west',
      '--steps',
      '5,25',
      '--every',
      '15s',
      '--dry-run',
    );
    expect(out).toContain('25 % of the part of east goes to west, for 15s at least');
    expect(code).toBe(0);
    expect((await shift()).code).toBe(4);
    expect((await shift('--from', 'east', '--to', 'mars')).err).toContain('and not from mars');
  });

  test('connections that are answered and refused -> counted exactly, as the clients count them', async () => {
    const created = await shift(
      '--from',
      'east',
      '--to',
      'west',
      '--steps',
      '50',
      '--every',
      '1h',
      '--min-connections',
      '0',
    );
    expect(created.err + created.out).toContain('TrafficShift shop/web created');
    const before = await counted();
    const since = async () =>
      Object.fromEntries(Object.entries(await counted()).map(([key, value]) => [key, value - (before[key] ?? 0)]));
    const { answers } = await ask(net, places.east, { ...clients, count: 500 });
    expect(answers).toEqual({ east: 500 });
    await until('all are counted', async () => (await since())['east answered'] === 500);
    const none = { 'east refused': 0, 'east reset': 0 };
    expect(await since()).toEqual({ 'east tried': 500, 'east answered': 500, ...none });
    await servers.east.stop();
    await ask(net, places.east, { ...clients, count: 20 });
    await until('refused ones are counted', async () => (await since())['east refused'] === 20);
    expect(await since()).toMatchObject({ 'east tried': 520, 'east answered': 500 });
    await serve('east');
    await shift('--abort', '--wait');
  });

  test('a failure that begins at 25 % -> the shift goes back without an operator, and clients see none of it', async () => {
    const load = startClients(net, places.east, { ...clients, lanes: 30, timeoutMs: 20_000 });
    running.push(load);
    const args = ['--from', 'east', '--to', 'west', '--steps', '5,25,100', '--every', '12s', '--min-connections', '20'];
    const followed = shift(...args, '--wait', '--timeout', '180');
    await until('a quarter goes to west', async () => (await seen().catch(() => undefined))?.percent === 25);
    net.run(places.west, 'nft add table inet faulty');
    net.run(places.west, "nft add chain inet faulty in '{ type filter hook prerouting priority -300; }'");
    net.run(places.west, 'nft add rule inet faulty in tcp dport 8080 drop');
    const startedMs = Date.now();
    await until('it went back', async () => (await seen())?.phase === 'RolledBack');
    console.log(`went back ${Math.round(Date.now() - startedMs)} ms after the failure`);
    const { out, code } = await followed;
    net.run(places.west, 'nft delete table inet faulty');
    expect(out).toMatch(/east: RolledBack, step 2 of 3, 0 % from east to west: went back at 25 %/);
    expect(code).toBe(7);
    const after = await ask(net, places.east, { ...clients, count: 200 });
    expect(after).toMatchObject({ answers: { east: 200 }, failures: {} });
    load.child.stdin!.write('stop\n');
    const report = JSON.parse(await load.next()) as ClientReport;
    console.log(`clients ${JSON.stringify(report.answers)} failures ${JSON.stringify(report.failures)}`);
    expect(report.failures).toEqual({});
  });

  test('nothing fails -> all steps under load, no failed connection; deleting the shift brings back the policy', async () => {
    const load = startClients(net, places.east, { ...clients, lanes: 30, timeoutMs: 20_000 });
    running.push(load);
    const args = ['--from', 'east', '--to', 'west', '--steps', '25,100', '--every', '8s', '--min-connections', '20'];
    const { out, code } = await shift(...args, '--wait', '--timeout', '180');
    expect(out).toMatch(/Completed, step 2 of 2, 100 % from east to west/);
    expect(code).toBe(0);
    expect((await ask(net, places.east, { ...clients, count: 50 })).answers).toEqual({ west: 50 });
    await homes.east.order({ remove: object('portolan.dev/v1alpha1', 'TrafficShift') as never });
    await until('east serves again', async () => {
      const { answers } = await ask(net, places.east, { ...clients, count: 20 });
      return Object.keys(answers).join() === 'east';
    });
    load.child.stdin!.write('stop\n');
    expect((JSON.parse(await load.next()) as ClientReport).failures).toEqual({});
  });
});

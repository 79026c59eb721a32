// Three network namespaces as three clusters, each with its home, agent, resolver and `portolan proxy`, and real servers
// behind exported Services; a fourth for the broker. Clients connect by clusterset names. Needs root.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from './support/dns-process.ts';
import { Namespaces, namespacesMissing, type Place } from './support/namespaces.ts';
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
const leaseSeconds = 4;
const name = 'web.shop.svc.clusterset.local';
const ids = ['east', 'west', 'south'] as const;
type Id = (typeof ids)[number];
const regions = { east: 'north', west: 'north', south: 'south' };

/** The port that pods of each cluster listen on: it differs, under one name. */
const targetPort = { east: 8080, west: 8080, south: 9090 };

describe.skipIf(why !== '')(`three clusters with proxies${why}`, () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-clusters-'));
  const places = {} as Record<Id, Place>;
  const homes = {} as Record<Id, NodeHome>;
  const proxies: ProxyProcess[] = [];
  const servers: LineProcess[] = [];
  let net: Namespaces;
  let broker: NodeHome;

  const net16 = (id: Id) => `10.7${ids.indexOf(id) + 1}`;
  const pods = (id: Id) => [1, 2].map((host) => `${net16(id)}.0.${host}`);
  const clusterIP = (id: Id) => `10.10${ids.indexOf(id)}.0.7`;
  const saysOf = (id: Id) => [1, 2].map((host) => `${id}-${host}`);
  const object = (apiVersion: string, kind: string, called: string, rest: object = {}) => ({
    apiVersion,
    kind,
    metadata: { name: called, namespace: 'shop' },
    ...rest,
  });
  const exportOf = (service: string) => object('multicluster.x-k8s.io/v1beta1', 'ServiceExport', service);

  const slice = (id: Id, service: string, ports: readonly object[], isReady = true) =>
    homes[id].order({
      put: {
        ...object('discovery.k8s.io/v1', 'EndpointSlice', `${service}-1`, {
          addressType: 'IPv4',
          ports,
          endpoints: pods(id).map((address) => ({ addresses: [address], conditions: { ready: isReady } })),
        }),
        metadata: { name: `${service}-1`, namespace: 'shop', labels: { 'kubernetes.io/service-name': service } },
      },
    });

  const webPorts = (id: Id) => [
    { name: 'http', port: 80, target: targetPort[id] },
    { name: 'page', port: 8000, target: 8000 },
    { name: 'dns', port: 53, protocol: 'UDP', target: 5353 },
    ...(id === 'west' ? [{ name: 'admin', port: 81, target: targetPort[id] }] : []),
  ];

  async function serve(id: Id, service: string, ports: ReturnType<typeof webPorts>, spec: object = {}): Promise<void> {
    const servicePorts = ports.map(({ target: _target, ...port }) => port);
    await homes[id].order({ put: object('v1', 'Service', service, { spec: { ports: servicePorts, ...spec } }) });
    await slice(
      id,
      service,
      ports.map(({ target, ...port }) => ({ ...port, port: target })),
    );
    await homes[id].order({ put: exportOf(service) });
  }

  async function startCluster(id: Id): Promise<void> {
    const zone = `${id}-a`;
    const ranges = { podRange: `${net16(id)}.0.0/16`, serviceRange: `10.10${ids.indexOf(id)}.0.0/16` };
    homes[id] = await startNodeHome(net, places[id], {
      directory: `${directory}/${id}`,
      join: { id, region: regions[id], zone, token: broker.tokens[id]!, ...ranges },
    });
    await homes[id].order({ put: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } } });
    const proxy = await startProxyProcess(net, places[id], [
      '--kubeconfig',
      homes[id].proxyKubeconfig,
      '--node',
      `${id}-1`,
      // A test listens to the kernel's events itself, and flows leave it a part of them.
      '--no-flows',
    ]);
    proxies.push(proxy);
    const listening = pods(id).flatMap((address, index) => {
      const each = { address, says: `${id}-${index + 1}` };
      return [
        { kind: 'tcp', port: targetPort[id], ...each },
        { kind: 'http', port: 8000, ...each },
        { kind: 'udp', port: 5353, ...each },
      ];
    });
    const own = { kind: 'tcp', address: clusterIP(id), port: 80, says: `own-${id}` };
    servers.push(await startServers(net, places[id], [...listening, own]));
    await proxy.whenReady();
    await serve(id, 'web', webPorts(id), { clusterIP: clusterIP(id) });
  }

  /** Counts the backends that answered, without failures. */
  const who = async (id: Id, task: object = {}) => {
    const report = await ask(net, places[id], { kind: 'tcp', host: name, port: 80, count: 60, ...task });
    return Object.keys(report.failures).length > 0 ? report.failures : Object.keys(report.answers).sort();
  };
  const eventually = (id: Id, task: object, expected: readonly string[]) =>
    until(`in ${id} ${JSON.stringify(task)} is answered by ${expected}`, async () => {
      return JSON.stringify(await who(id, task)) === JSON.stringify([...expected].sort());
    });
  const all = ids.flatMap(saysOf);

  beforeAll(async () => {
    net = new Namespaces('pc');
    for (const [index, id] of ids.entries()) {
      places[id] = net.addMachine(id, 11 + index);
      for (const address of [...pods(id), clusterIP(id)]) net.ip(places[id], `addr add ${address}/32 dev lo`);
      net.setResolver(places[id], places[id].address);
    }
    for (const id of ids)
      for (const other of ids)
        if (other !== id) net.ip(places[id], `route add ${net16(other)}.0.0/16 via ${places[other].address}`);
    const members = ids.map((id) => ({ id, region: regions[id], zone: `${id}-a` }));
    broker = await startNodeHome(net, net.hub, { directory: `${directory}/broker`, members, leaseSeconds });
    await Promise.all(ids.map(startCluster));
    for (const id of ids) await eventually(id, {}, all);
  });

  afterAll(async () => {
    for (const proxy of proxies) await proxy.stop('SIGKILL');
    for (const server of servers) await server.stop();
    for (const home of [...Object.values(homes), broker]) await home?.stop();
    net?.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  test('10,000 connections by name from each cluster -> each endpoint within 5 points of even, none fails [003-88, 003-89]', async () => {
    const reports = await Promise.all(
      ids.map((id) => ask(net, places[id], { kind: 'tcp', host: name, port: 80, count: 10_000, lanes: 20 })),
    );
    for (const { answers, failures } of reports) {
      expect(failures).toEqual({});
      expect(Object.keys(answers).sort()).toEqual([...all].sort());
      for (const count of Object.values(answers)) expect(Math.abs(count / 10_000 - 1 / 6)).toBeLessThan(0.05);
    }
  });

  test('HTTP and UDP by name -> every endpoint of every cluster answers', async () => {
    expect(await who('west', { kind: 'http', port: 8000, count: 120 })).toEqual([...all].sort());
    expect(await who('south', { kind: 'udp', port: 53, count: 120 })).toEqual([...all].sort());
  });

  test('a port that one cluster exposes -> reached only there [003-73]', async () => {
    for (const id of ids) expect(await who(id, { port: 81 })).toEqual(saysOf('west'));
  });

  test('the Service of the same name in cluster.local -> its own address, its own backend [003-78, 003-81]', async () => {
    for (const id of ids)
      expect(await who(id, { host: 'web.shop.svc.cluster.local', count: 5 })).toEqual([`own-${id}`]);
  });

  test('affinity that an export asks for -> one endpoint for all connections of a client [003-77]', async () => {
    const ports = [{ name: 'http', port: 80, target: targetPort.east }];
    const affinity = { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } };
    await serve('east', 'sticky', ports, affinity);
    const host = 'sticky.shop.svc.clusterset.local';
    await until('it is served', async () => Array.isArray(await who('south', { host, count: 1 })));
    for (const id of ids) {
      await until('it is served here', async () => Array.isArray(await who(id, { host, count: 1 })));
      expect(await who(id, { host, count: 200 })).toHaveLength(1);
    }
  });

  test('NearestFirst -> the own cluster; without a ready endpoint the own region; Spread again -> all [003-22]', async () => {
    const set = {
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'ClusterSet',
      metadata: { name: 'prod', namespace: 'prod' },
    };
    await broker.order({ patch: { ...set, spec: { locality: 'NearestFirst' } } });
    for (const id of ids) await eventually(id, {}, saysOf(id));
    const ports = webPorts('east').map(({ target, ...port }) => ({ ...port, port: target }));
    await slice('east', 'web', ports, false);
    await eventually('east', {}, saysOf('west'));
    await slice('east', 'web', ports, true);
    await eventually('east', {}, saysOf('east'));
    await broker.order({ patch: { ...set, spec: { locality: 'Spread' } } });
    for (const id of ids) await eventually(id, {}, all);
  });

  /** The results of clients during an action and after it. */
  async function underLoad(
    id: Id,
    task: object,
    change: () => Promise<void>,
  ): Promise<ClientReport & { since: string[]; failuresSince: ClientReport['failures'] }> {
    const clients = startClients(net, places[id], { kind: 'http', host: name, port: 8000, lanes: 50, ...task });
    const mark = async () => {
      clients.child.stdin!.write('mark\n');
      return JSON.parse(await clients.next()) as ClientReport;
    };
    // Busy: every endpoint was asked many times.
    for (let answered = 0; answered < 500; ) {
      await pause(100);
      for (const count of Object.values((await mark()).answers)) answered += count;
    }
    await change();
    await mark();
    await pause(700);
    const since = await mark();
    clients.child.stdin!.write('stop\n');
    const report = JSON.parse(await clients.next()) as ClientReport;
    await clients.stop();
    return { ...report, since: Object.keys(since.answers), failuresSince: since.failures };
  }

  test('a service moves from one cluster to another under load -> same name, same address, no request fails [003-20]', async () => {
    const ports = [{ name: 'page', port: 8000, target: 8000 }];
    const host = 'mover.shop.svc.clusterset.local';
    const task = { host, lanes: 10 };
    await serve('east', 'mover', ports);
    await eventually('south', { kind: 'http', host, port: 8000 }, saysOf('east'));
    const address = () => net.run(places.south, `getent ahostsv4 ${host}`).split(/\s/)[0];
    const before = address();
    const { failures, since, answers } = await underLoad('south', task, async () => {
      await serve('west', 'mover', ports);
      await eventually('south', { kind: 'http', host, port: 8000 }, [...saysOf('east'), ...saysOf('west')]);
      await homes.east.order({ remove: exportOf('mover') });
      await eventually('south', { kind: 'http', host, port: 8000 }, saysOf('west'));
    });
    expect(failures).toEqual({});
    expect(since.sort()).toEqual(saysOf('west'));
    expect(Object.keys(answers)).toContain('east-1');
    expect(address()).toBe(before);
  });

  /** As the node's own data plane would carry it: an address of this cluster with a server behind it. */
  async function oldAddress(id: Id): Promise<string> {
    const address = `10.10${ids.indexOf(id)}.0.8`;
    net.ip(places[id], `addr add ${address}/32 dev lo`);
    servers.push(await startServers(net, places[id], [{ kind: 'http', address, port: 8000, says: `old-${id}` }]));
    return address;
  }

  test('transparent names under load: a service moves from east to west and back -> clients in east that know only cluster.local see no failed request, and its old cluster IP answers', async () => {
    const ports = [{ name: 'page', port: 8000, target: 8000 }];
    const host = 'till.shop.svc.cluster.local';
    const task = { kind: 'http', host, port: 8000 };
    const old = await oldAddress('east');
    await serve('east', 'till', ports, { clusterIP: old });
    await eventually('east', task, ['old-east']);
    const policy = {
      ...{ apiVersion: 'portolan.dev/v1alpha1', kind: 'ServiceImportPolicy', metadata: { name: 'till' } },
      spec: { namespaces: ['shop'], services: ['till'], importAs: 'Transparent' },
    };
    const there = await underLoad('east', { ...task, lanes: 10 }, async () => {
      await homes.east.order({ put: policy });
      await eventually('east', task, saysOf('east'));
      await serve('west', 'till', ports);
      await eventually('south', { ...task, host: 'till.shop.svc.clusterset.local' }, [
        ...saysOf('east'),
        ...saysOf('west'),
      ]);
      // Endpoints of the own cluster come first for as long as there are any.
      expect(await who('east', task)).toEqual(saysOf('east'));
      await homes.east.order({ remove: exportOf('till') });
      await eventually('east', task, saysOf('west'));
      await homes.east.order({ remove: object('v1', 'Service', 'till') });
      await pause(500);
    });
    expect(there.failures).toEqual({});
    expect(there.since.sort()).toEqual(saysOf('west'));
    expect(Object.keys(there.answers)).toContain('old-east');
    expect(await who('east', { ...task, host: old, count: 5 })).toEqual(['old-east']);

    const back = await underLoad('east', { ...task, lanes: 10 }, async () => {
      await serve('east', 'till', ports, { clusterIP: old });
      await eventually('east', task, saysOf('east'));
      await homes.west.order({ remove: exportOf('till') });
      await eventually('south', { ...task, host: 'till.shop.svc.clusterset.local' }, saysOf('east'));
    });
    expect(back.failures).toEqual({});
    expect(back.since.sort()).toEqual(saysOf('east'));
    await homes.east.order({ remove: policy });
    await eventually('east', task, ['old-east']);
  });

  test('a cluster is removed under 50 busy clients -> no request fails, and none goes there after the bound [003-21]', async () => {
    const left = [...saysOf('west'), ...saysOf('south')];
    // Its control plane dies; what runs in it still answers until the others let go of it.
    const { failures, since, answers } = await underLoad('west', {}, async () => {
      await homes.east.stop();
      await pause(1000 * leaseSeconds);
      await eventually('west', { kind: 'http', port: 8000 }, left);
    });
    expect(failures).toEqual({});
    expect(since.sort()).toEqual([...left].sort());
    expect(Object.keys(answers)).toContain('east-1');
  });

  test('a cluster is lost with all its servers under 50 busy clients -> only requests to it fail, and none after the bound [003-21]', async () => {
    // Each connection of the clients and the endpoint that it was led to, as the kernel tracks them.
    const tracked = net.start(places.west, 'conntrack', ['-E', '-e', 'NEW', '-p', 'tcp', '--orig-port-dst', '8000']);
    let events = '';
    tracked.stdout!.setEncoding('utf8').on('data', (chunk: string) => (events += chunk));
    const timeoutMs = 1000;
    const hasSouth = async () => {
      const seen = await who('west', { kind: 'http', port: 8000, count: 40, timeoutMs });
      return Array.isArray(seen) ? seen.some((each) => saysOf('south').includes(each)) : undefined;
    };
    await until('south answers', async () => (await hasSouth()) === true);
    const report = await underLoad('west', { timeoutMs }, async () => {
      net.ip(net.hub, 'link set south down');
      await pause(1000 * leaseSeconds);
      await until('south was let go', async () => (await hasSouth()) === false);
      // Requests under way to it when it was let go have failed by now.
      await pause(timeoutMs + 200);
    });
    tracked.kill('SIGKILL');
    expect([report.failuresSince, report.since.filter((each) => each.startsWith('south'))]).toEqual([{}, []]);
    expect(Object.keys(report.answers)).toContain('south-1');
    const failed = Object.entries(report.failures);
    // The second once the kernel knows that nobody there answers.
    expect(failed.filter(([how]) => !['timeout', 'EHOSTUNREACH'].includes(how))).toEqual([]);
    // A port may be used again after it failed.
    const endpointsOf = new Map<number, string[]>();
    for (const [, port, endpoint] of events.matchAll(/sport=(\d+) dport=8000 \[UNREPLIED\] src=(\S+)/g))
      endpointsOf.set(Number(port), [...(endpointsOf.get(Number(port)) ?? []), endpoint!]);
    expect(failed.length).toBeGreaterThan(0);
    expect(report.failedPorts).toHaveLength(failed.reduce((sum, [, count]) => sum + count, 0));
    const wentSouth = (port: number) => endpointsOf.get(port)?.some((endpoint) => pods('south').includes(endpoint));
    expect(report.failedPorts!.filter((port) => !wentSouth(port))).toEqual([]);
  });
});

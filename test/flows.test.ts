// Known traffic of every outcome through `portolan proxy` on a node of a network namespace: what `portolan observe` shows equals what
// the clients counted. Needs root.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TopRow } from '../src/cli/traffic/top-rows.ts';
import type { FlowPage } from '../src/proxy/flows/flow.ts';
import type { TrafficPage } from '../src/proxy/flows/traffic-page.ts';
import { until } from './support/dns-process.ts';
import { claimsOf, importOf, sliceOf } from './support/imports.ts';
import { Namespaces, namespacesMissing, type Place } from './support/namespaces.ts';
import { portolan, run } from './support/portolan.ts';
import { processesIn } from './support/proxy-kernel.ts';
import {
  ask,
  type LineProcess,
  type NodeHome,
  type ProxyProcess,
  seenBy,
  startNodeHome,
  startProxyProcess,
  startServers,
} from './support/proxy-processes.ts';

const why = namespacesMissing();
const ports = [{ name: 'http', port: 80 }];
const target = [{ name: 'http', port: 8080 }];

/** Clients count for themselves, before addresses are translated and after. */
const countingTo = (
  address: string,
) => `nft 'add table inet ends; add chain inet ends o { type filter hook output priority -150; };
  add chain inet ends i { type filter hook input priority 0; }; add rule inet ends o ip daddr ${address} counter;
  add rule inet ends i ct original ip daddr ${address} counter'`;

describe.skipIf(why !== '')(`flows on a node${why}`, () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-flows-'));
  let net: Namespaces;
  let node: Place;
  let far: Place;
  let pod: Place;
  let home: NodeHome;
  let proxy: ProxyProcess;
  let servers: LineProcess;

  const put = (object: object) => home.order({ put: object as never });
  const serve = async (name: string, ip: string, cluster: string, address: string) => {
    for (const claim of claimsOf(name, { ips: [ip] })) await put(claim);
    await put(importOf(name, { ips: [ip], ports }));
    await put(sliceOf({ service: name, cluster, addresses: [address], ports: target }));
  };
  const command = (...args: string[]) => [
    ...net.within(node),
    ...[portolan, 'observe', '--kubeconfig', home.kubeconfig, ...args],
  ];
  const observe = async (...args: string[]) => {
    const [program, ...rest] = command(...args);
    const { out, err, code } = await run(program!, rest, { timeoutMs: 30_000 });
    return { out, err, code };
  };
  const flows = async (...args: string[]): Promise<(FlowPage['flows'][number] & { from: string; node: string })[]> =>
    JSON.parse((await observe('-o', 'json', ...args)).out);
  const bytesOfClients = () => {
    const counted = [pod, node].flatMap((place) =>
      [...net.run(place, 'nft list table inet ends').matchAll(/bytes (\d+)/g)].map(([, bytes]) => Number(bytes)),
    );
    return { sent: counted[0]! + counted[2]!, received: counted[1]! + counted[3]! };
  };
  const connect = (place: Place, host: string, task: object = {}) =>
    ask(net, place, { kind: 'tcp', host, port: 80, count: 20, ...task });

  const startProxy = async (...more: string[]) => {
    const flags = [
      '--kubeconfig',
      home.proxyKubeconfig,
      '--node',
      'node-1',
      '--cluster-id',
      'near',
      '--zone',
      'n-1',
      ...more,
    ];
    const started = await startProxyProcess(net, node, flags);
    await started.whenReady();
    return started;
  };

  beforeAll(async () => {
    net = new Namespaces('fl');
    node = net.addMachine('node', 11);
    far = net.addMachine('far', 12);
    pod = net.addPod(node, 'pod', '10.66.0');
    net.run(node, 'sysctl -qw net.ipv4.ip_forward=1');
    for (const host of [1, 2, 3]) net.ip(far, `addr add 10.77.0.${host}/32 dev lo`);
    net.ip(node, `route add 10.77.0.0/24 via ${far.address}`);
    net.ip(far, `route add 10.66.0.0/24 via ${node.address}`);
    home = await startNodeHome(net, node, { directory });
    await put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    await serve('good', '243.0.0.1', 'far', '10.77.0.1');
    await serve('closed', '243.0.0.2', 'far', '10.77.0.2');
    await serve('silent', '243.0.0.3', 'farther', '10.77.0.3');
    servers = await startServers(net, far, [{ kind: 'tcp', port: 8080, address: '10.77.0.1', says: 's1' }]);
    net.run(
      far,
      `nft 'add table inet silent; add chain inet silent c { type filter hook input priority 0; }; add rule inet silent c ip daddr 10.77.0.3 drop'`,
    );
    for (const place of [pod, node]) net.run(place, countingTo('243.0.0.1'));
    const client = { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'shop', name: 'client-1' } };
    await put({ ...client, spec: { nodeName: 'elsewhere', containers: [{ name: 'c', image: 'i' }] } });
    const status = { phase: 'Running', podIP: pod.address, podIPs: [{ ip: pod.address }] };
    await home.order({ patch: { ...client, status } as never, subresource: 'status' });
    proxy = await startProxy();
  });

  afterAll(async () => {
    await proxy?.stop('SIGKILL');
    await servers?.stop();
    await home?.stop();
    net?.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  test('answered, refused and unanswered connections -> as many as the clients counted, with client, service, cluster and endpoint', async () => {
    expect((await connect(pod, '243.0.0.1', { count: 25 })).answers).toEqual({ s1: 25 });
    expect((await connect(node, '243.0.0.1', { count: 15 })).answers).toEqual({ s1: 15 });
    expect((await connect(pod, '243.0.0.2', { count: 12 })).failures).toEqual({ ECONNREFUSED: 12 });
    await connect(pod, '243.0.0.3', { count: 4, lanes: 4, timeoutMs: 700 });
    await until('unanswered ones are known', async () => (await flows('--outcome', 'no-answer')).length === 4);
    const good = await flows('--service', 'shop/good');
    expect(good).toHaveLength(40);
    expect(good.filter(({ client }) => client === pod.address)).toHaveLength(25);
    const names = good.map(
      ({ client, clientPod = 'none' }) => `${client === pod.address ? 'pod' : 'node'} ${clientPod}`,
    );
    expect(new Set(names)).toEqual(new Set(['pod shop/client-1', 'node none']));
    expect(new Set(good.map(({ clientPort, client }) => `${client} ${clientPort}`)).size).toBe(40);
    expect(good[0]).toMatchObject({
      ...{ from: 'near', node: 'node-1', service: 'shop/good', cluster: 'far', outcome: 'answered', way: 'direct' },
      ...{ address: '243.0.0.1', port: 80, endpoint: '10.77.0.1', endpointPort: 8080, protocol: 'tcp' },
    });
    expect(good.every(({ answeredAfterMs }) => answeredAfterMs! >= 0 && answeredAfterMs! < 5000)).toBe(true);
    const refused = await flows('--outcome', 'refused');
    expect(refused.map(({ service }) => service)).toEqual(Array(12).fill('shop/closed'));
    expect(refused[0]!.sent?.packets, 'the end of a refused one is told at once').toBe(1);
    expect(new Set((await flows('--to', 'farther')).map(({ service }) => service))).toEqual(new Set(['shop/silent']));
    expect(await flows('--cluster', 'elsewhere')).toEqual([]);
  });

  test('top -> every connection is counted, by service and by cluster, as the clients counted them', async () => {
    const top = async (...args: string[]) => {
      const [program, ...rest] = [...net.within(node), portolan, 'top', '--kubeconfig', home.kubeconfig, ...args];
      return run(program!, rest, { timeoutMs: 30_000 });
    };
    const rows: TopRow[] = JSON.parse((await top('-o', 'json')).out);
    const of = (name: string) => rows.find(({ service }) => service === name);
    expect(of('shop/good')).toMatchObject({ from: 'near', tried: 40, answered: 40, refused: 0, failed: 0 });
    expect(of('shop/good'), 'as the machines of clients counted').toMatchObject(bytesOfClients());
    expect(of('shop/closed')).toMatchObject({ tried: 12, answered: 0, refused: 12, failed: 12 });
    expect(of('shop/silent')).toMatchObject({ answered: 0, refused: 0 });
    expect(of('shop/silent')!.failed).toBeGreaterThanOrEqual(4);
    const { out, code } = await top('--once', '--by', 'cluster');
    expect(code).toBe(0);
    expect(out).toMatch(
      /^FROM +TO +CONN\/S +FAILED\/S +SENT\/S +RECEIVED\/S +CONNECTIONS +FAILED +RESET +SENT +RECEIVED\nnear +far +0\.0 +0\.0 +0B +0B +52 +12 +0 +\S+kB +\S+kB\n/,
    );
    const page = await seenBy<TrafficPage>(home, proxy, '/traffic');
    const sumOf = (rows: readonly { sent: number; received: number }[]) =>
      rows.map(({ sent, received }) => [sent, received]);
    expect(page).toMatchObject({ node: 'node-1', from: 'near', zone: 'n-1', denied: [] });
    const ofFar = page.rows.filter(({ cluster }) => cluster === 'far');
    const [all] = sumOf(page.places.filter(({ cluster }) => cluster === 'far'));
    expect(all, 'bytes by place are those by service').toEqual(
      sumOf(ofFar).reduce(([a, b], [c, d]) => [a! + c!, b! + d!]),
    );
  });

  test('the table for people -> one row each; a wrong outcome -> refused; a stopped proxy -> named, exit code 8', async () => {
    const { out, code } = await observe('--service', 'shop/closed');
    expect(code).toBe(0);
    const [head, first] = out.split('\n');
    expect(head).toMatch(/^TIME +FROM +CLIENT +SERVICE +TO +ENDPOINT +OUTCOME +ANSWER +LASTED +SENT +RECEIVED$/);
    expect(first).toMatch(
      /^\d\d:\d\d:\d\d\.\d{3} +near\/node-1 +10\.66\.0\.\d+:\d+ shop\/client-1 +shop\/closed:80\/tcp +far +10\.77\.0\.2:8080 +refused +- +0s +60B +40B$/,
    );
    expect(await observe('--outcome', 'fine')).toMatchObject({ code: 2 });
    expect((await observe('--service', 'shop/nothing')).out).toContain('no connections were recorded');
  });

  test('who may ask parts, without the right to flows -> neither observe nor top shows a connection; with it both do', async () => {
    const account = {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { namespace: 'portolan-system', name: 'ann' },
    };
    const rbac = 'rbac.authorization.k8s.io';
    const bind = (name: string, roleRef: object) =>
      put({
        ...{ apiVersion: `${rbac}/v1`, kind: 'RoleBinding', metadata: { namespace: 'portolan-system', name } },
        ...{ subjects: [{ ...account.metadata, kind: 'ServiceAccount' }], roleRef: { apiGroup: rbac, ...roleRef } },
      });
    const rules = [
      { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['list'] },
      { apiGroups: [''], resources: ['services/proxy'], verbs: ['get'] },
      {
        apiGroups: [''],
        resources: ['serviceaccounts/token'],
        resourceNames: ['portolan-admin-caller'],
        verbs: ['create'],
      },
    ];
    const role = { namespace: 'portolan-system', name: 'asks-parts' };
    await put(account);
    await put({ apiVersion: `${rbac}/v1`, kind: 'Role', metadata: role, rules });
    await bind('asks', { kind: 'Role', name: role.name });
    const { path } = await home.order<{ path: string }>({ kubeconfigOf: 'ann' });
    const asAnn = (verb: string) =>
      run(net.within(node)[0]!, [...net.within(node).slice(1), portolan, verb, '--kubeconfig', path, '-o', 'json'], {
        timeoutMs: 30_000,
      });
    for (const verb of ['observe', 'top']) {
      const { out, err, code } = await asAnn(verb);
      expect([JSON.parse(out), code]).toEqual([[], 8]);
      expect(err).toMatch(/you may not read connections.*ClusterRole portolan:read-flows/);
    }
    await bind('reads-flows', { kind: 'ClusterRole', name: 'portolan:read-flows' });
    expect(JSON.parse((await asAnn('observe')).out)).not.toEqual([]);
    expect(JSON.parse((await asAnn('top')).out)).not.toEqual([]);
  });

  test('--follow -> a new connection shows within seconds, each once', async () => {
    const [program, ...rest] = command('--follow', '-o', 'json', '--service', 'shop/closed');
    const child = spawn(program!, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.on('data', (chunk) => (text += chunk));
    const lines = () => text.split('\n').filter((line) => line !== '').length;
    try {
      await until('what was there is shown', async () => lines() === 12);
      await connect(node, '243.0.0.2', { count: 3 });
      await until('new ones are shown', async () => lines() >= 15);
      expect(lines()).toBe(15);
    } finally {
      child.kill('SIGKILL');
    }
  });

  test('more new connections than are recorded -> the others are counted by the kernel: none is missing', async () => {
    const { token: ticket } = await home.order<{ token: string }>({ flowTicket: proxy.admin });
    const before: FlowPage = JSON.parse((await proxy.get('/flows', { ticket })).text);
    const count = 4000;
    const { failures } = await connect(node, '243.0.0.2', { count, lanes: 100 });
    expect(Object.values(failures).reduce((sum, each) => sum + each, 0)).toBe(count);
    await until('all were read', async () => {
      let [seen, after] = [0, before.next];
      for (;;) {
        const { text } = await proxy.get(`/flows?after=${after}&outcome=refused`, { ticket });
        const page: FlowPage = JSON.parse(text);
        seen += page.flows.length + page.forgotten;
        after = page.next;
        const untold = (page.losses.unrecorded ?? 0) - (before.losses.unrecorded ?? 0);
        if (!page.hasMore && page.losses.overflows > 0) return true;
        if (!page.hasMore) return seen + untold === count && untold > 0;
      }
    });
  });

  test('the reader of the kernel ends -> it is said, and started again', async () => {
    const ours = processesIn(net, node, '^conntrack -E ');
    expect(ours).toHaveLength(1);
    process.kill(ours[0]!, 'SIGKILL');
    await until('it is said', async () => (await observe()).err.includes('conntrack ended with SIGKILL'));
    await until('it reads again', async () => {
      await connect(node, '243.0.0.1', { count: 1 });
      const last = (await flows('--service', 'shop/good')).at(-1);
      return Date.now() - last!.startedMs! < 2000;
    });
    expect((await observe()).err).toContain('of rest to save CPU');
  });

  test('--no-flows -> nothing listens, and observe says why', async () => {
    await proxy.stop();
    proxy = await startProxy('--no-flows');
    const { err, code } = await observe();
    expect(err).toContain('records no flows');
    expect(code).toBe(8);
  });
});

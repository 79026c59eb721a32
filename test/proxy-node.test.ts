// `portolan proxy` on one node of a network namespace, with a pod behind it and servers in another namespace: real packets
// through the kernel's rules. Needs root.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Lease } from '../src/kube/objects/lease.ts';
import { until } from './support/dns-process.ts';
import { claimsOf, type ImportSpec, importOf, sliceOf } from './support/imports.ts';
import { Namespaces, namespacesMissing, type Place } from './support/namespaces.ts';
import { portolan, run } from './support/portolan.ts';
import { comparable, nftSessionsIn, processesIn } from './support/proxy-kernel.ts';
import {
  ask,
  type LineProcess,
  type NodeHome,
  type ProxyProcess,
  startClients,
  startNodeHome,
  startProxyProcess,
  startServers,
} from './support/proxy-processes.ts';

const why = namespacesMissing();
const vip = '243.0.0.1';
const vip6 = 'fd70:6f72:74f3::1';
const hosts = [1, 2, 3];
const target = [
  { name: 'http', port: 8080 },
  { name: 'dns', port: 5353, protocol: 'UDP' },
];
const ports = [
  { name: 'http', port: 80 },
  { name: 'dns', port: 53, protocol: 'UDP' },
];

describe.skipIf(why !== '')(`proxy on a node${why}`, () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-proxy-'));
  let net: Namespaces;
  let node: Place;
  let far: Place;
  let pod: Place;
  let home: NodeHome;
  let servers: LineProcess[] = [];
  let proxy: ProxyProcess;

  const flags = (...more: string[]) => [
    '--kubeconfig',
    home.proxyKubeconfig,
    '--node',
    'node-1',
    '--cluster-id',
    'near',
    ...more,
  ];
  const startProxy = async (...more: string[]) => {
    const started = await startProxyProcess(net, node, flags(...more));
    await started.whenReady();
    return started;
  };
  const put = (object: object) => home.order({ put: object as never });
  /** With the claims that an agent makes before it writes an import. */
  const putImport = async (name: string, spec: ImportSpec) => {
    for (const claim of claimsOf(name, spec)) await put(claim);
    await put(importOf(name, spec));
  };
  const slice = (service: string, alive: readonly number[], more: object = {}) =>
    put(
      sliceOf({ service, cluster: 'far', addresses: alive.map((host) => `10.77.0.${host}`), ports: target, ...more }),
    );
  const who = async (place: Place, task: object) => {
    const { answers, failures } = await ask(net, place, { kind: 'tcp', host: vip, port: 80, count: 60, ...task });
    return { who: Object.keys(answers).sort(), failures };
  };
  /** Once the rules follow the last write. */
  const eventually = (place: Place, task: object, expected: readonly string[]) =>
    until(`${JSON.stringify(task)} is answered by ${expected}`, async () => {
      const seen = await who(place, task);
      return JSON.stringify(seen) === JSON.stringify({ who: [...expected].sort(), failures: {} });
    });
  const rules = () => net.run(node, 'nft list ruleset');
  const differences = async () => JSON.parse((await proxy.get('/verify', { method: 'POST' })).text).differences;

  beforeAll(async () => {
    net = new Namespaces('pn');
    node = net.addMachine('node', 11);
    far = net.addMachine('far', 12);
    pod = net.addPod(node, 'pod', '10.66.0');
    net.run(node, 'sysctl -qw net.ipv4.ip_forward=1');
    for (const host of hosts) {
      net.ip(far, `addr add 10.77.0.${host}/32 dev lo`);
      net.ip(far, `-6 addr add fd77::${host}/128 dev lo nodad`);
    }
    net.ip(node, `route add 10.77.0.0/24 via ${far.address}`);
    net.ip(node, `-6 route add fd77::/64 via ${far.address6}`);
    net.ip(far, `route add 10.66.0.0/24 via ${node.address}`);
    home = await startNodeHome(net, node, { directory });
    await put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    await putImport('a', { ips: [vip, vip6], ports: [...ports, { name: 'other', port: 81 }] });
    await slice('a', hosts);
    await put(
      sliceOf({ service: 'a', cluster: 'far', addresses: hosts.map((host) => `fd77::${host}`), ports: target }),
    );
    const addresses = hosts.flatMap((host) =>
      [`10.77.0.${host}`, `fd77::${host}`].map((address) => ({ address, says: `s${host}` })),
    );
    servers = [
      await startServers(
        net,
        far,
        addresses.flatMap((each) => [
          { kind: 'tcp', port: 8080, ...each },
          { kind: 'udp', port: 5353, ...each },
        ]),
      ),
      await startServers(net, pod, [{ kind: 'tcp', port: 8080, address: pod.address, says: 'pod' }]),
    ];
    net.run(
      node,
      `nft 'add table ip others; add chain ip others c { type nat hook postrouting priority 100; }; add rule ip others c ip daddr 192.0.2.1 masquerade'`,
    );
    proxy = await startProxy();
  });

  afterAll(async () => {
    await proxy?.stop('SIGKILL');
    for (const server of servers) await server.stop();
    await home?.stop();
    net?.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  test.each([
    ['tcp', vip, 80, 4],
    ['tcp', vip6, 80, 6],
    ['udp', vip, 53, 4],
    ['udp', vip6, 53, 6],
  ])('%s to %s from the node -> every endpoint answers', async (kind, host, port, family) => {
    expect(await who(node, { kind, host, port, family })).toEqual({ who: ['s1', 's2', 's3'], failures: {} });
  });

  test.each(['tcp', 'udp'])('%s from a pod -> every endpoint answers', async (kind) => {
    const port = kind === 'tcp' ? 80 : 53;
    expect(await who(pod, { kind, port })).toEqual({ who: ['s1', 's2', 's3'], failures: {} });
  });

  test('a port without ready endpoints, an unknown port, an unknown address -> refused at once, for node and pod', async () => {
    for (const place of [node, pod])
      for (const to of [{ port: 81 }, { port: 82 }, { host: '243.0.9.9' }])
        expect(await who(place, { ...to, count: 5 })).toEqual({ who: [], failures: { ECONNREFUSED: 5 } });
    const udp = await who(pod, { kind: 'udp', port: 54, count: 1, timeoutMs: 3000 });
    expect(udp.failures).toEqual({ ECONNREFUSED: 1 });
  });

  test('a pod that is given itself -> answers itself', async () => {
    const http = [{ name: 'http', port: 80 }];
    await putImport('hair', { ips: ['243.0.0.2'], ports: http });
    const addresses = [pod.address];
    await put(sliceOf({ service: 'hair', cluster: 'near', addresses, ports: [{ name: 'http', port: 8080 }] }));
    await eventually(pod, { host: '243.0.0.2', timeoutMs: 1000, count: 5 }, ['pod']);
  });

  test('session affinity, TCP and UDP, both families -> one endpoint; it goes -> another; after the timeout any', async () => {
    const each = async ({ kind, family, index }: { kind: string; family: number; index: number }) => {
      const service = `sticky-${index}`;
      const host = family === 6 ? `fd70:6f72:74f3::1${index}` : `243.0.1.${index}`;
      const addressesOf = (alive: readonly number[]) =>
        alive.map((every) => (family === 6 ? `fd77::${every}` : `10.77.0.${every}`));
      const serve = (alive: readonly number[]) =>
        put(sliceOf({ service, cluster: 'far', addresses: addressesOf(alive), ports: target }));
      await putImport(service, { ips: [host], ports, affinitySeconds: 1 });
      await serve(hosts);
      const asking = { kind, host, port: kind === 'tcp' ? 80 : 53, family };
      await until('it is served', async () => (await who(node, { ...asking, count: 1 })).who.length === 1);
      const first = await who(node, asking);
      expect(first).toEqual({ who: [expect.any(String)], failures: {} });
      await serve(hosts.filter((every) => first.who[0] !== `s${every}`));
      await until('it has moved', async () => (await who(node, { ...asking, count: 1 })).who[0] !== first.who[0]);
      expect((await who(node, asking)).who).toHaveLength(1);
      await serve(hosts);
      const seen = new Set<string>();
      await until('it was given another one after the timeout', async () => {
        await pause(1200);
        for (const every of (await who(node, { ...asking, count: 1 })).who) seen.add(every);
        return seen.size > 1;
      });
    };
    const combinations = ['tcp', 'udp'].flatMap((kind) => [4, 6].map((family) => ({ kind, family })));
    await Promise.all(combinations.map((combination, index) => each({ ...combination, index })));
  });

  test('an endpoint goes -> no new connection to it; an established one goes on; a UDP client with its port moves', async () => {
    const session = startClients(net, node, { kind: 'tcp-session', host: vip, port: 80 });
    const udp = startClients(net, node, { kind: 'udp-session', host: vip, port: 53 });
    const [first, heard] = [await session.next(), await udp.next()];
    await slice(
      'a',
      hosts.filter((host) => `s${host}` !== first && `s${host}` !== heard),
    );
    const left = hosts.map((host) => `s${host}`).filter((each) => each !== first && each !== heard);
    await eventually(node, {}, left);
    expect(await session.ask<string>('again')).toBe(first);
    await until('the UDP client has moved', async () => left.includes(await udp.ask<string>('again')));
    await slice('a', hosts);
    await eventually(node, {}, ['s1', 's2', 's3']);
    expect(await session.ask<string>('again')).toBe(first);
    await session.stop();
    await udp.stop();
  });

  /** For how many seconds the kernel will remember connections that are not answered. */
  const attemptsKept = async (family: number): Promise<number[]> => {
    const args = ['-L', '-f', `ipv${family}`, '-p', 'tcp', '--state', 'SYN_SENT', '-d', family === 4 ? vip : vip6];
    const listed = await net.output(node, 'conntrack', args);
    return [...listed.matchAll(/^tcp\s+6 (\d+) SYN_SENT/gm)].map(([, seconds]) => Number(seconds));
  };

  test.each([4, 6])(
    'IPv%s: an endpoint is silent and called ready -> no connection fails: the next attempt goes to another',
    async (family) => {
      const silent = family === 4 ? 'ip daddr 10.77.0.3' : 'ip6 daddr fd77::3';
      net.run(
        far,
        `nft 'add table inet silent; add chain inet silent c { type filter hook input priority 0; }; add rule inet silent c ${silent} tcp dport 8080 drop'`,
      );
      try {
        const task = { host: family === 4 ? vip : vip6, family, lanes: 60, timeoutMs: 40_000 };
        let isAsking = true;
        const asked = who(node, task).finally(() => (isAsking = false));
        let longest = 0;
        while (isAsking) longest = Math.max(longest, ...(await attemptsKept(family)));
        expect(await asked).toEqual({ who: ['s1', 's2'], failures: {} });
        // The node leaves the endpoint after a moment: nothing fails either way, but attempts would be kept for two minutes.
        expect(longest).toBeLessThanOrEqual(4);
        if (family === 4) expect(await who(pod, task)).toEqual({ who: ['s1', 's2'], failures: {} });
      } finally {
        net.run(far, 'nft delete table inet silent');
      }
    },
  );

  test('weights on an import -> its connections go by them, with and without affinity; a change of weights is followed', async () => {
    const shares = async (task: object = {}) => {
      const count = 3000;
      const { answers, failures } = await ask(net, node, { kind: 'tcp', host: '243.0.0.9', port: 80, count, ...task });
      expect(failures).toEqual({});
      return Object.fromEntries(Object.entries(answers).map(([says, times]) => [says, (100 * times) / count]));
    };
    const weighted = async (first: number, affinitySeconds?: number) => {
      const spec = { ips: ['243.0.0.9'], ports, ...(affinitySeconds === undefined ? {} : { affinitySeconds }) };
      const groups = [
        [['far'], first],
        [['other'], 100 - first],
      ];
      const made = importOf('w', spec);
      const annotations = { 'portolan.dev/routing': JSON.stringify({ g: groups }) };
      await put({ ...made, metadata: { ...made.metadata, annotations } });
    };
    for (const claim of claimsOf('w', { ips: ['243.0.0.9'] })) await put(claim);
    await weighted(90);
    await put(sliceOf({ service: 'w', cluster: 'far', addresses: ['10.77.0.1'], ports: target }));
    await put(sliceOf({ service: 'w', cluster: 'other', addresses: ['10.77.0.2', '10.77.0.3'], ports: target }));
    await until('all are served', async () => Object.keys(await shares()).length === 3);
    const first = await shares();
    expect(Math.abs(first['s1']! - 90)).toBeLessThan(2);
    expect(Math.abs(first['s2']! - 5)).toBeLessThan(2);
    await weighted(20);
    await until('the change is followed', async () => (await shares())['s1']! < 50);
    const second = await shares();
    expect(Math.abs(second['s1']! - 20)).toBeLessThan(3);
    expect(await differences()).toEqual([]);
    await weighted(50, 600);
    const sticky = { host: '243.0.0.9', count: 30 };
    await until('one client has one endpoint', async () => (await who(node, sticky)).who.length === 1);
    expect(await differences()).toEqual([]);
  });

  test('somebody deletes, adds and flushes in our table -> put right; other tables are never touched', async () => {
    const others = () => net.run(node, 'nft list table ip others');
    const ours = () => JSON.stringify(comparable(net.run(node, 'nft -j list ruleset')));
    const [before, planned] = [others(), ours()];
    for (const change of [
      `delete element inet portolan svc4 '{ ${vip} . tcp . 80 }'`,
      'add chain inet portolan mine',
      'flush chain inet portolan nat-out',
      'delete table inet portolan',
    ]) {
      const { foreignChanges } = JSON.parse((await proxy.get('/status')).text);
      net.run(node, `nft ${change}`);
      await until(
        'it was noticed',
        async () => JSON.parse((await proxy.get('/status')).text).foreignChanges > foreignChanges,
      );
      // Read from the kernel: a comparison by the proxy would put it right.
      await until('it was put right', async () => ours() === planned);
      expect(await who(node, {})).toEqual({ who: ['s1', 's2', 's3'], failures: {} });
    }
    expect(rules()).not.toContain('chain mine');
    expect(others()).toBe(before);
  });

  test('a firewall is restarted, which flushes the whole ruleset -> our tables are back within seconds', async () => {
    const others = net.run(node, 'nft list table ip others');
    const tables = () =>
      net
        .run(node, 'nft list tables')
        .split('\n')
        .filter((line) => line.includes('portolan'))
        .sort();
    const ours = () => JSON.stringify(comparable(net.run(node, 'nft -j list ruleset')));
    const [planned, before] = [ours(), tables()];
    expect(before).toContain('table inet portolan-retry');
    net.run(node, 'nft flush ruleset');
    net.run(node, `nft '${others}'`);
    await until('all of it was put right', async () => ours() === planned && `${tables()}` === `${before}`);
    expect(await who(node, {})).toEqual({ who: ['s1', 's2', 's3'], failures: {} });
  });

  test('a rule is replaced by another while nothing watches -> the comparison finds it by its text, and puts it right', async () => {
    expect(await differences()).toEqual([]);
    // A monitor that lost track of maps is replaced within this time.
    await pause(6500);
    const monitors = processesIn(net, node, '^nft monitor$');
    expect(monitors).toHaveLength(1);
    for (const pid of monitors) process.kill(pid, 'SIGSTOP');
    try {
      const listed = net.run(node, 'nft -a list chain inet portolan refuse');
      const handle = /reject with tcp reset # handle (\d+)/.exec(listed)?.[1];
      net.run(node, `nft replace rule inet portolan refuse handle ${handle} meta l4proto tcp drop`);
      expect(await differences()).toEqual([
        'rule 1 of chain refuse is another one than meta l4proto tcp reject with tcp reset',
      ]);
      expect(net.run(node, 'nft list chain inet portolan refuse')).toContain('reject with tcp reset');
      expect(await differences()).toEqual([]);
    } finally {
      for (const pid of monitors) process.kill(pid, 'SIGCONT');
    }
  });

  test('in a PID namespace of its own, as in a Pod -> its own changes are known, those of others are put right', async () => {
    await proxy.stop();
    proxy = await startProxyProcess(net, node, flags(), ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc']);
    await proxy.whenReady();
    const status = async () => JSON.parse((await proxy.get('/status')).text);
    for (const alive of [[1], [1, 2], hosts]) {
      await slice('a', alive);
      await eventually(
        node,
        {},
        alive.map((host) => `s${host}`),
      );
    }
    const before = await status();
    await pause(3000);
    expect(await status()).toMatchObject({ foreignChanges: 0, transactions: before.transactions });
    net.run(node, 'nft flush chain inet portolan nat-out');
    await until('it is noticed', async () => (await status()).foreignChanges === 1);
    await eventually(node, {}, ['s1', 's2', 's3']);
    await proxy.stop('SIGKILL');
    proxy = await startProxy();
  });

  test('kill -9, changes meanwhile, start again -> the kernel equals the plan, clients keep their endpoint', async () => {
    await putImport('sticky', { ips: ['243.0.0.3'], ports, affinitySeconds: 600 });
    await slice('sticky', hosts);
    await until('it is served', async () => (await who(node, { host: '243.0.0.3', count: 1 })).who.length === 1);
    const before = await who(node, { host: '243.0.0.3' });
    const session = startClients(net, node, { kind: 'tcp-session', host: vip, port: 80 });
    const first = await session.next();
    await proxy.stop('SIGKILL');
    expect(await who(node, {}), 'the rules stay').toEqual({ who: ['s1', 's2', 's3'], failures: {} });
    await slice('a', [1, 2]);
    await home.order({ remove: { ...importOf('hair', { ips: [], ports: [] }) } });
    proxy = await startProxy();
    expect(await differences()).toEqual([]);
    expect(await who(node, {})).toEqual({ who: ['s1', 's2'], failures: {} });
    expect(await who(node, { host: '243.0.0.2', count: 2 })).toEqual({ who: [], failures: { ECONNREFUSED: 2 } });
    expect(await who(node, { host: '243.0.0.3' })).toEqual(before);
    expect(await session.ask<string>('again')).toBe(first);
    await session.stop();
    await slice('a', hosts);
    await eventually(node, {}, ['s1', 's2', 's3']);
  });

  test('nft is killed -> the next change starts another one', async () => {
    const inside = nftSessionsIn(net, node);
    for (const pid of inside) process.kill(pid, 'SIGKILL');
    expect(inside).toHaveLength(1);
    await slice('a', [2, 3]);
    await eventually(node, {}, ['s2', 's3']);
    await slice('a', hosts);
    await eventually(node, {}, ['s1', 's2', 's3']);
    expect(await differences()).toEqual([]);
  });

  test('internalTrafficPolicy Local -> only the endpoint on this node', async () => {
    const http = [{ name: 'http', port: 80 }];
    await put({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'node-1' },
      spec: { podCIDR: '10.66.0.0/24', podCIDRs: ['10.66.0.0/24'] },
    });
    await putImport('local', { ips: ['243.0.0.4'], ports: http, internalTrafficPolicy: 'Local' });
    await put(
      sliceOf({
        service: 'local',
        cluster: 'near',
        addresses: [pod.address, '10.77.0.1'],
        ports: [{ name: 'http', port: 8080 }],
      }),
    );
    await eventually(node, { host: '243.0.0.4' }, ['pod']);
  });

  test('imports with bad and foreign addresses -> named in /status, the good ones are served', async () => {
    await put(importOf('foreign', { ips: ['192.0.2.1'], ports }));
    await put(importOf('twin', { ips: [vip], ports }));
    await putImport('many', { ips: ['243.0.0.5'], ports });
    const many = Array.from({ length: 10_000 }, (_, i) => `10.9.${i >> 8}.${i & 255}`);
    for (let at = 0; at < many.length; at += 1000) {
      const object = sliceOf({ service: 'many', cluster: 'far', addresses: many.slice(at, at + 1000), ports: target });
      object.metadata.name = `many-${at}`;
      await put(object);
    }
    await until(
      'ten thousand endpoints are served',
      async () => JSON.parse((await proxy.get('/status')).text).size.backends > 20_000,
    );
    const { problems, problem } = JSON.parse((await proxy.get('/status')).text);
    expect(problem).toBe('');
    expect(problems['shop/foreign']).toEqual([expect.stringContaining('192.0.2.1 is outside the ranges')]);
    expect(problems['shop/twin']).toEqual([`${vip} belongs to ServiceImport shop/a, as its AddressClaim says`]);
    expect(await differences()).toEqual([]);
    expect(await who(node, {})).toEqual({ who: ['s1', 's2', 's3'], failures: {} });
  });

  test("the clusterset's ranges change -> followed by imports, refusal and routes; those of an interface -> said, the rules stay", async () => {
    const status = async () => JSON.parse((await proxy.get('/status')).text);
    const ranges = (clusterSetRanges: string) =>
      put({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'portolan-clusterset-dns', namespace: 'portolan-system' },
        data: { clusterSetRanges, peersRanges: '241.0.0.0/8' },
      });
    await putImport('later', { ips: ['244.0.0.1'], ports });
    await slice('later', hosts);
    await until('it is outside', async () => 'shop/later' in (await status()).problems);
    await ranges('244.0.0.0/16,243.0.0.0/12,fd70:6f72:74f3::/64');
    await eventually(node, { host: '244.0.0.1' }, ['s1', 's2', 's3']);
    expect(await who(pod, { host: '244.0.0.9', count: 2 })).toEqual({ who: [], failures: { ECONNREFUSED: 2 } });
    expect(net.ip(node, 'route show')).toContain('244.0.0.0/16 dev lo');
    await ranges('10.88.0.0/16');
    await until('it is said', async () => /overlaps 10\.88\.0\.0\/24/.test((await proxy.get('/readyz')).text));
    expect((await who(node, { host: '244.0.0.1' })).who, 'the good rules stay').toEqual(['s1', 's2', 's3']);
    await ranges('243.0.0.0/12,fd70:6f72:74f3::/64');
    await until('it is outside again', async () => 'shop/later' in (await status()).problems);
    expect(net.ip(node, 'route show')).not.toContain('244.');
    expect(await differences()).toEqual([]);
    expect((await who(node, {})).who).toEqual(['s1', 's2', 's3']);
    await home.order({ remove: importOf('later', { ips: [], ports: [] }) });
  });

  test('metrics, readiness and the Lease -> say what it serves', async () => {
    expect((await proxy.get('/readyz')).status).toBe(200);
    expect((await proxy.get('/metrics')).text).toMatch(/portolan_proxy_transaction_seconds_count\{kind="change"\} \d+/);
    const metadata = { namespace: 'portolan-system', name: 'portolan-proxy-node-1' };
    const lease = await home.order({ get: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata } });
    expect(lease.metadata.annotations).toMatchObject({
      'portolan.dev/node': 'node-1',
      'portolan.dev/mode': 'nftables',
    });
  });

  test('test connectivity -> who answered; where it fails, what is wrong', async () => {
    const command = (...args: string[]) =>
      run('ip', [
        ...net.within(node).slice(1),
        portolan,
        'test',
        'connectivity',
        '--kubeconfig',
        home.kubeconfig,
        ...args,
      ]);
    const { out, code } = await command('shop/a', '--count', '40');
    expect(out).toMatch(/^243\.0\.0\.1:80: 40 connected\n( {2}\d+ by 10\.77\.0\.\d:8080, cluster far\n){3}/m);
    expect([code, out]).toEqual([7, expect.stringContaining('does not resolve here')]);
    expect((await command('shop/many', '--count', '1')).out).toMatch(
      /asked without the proxy: 10\.9\.0\.0:8080 (timed out|unreachable)/,
    );
    expect((await command('shop/nobody')).out).toContain('no ServiceImport shop/nobody in this cluster');
    await home.order({ remove: importOf('many', { ips: [], ports: [] }) });
    const there = JSON.parse((await proxy.get('/connectivity?service=shop/a&count=9')).text);
    expect(there.ports[0].outcomes).toEqual({ connected: 9 });
  });

  test('a redirect to a local port -> taken, except for the user of the Envoy and for connections that are older', async () => {
    const envoy = await startServers(net, node, [{ kind: 'tcp', address: '0.0.0.0', port: 15_001, says: 'envoy' }]);
    const session = startClients(net, node, { kind: 'tcp-session', host: '10.77.0.1', port: 8080 });
    expect(await session.next()).toBe('s1');
    await proxy.stop();
    // As if it were older than any tracking: its next packet is the first that the rules see.
    net.run(node, 'conntrack -D -p tcp --orig-dst 10.77.0.1');
    proxy = await startProxy('--redirect', '10.77.0.0/24:8080/tcp=15001', '--envoy-uid', '1337');
    expect((await who(node, { host: '10.77.0.1', port: 8080 })).who).toEqual(['envoy']);
    expect((await who(pod, { host: '10.77.0.2', port: 8080 })).who).toEqual(['envoy']);
    const asEnvoy = net.run(
      node,
      `setpriv --reuid 1337 --clear-groups curl -s --max-time 2 telnet://10.77.0.2:8080 </dev/null || true`,
    );
    expect(asEnvoy.trim()).toBe('s2');
    expect(await session.ask<string>('again')).toBe('s1');
    expect((await who(node, {})).who, 'a clusterset address goes to its endpoints').toEqual(['s1', 's2', 's3']);
    await session.stop();
    await envoy.stop();
    await proxy.stop();
    proxy = await startProxy();
    expect((await who(node, { host: '10.77.0.1', port: 8080 })).who).toEqual(['s1']);
  });

  test('ip_forward off, a second proxy -> says so and what to do; the good rules stay', async () => {
    net.run(node, 'sysctl -qw net.ipv4.ip_forward=0');
    const second = await run('ip', [...net.within(node).slice(1), portolan, 'proxy', ...flags()]);
    expect([second.code, second.err]).toEqual([1, expect.stringContaining('another portolan proxy runs on this node')]);
    await proxy.stop();
    proxy = await startProxy();
    expect(JSON.parse((await proxy.get('/status')).text).nodeProblems.join()).toContain(
      'sysctl -w net.ipv4.ip_forward=1',
    );
    expect((await who(node, {})).who).toEqual(['s1', 's2', 's3']);
    net.run(node, 'sysctl -qw net.ipv4.ip_forward=1');
  });

  test('--dry-run -> the rules as text, which another namespace takes; nothing is changed', async () => {
    const before = comparable(net.run(node, 'nft -j list table inet portolan'));
    const { out, code } = await run('ip', [...net.within(node).slice(1), portolan, 'proxy', '--dry-run', ...flags()]);
    expect(code).toBe(0);
    expect(out).toContain('add element inet portolan svc4 {');
    expect(comparable(net.run(node, 'nft -j list table inet portolan'))).toEqual(before);
    const fresh = await run(
      'ip',
      [
        'netns',
        'exec',
        far.name,
        'sh',
        '-c',
        `cat > ${directory}/dry.nft; nft -f ${directory}/dry.nft && nft -j list table inet portolan; nft delete table inet portolan`,
      ],
      { input: out },
    );
    expect(comparable(fresh.out)).toEqual(before);
  });

  test('no nft, no permission, a range of another interface -> an error that says what to do', async () => {
    const proxyWith = (env: NodeJS.ProcessEnv, prefix: string[] = [], ...more: string[]) =>
      run('ip', [...net.within(far).slice(1), ...prefix, portolan, 'proxy', '--kubeconfig', home.kubeconfig, ...more], {
        env,
      });
    const unprivileged = ['setpriv', '--bounding-set', '-net_admin', '--inh-caps', '-net_admin'];
    const denied = await proxyWith(process.env, unprivileged);
    expect([denied.code, denied.err]).toEqual([1, expect.stringContaining('run it as root or with CAP_NET_ADMIN')]);
    const taken = await proxyWith(process.env, [], '--range', '10.88.0.0/16');
    expect([taken.code, taken.err]).toEqual([
      1,
      expect.stringMatching(/10\.88\.0\.0\/16 overlaps 10\.88\.0\.0\/24, which interface eth0 uses/),
    ]);
    const hidden = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /usr/sbin && exec "$@"', 'sh'];
    const missing = await proxyWith(process.env, hidden);
    expect([missing.code, missing.err]).toEqual([1, expect.stringContaining('nft is not installed: install nftables')]);
  });

  test('a kernel that lacks a feature -> not ready, with what it needs', async () => {
    // Answers as nft does where the kernel has no NAT.
    const refusing = `#!/bin/sh
case "$1" in
-i) while read -r line; do case "$line" in
  include*) echo '/tmp/0.nft:3:1-10: Error: Could not process rule: No such file or directory';;
  describe*) echo 'ct expression, datatype ct_state (conntrack state)';;
  esac; done;;
monitor) exec sleep 600;;
*) echo '{"nftables":[]}';;
esac
`;
    writeFileSync(join(directory, 'nft'), refusing, { mode: 0o755 });
    const prefix = ['unshare', '-m', 'sh', '-c', `mount --bind ${directory}/nft /usr/sbin/nft && exec "$@"`, 'sh'];
    const lacking = await startProxyProcess(net, far, ['--kubeconfig', home.kubeconfig, '--node', 'far-1'], prefix);
    await until('it says so', async () => (await lacking.get('/readyz')).text.includes('may lack a feature'));
    expect((await lacking.get('/readyz')).text).toContain(
      'nf_tables with nat, masquerade, redirect, reject and numgen',
    );
    await lacking.stop();
  });

  test('it stops in order -> the Lease is gone, the rules stay; --cleanup -> nothing is left, busy clients are reset', async () => {
    // Those that were killed before it leave a Lease behind, which it takes over when that has run out.
    const names = ['portolan-proxy-node-1', 'portolan-proxy-node-1.2', 'portolan-proxy-node-1.3'];
    const leases = () =>
      Promise.all(
        names.map((name) => {
          const metadata = { namespace: 'portolan-system', name };
          return home.order<Lease | null>({ get: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata } });
        }),
      );
    const renewed = (await leases()).map((lease) => lease?.spec?.renewTime ?? '');
    const own = renewed.indexOf(renewed.toSorted().at(-1)!);
    expect(renewed[own]).not.toBe('');
    await proxy.stop();
    expect((await leases())[own]).toBeNull();
    expect((await who(node, {})).who).toEqual(['s1', 's2', 's3']);
    const cleanUp = () => run('ip', [...net.within(node).slice(1), portolan, 'proxy', '--cleanup']);
    net.run(node, `nft 'add chain ip others p { type nat hook prerouting priority -100; }'`);
    const kept = startClients(net, pod, { kind: 'tcp-session', host: vip, port: 80 });
    const first = await kept.next();
    expect((await cleanUp()).code).toBe(0);
    expect(await kept.ask<string>('again'), 'another table translates: it goes on').toBe(first);
    await kept.stop();
    expect(rules()).not.toContain('portolan');
    expect(rules()).toContain('table ip others');
    expect(net.ip(node, 'route show')).not.toContain('243.');
    net.run(node, 'nft delete table ip others');
    proxy = await startProxy();
    await proxy.stop();
    const busy = startClients(net, node, { kind: 'tcp-session', host: vip, port: 80, everyMs: 100 });
    await busy.next();
    const cleaned = cleanUp();
    const startedMs = performance.now();
    const ended = await busy.next();
    expect([ended, performance.now() - startedMs < 10_000]).toEqual([
      expect.stringMatching(/ECONNRESET|ECONNREFUSED/),
      true,
    ]);
    expect((await cleaned).code).toBe(0);
    expect(rules()).toBe('');
    await busy.stop();
  });
});

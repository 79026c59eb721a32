// Which calls of other clusters reach the Pods of a node, with the real proxy and real packets: network namespaces stand for
// clusters. Needs root. ACCESS_ATTEMPTS=10000 makes as many random attempts.

import { type ChildProcess, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AccessReport } from '../src/kube/objects/reports/access-report.ts';
import { until } from './support/dns-process.ts';
import { Namespaces, namespacesMissing, type Place } from './support/namespaces.ts';
import {
  type LineProcess,
  type NodeHome,
  type ProxyProcess,
  startNodeHome,
  startProxyProcess,
  startServers,
} from './support/proxy-processes.ts';

const why = namespacesMissing();
const attemptsOf = fileURLToPath(new URL('support/access-attempts.mjs', import.meta.url));
const attemptCount = Number(process.env['ACCESS_ATTEMPTS'] ?? 600);
const pods = [1, 2, 3];
const targets = [8080, 8081, 9090];
const callers = ['west', 'south', 'stranger'] as const;
/** Pods and target ports behind each service, and the clusters it is exported to; undefined is not exported. */
const services = {
  web: { pod: 1, ports: [8080], to: 'all' },
  api: { pod: 2, ports: [8080, 9090], to: ['west'] },
  db: { pod: 3, ports: [8080], to: undefined },
  shared: { pod: 1, ports: [9090], to: ['south', 'nobody'] },
} as const;

const exportType = { apiVersion: 'multicluster.x-k8s.io/v1beta1', kind: 'ServiceExport' };

interface Attempt {
  readonly from: (typeof callers)[number];
  readonly pod: number;
  readonly port: number;
  readonly kind: 'tcp' | 'udp';
  readonly family: 4 | 6;
}

/** The rule once more, by hand. */
function isAllowed({ from, pod, port }: Attempt): boolean {
  if (from === 'stranger') return true;
  return Object.values(services).some(
    ({ to, ...service }) =>
      service.pod === pod &&
      (service.ports as readonly number[]).includes(port) &&
      (to === 'all' || (to !== undefined && (to as readonly string[]).includes(from))),
  );
}

describe.skipIf(why !== '')(`access on a node${why}`, () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-access-'));
  let net: Namespaces;
  let node: Place;
  let home: NodeHome;
  let proxy: ProxyProcess;
  const places = new Map<string, Place>();
  const servers: LineProcess[] = [];
  const children: ChildProcess[] = [];

  const put = (object: object) => home.order({ put: object as never });
  const known = { west: ['10.88.0.21/32', 'fd88::21/128'], south: ['10.88.0.22/32', 'fd88::22/128'] };
  const access = (mode: string, { sources = known, closedRanges = [] as string[] } = {}) => {
    return put({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'portolan-clusterset-dns', namespace: 'portolan-system' },
      data: { access: JSON.stringify({ mode, sources, podRanges: ['10.91.0.0/16', 'fd91::/16'], closedRanges }) },
    });
  };
  const putExport = async (name: string, to: string | undefined) => {
    const annotations = to === undefined ? {} : { 'portolan.dev/export-to': to };
    await put({ ...exportType, metadata: { name, namespace: 'shop', annotations } });
    const conditions = ['Valid', 'Ready'].map((type) => {
      const reason = type === 'Ready' ? 'Exported' : 'Valid';
      return { type, status: 'True', reason, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' };
    });
    const patch = { ...exportType, metadata: { name, namespace: 'shop' }, status: { conditions } };
    await home.order({ patch, subresource: 'status' } as never);
  };
  const putSlices = (name: string, pod: number, ports: readonly number[]) =>
    Promise.all(
      ([4, 6] as const).map((family) =>
        put({
          apiVersion: 'discovery.k8s.io/v1',
          kind: 'EndpointSlice',
          metadata: { name: `${name}-${family}`, namespace: 'shop', labels: { 'kubernetes.io/service-name': name } },
          addressType: `IPv${family}`,
          ports: ports.flatMap((port) =>
            ['TCP', 'UDP'].map((protocol) => ({ name: `${protocol.toLowerCase()}-${port}`, protocol, port })),
          ),
          endpoints: [{ addresses: [addressOf(pod, family)], conditions: { ready: pod !== 2 } }],
        }),
      ),
    );
  const addressOf = (pod: number, family: 4 | 6) => (family === 4 ? `10.91.${pod}.2` : `fd91:${pod}::2`);
  const attempt = (from: string, list: readonly Attempt[]): boolean[] =>
    attemptAt(
      from,
      list.map(({ pod, family, ...rest }) => ({ ...rest, host: addressOf(pod, family) })),
    );
  const attemptAt = (from: string, list: readonly object[]): boolean[] => {
    const input = JSON.stringify(list);
    const [first, ...rest] = [...net.within(places.get(from)!), process.execPath, attemptsOf];
    return JSON.parse(execFileSync(first!, rest, { input, encoding: 'utf8', timeout: 300_000, maxBuffer: 1 << 26 }));
  };
  const isReached = (from: string, pod: number, port: number, family: 4 | 6 = 4) =>
    attempt(from, [{ from: 'west', pod, port, kind: 'tcp', family }])[0]!;
  const report = async (): Promise<AccessReport | undefined> => {
    const status = JSON.parse((await proxy.get('/status')).text) as { access?: AccessReport };
    return status.access;
  };
  const startProxy = async () => {
    const flags = ['--kubeconfig', home.proxyKubeconfig, '--node', 'node-1', '--cluster-id', 'near'];
    const started = await startProxyProcess(net, node, flags);
    await started.whenReady();
    return started;
  };

  beforeAll(async () => {
    net = new Namespaces('ac');
    node = net.addMachine('node', 11);
    for (const [index, id] of callers.entries()) places.set(id, net.addMachine(id, 21 + index));
    net.run(node, 'sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1');
    for (const number of pods) {
      const pod = net.addPod(node, `pod${number}`, `10.91.${number}`);
      net.ip(node, `-6 addr add fd91:${number}::1/64 dev pod${number} nodad`);
      net.ip(pod, `-6 addr add fd91:${number}::2/64 dev eth0 nodad`);
      net.ip(pod, `-6 route add default via fd91:${number}::1`);
      for (const place of places.values()) {
        net.ip(place, `route add 10.91.${number}.0/24 via ${node.address}`);
        net.ip(place, `-6 route add fd91:${number}::/64 via ${node.address6}`);
      }
      const addresses = [addressOf(number, 4), addressOf(number, 6)];
      servers.push(
        await startServers(
          net,
          pod,
          addresses.flatMap((address) =>
            targets.flatMap((port) => [
              { kind: 'tcp' as const, port, address, says: `${number}` },
              { kind: 'udp' as const, port, address, says: `${number}` },
            ]),
          ),
        ),
      );
    }
    home = await startNodeHome(net, node, { directory });
    await put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    for (const [name, { pod, ports, to }] of Object.entries(services)) {
      await putSlices(name, pod, ports);
      if (to !== undefined) await putExport(name, to === 'all' ? undefined : to.join(','));
    }
    proxy = await startProxy();
  });

  afterAll(async () => {
    for (const child of children) child.kill('SIGKILL');
    await proxy?.stop('SIGKILL');
    for (const server of servers) await server.stop();
    await home?.stop();
    net?.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  test('access: Open -> everything passes and there is no table', () => {
    expect([isReached('west', 3, 8080), isReached('south', 2, 8081)]).toEqual([true, true]);
    expect(net.run(node, 'nft list tables')).not.toContain('portolan-access');
  });

  test('access: Audit -> everything passes, and what would be refused is counted and named', async () => {
    await access('Audit');
    await until('enforced', async () => (await report())?.isEnforced === true);
    expect([isReached('west', 3, 8080), isReached('west', 3, 8080, 6)]).toEqual([true, true]);
    await until('counted', async () => {
      const found = (await report())?.refused.find(({ service }) => service === 'shop/db');
      return found?.from === 'west' && found.port === '8080/tcp' && found.packets >= 2;
    });
  });

  test('access: Exported, random attempts from all clusters -> exactly the exported tuples pass; strangers are untouched', async () => {
    await access('Exported');
    await until('enforced', async () => (await report())?.mode === 'Exported' && (await report())?.isEnforced === true);
    const pick = <T>(list: readonly T[]) => list[Math.floor(Math.random() * list.length)]!;
    const made = Array.from(
      { length: attemptCount },
      (): Attempt => ({
        from: pick(callers),
        pod: pick(pods),
        port: pick(targets),
        kind: pick(['tcp', 'udp'] as const),
        family: pick([4, 6] as const),
      }),
    );
    const wrong: string[] = [];
    const passed = { allowed: 0, refused: 0 };
    for (const from of callers) {
      const list = made.filter((one) => one.from === from);
      for (const [index, reached] of attempt(from, list).entries()) {
        const one = list[index]!;
        passed[reached ? 'allowed' : 'refused'] += 1;
        if (reached !== isAllowed(one)) wrong.push(`${JSON.stringify(one)} ${reached ? 'passed' : 'was refused'}`);
      }
    }
    expect(wrong).toEqual([]);
    expect(passed.allowed).toBeGreaterThan(0);
    expect(passed.refused).toBeGreaterThan(0);
  });

  test('access: an export is withdrawn -> its open connection ends; one to another service goes on', async () => {
    const hold = (pod: number) => {
      const script = `const s=require('net').connect(8080,'${addressOf(pod, 4)}',()=>console.log('open'));s.on('close',()=>process.exit(0));s.on('error',()=>{});setInterval(()=>s.write('x\\n'),100);`;
      const child = net.start(places.get('west')!, process.execPath, ['-e', script]);
      children.push(child);
      const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
      return { opened: new Promise((resolve) => child.stdout?.once('data', resolve)), ended, child };
    };
    const [gone, kept] = [hold(2), hold(1)];
    await Promise.all([gone.opened, kept.opened]);
    await home.order({ remove: { ...exportType, metadata: { namespace: 'shop', name: 'api' } } } as never);
    await gone.ended;
    expect(kept.child.exitCode).toBeNull();
    kept.child.kill('SIGKILL');
    expect(isReached('west', 2, 8080)).toBe(false);
    await putExport('api', 'west');
    await until('exported again', async () => isReached('west', 2, 8080));
  });

  const isBoundary = () => [isReached('west', 1, 8080), isReached('west', 3, 8080), isReached('west', 3, 8080, 6)];

  test('access: the proxy is frozen, killed, stopped -> its rules stay; started again -> enforced again', async () => {
    proxy.child.kill('SIGSTOP');
    expect(isBoundary()).toEqual([true, false, false]);
    proxy.child.kill('SIGCONT');
    for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
      await proxy.stop(signal);
      expect(isBoundary(), signal).toEqual([true, false, false]);
      proxy = await startProxy();
      expect(isBoundary(), `after ${signal}`).toEqual([true, false, false]);
    }
    await until('enforced', async () => (await report())?.isEnforced === true);
  });

  test('access: a Pod with the address of its node -> exported ports are limited, others stay open and are counted', async () => {
    const address = node.address;
    servers.push(
      await startServers(
        net,
        node,
        [8080, 9999].map((port) => ({ kind: 'tcp' as const, port, address, says: 'node' })),
      ),
    );
    const slice = (name: string, port: number) =>
      put({
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name, namespace: 'shop', labels: { 'kubernetes.io/service-name': name } },
        addressType: 'IPv4',
        ports: [{ name: 'tcp', protocol: 'TCP', port }],
        endpoints: [{ addresses: [address], conditions: { ready: true } }],
      });
    const calls = (from: string) =>
      attemptAt(
        from,
        [8080, 9999].map((port) => ({ from, kind: 'tcp', port, host: address })),
      );
    expect(calls('west')).toEqual([true, true]);
    await slice('host', 8080);
    await slice('agent', 9999);
    await putExport('host', 'south');
    await until('limited', async () => !calls('west')[0]);
    expect([calls('west'), calls('south')]).toEqual([
      [false, true],
      [true, true],
    ]);
    await until('counted', async () => ((await report())?.uncovered ?? 0) >= 1);
  });

  test('access: closed ranges -> packets of nobody from there are refused too, those of members are not', async () => {
    expect(isReached('stranger', 3, 8080)).toBe(true);
    await access('Exported', { closedRanges: ['10.88.0.0/24', 'fd88::/64'] });
    await until('closed', async () => !isReached('stranger', 3, 8080));
    expect([isReached('stranger', 1, 8080), isReached('stranger', 3, 8080, 6)]).toEqual([false, false]);
    expect(isBoundary()).toEqual([true, false, false]);
    await access('Exported');
    await until('open again', async () => isReached('stranger', 3, 8080));
  });

  test('access: two members claim one address -> only what is exported to all is reached from there, and it is reported', async () => {
    expect(isReached('west', 2, 8080)).toBe(true);
    await access('Exported', { sources: { ...known, south: [...known.south, '10.88.0.21/32'] } });
    await until('told', async () => (await report())?.reason === 'OverlappingRanges');
    expect([isReached('west', 1, 8080), isReached('west', 2, 8080), isReached('west', 1, 9090)]).toEqual([
      true,
      false,
      false,
    ]);
    await access('Exported', { sources: { ...known, south: [] } });
    await until('told', async () => (await report())?.reason === 'NoSourceRanges');
    await access('Exported');
    await until('enforced', async () => (await report())?.isEnforced === true);
    expect(isReached('west', 2, 8080)).toBe(true);
  });
});

// Which calls of other clusters reach the Pods of a node, with the real proxy and real packets: network namespaces stand for
// clusters and for Pods in two namespaces of each. Needs root. `npm run check:access` makes 10,000 random attempts.

import { type ChildProcess, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AccessReport } from '../src/kube/objects/reports/access-report.ts';
import { Capture, openingsIn } from './gateways/capture.ts';
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
/** Of services whose exports change while attempts are made: to west, and to nobody. */
const changing = [7001, 7002];
const clusters = ['west', 'south', 'stranger'] as const;
/** Machines, and Pods of two namespaces behind those of members. */
const callers = ['west', 'west-a', 'west-b', 'south', 'south-a', 'south-b', 'stranger'] as const;
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

/** What callers have as their addresses. */
function callerAt(address: string): (typeof callers)[number] | undefined {
  const machine = /^(?:10\.88\.0\.|fd88::)(2[12])$/.exec(address)?.[1];
  if (machine !== undefined) return machine === '21' ? 'west' : 'south';
  const pod = /^(?:10\.|fd)(92|93)[.:]([12])(?:\.2|::2)$/.exec(address);
  if (pod === null) return undefined;
  return `${pod[1] === '92' ? 'west' : 'south'}-${pod[2] === '1' ? 'a' : 'b'}`;
}

const clusterOf = (caller: string) => caller.replace(/-.*/, '');

/** The rule once more, by hand; undefined for what changes. */
function isAllowed({ from: caller, pod, port }: Pick<Attempt, 'from' | 'pod' | 'port'>): boolean | undefined {
  const from = clusterOf(caller);
  if (from === 'stranger') return true;
  if (changing.includes(port)) return from === 'west' ? undefined : false;
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
  const podPlaces = new Map<number, Place>();
  const servers: LineProcess[] = [];
  const children: ChildProcess[] = [];

  const put = (object: object) => home.order({ put: object as never });
  const known = {
    west: ['10.88.0.21/32', 'fd88::21/128', '10.92.1.0/24', '10.92.2.0/24', 'fd92:1::/64', 'fd92:2::/64'],
    south: ['10.88.0.22/32', 'fd88::22/128', '10.93.0.0/16', 'fd93::/16'],
  };
  const access = (mode: string, { sources = known, closedRanges = [] as string[], callers = '' } = {}) => {
    return put({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'portolan-clusterset-dns', namespace: 'portolan-system' },
      data: {
        access: JSON.stringify({ mode, sources, podRanges: ['10.91.0.0/16', 'fd91::/16'], closedRanges }),
        ...(callers && { callers }),
      },
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
  /** While other things go on in this process. */
  const attemptBeside = async (from: string, list: readonly Attempt[]): Promise<boolean[]> => {
    const input = JSON.stringify(list.map(({ pod, family, ...rest }) => ({ ...rest, host: addressOf(pod, family) })));
    const child = net.start(places.get(from)!, process.execPath, [attemptsOf]);
    let out = '';
    child.stdout!.setEncoding('utf8').on('data', (chunk: string) => (out += chunk));
    const ended = new Promise((resolve) => child.stdout!.once('close', resolve));
    child.stdin!.end(input);
    await ended;
    return JSON.parse(out) as boolean[];
  };
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

  /** A Pod behind the machine of a cluster, which forwards for it. */
  function addCaller(id: string, name: string, high: string, subnet: number): void {
    const machine = places.get(id)!;
    net.run(machine, 'sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1');
    const pod = net.addPod(machine, `${id}-${name}`, `10.${high}.${subnet}`);
    net.ip(machine, `-6 addr add fd${high}:${subnet}::1/64 dev ${id}-${name} nodad`);
    net.ip(pod, `-6 addr add fd${high}:${subnet}::2/64 dev eth0 nodad`);
    net.ip(pod, `-6 route add default via fd${high}:${subnet}::1`);
    net.ip(node, `route add 10.${high}.${subnet}.0/24 via ${machine.address}`);
    net.ip(node, `-6 route add fd${high}:${subnet}::/64 via ${machine.address6}`);
    places.set(`${id}-${name}`, pod);
  }

  beforeAll(async () => {
    net = new Namespaces('ac');
    node = net.addMachine('node', 11);
    for (const [index, id] of clusters.entries()) places.set(id, net.addMachine(id, 21 + index));
    net.run(node, 'sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1');
    for (const number of pods) {
      const pod = net.addPod(node, `pod${number}`, `10.91.${number}`);
      net.ip(node, `-6 addr add fd91:${number}::1/64 dev pod${number} nodad`);
      net.ip(pod, `-6 addr add fd91:${number}::2/64 dev eth0 nodad`);
      net.ip(pod, `-6 route add default via fd91:${number}::1`);
      podPlaces.set(number, pod);
      for (const id of clusters) {
        const place = places.get(id)!;
        net.ip(place, `route add 10.91.${number}.0/24 via ${node.address}`);
        net.ip(place, `-6 route add fd91:${number}::/64 via ${node.address6}`);
      }
      const addresses = [addressOf(number, 4), addressOf(number, 6)];
      servers.push(
        await startServers(
          net,
          pod,
          addresses.flatMap((address) =>
            [...targets, ...changing].flatMap((port) => [
              { kind: 'tcp' as const, port, address, says: `${number}` },
              { kind: 'udp' as const, port, address, says: `${number}` },
            ]),
          ),
        ),
      );
    }
    for (const [index, id] of ['west', 'south'].entries())
      for (const [at, name] of ['a', 'b'].entries()) addCaller(id, name, `${92 + index}`, at + 1);
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
    const made = randomAttempts(targets);
    const { wrong, passed } = await tryAll(made);
    expect(wrong).toEqual([]);
    expect(passed.allowed).toBeGreaterThan(0);
    expect(passed.refused).toBeGreaterThan(0);
  });

  const randomAttempts = (ports: readonly number[]) => {
    const pick = <T>(list: readonly T[]) => list[Math.floor(Math.random() * list.length)]!;
    return Array.from(
      { length: attemptCount },
      (): Attempt => ({
        from: pick(callers),
        pod: pick(pods),
        port: pick(ports),
        kind: pick(['tcp', 'udp'] as const),
        family: pick([4, 6] as const),
      }),
    );
  };

  /** From all callers at once, and what was not as the rule has it. */
  const tryAll = async (made: readonly Attempt[]) => {
    const wrong: string[] = [];
    const passed = { allowed: 0, refused: 0 };
    const tryFrom = async (from: string) => {
      const list = made.filter((one) => one.from === from);
      for (const [index, reached] of (await attemptBeside(from, list)).entries()) {
        const one = list[index]!;
        const wanted = isAllowed(one);
        passed[reached ? 'allowed' : 'refused'] += 1;
        if (wanted !== undefined && reached !== wanted)
          wrong.push(`${JSON.stringify(one)} ${reached ? 'passed' : 'was refused'}`);
      }
    };
    for (let index = 0; index < callers.length; index += 2)
      await Promise.all(callers.slice(index, index + 2).map(tryFrom));
    return { wrong, passed };
  };

  test('access: random attempts while exports change 100 times a second -> what is exported passes, nothing else, also on the wire', async () => {
    for (const port of changing) await putSlices(`changing-${port}`, 1, [port]);
    for (const port of changing) await putExport(`changing-${port}`, 'nobody');
    const captures = await Promise.all(
      pods.map(
        async (pod) => [pod, await Capture.start(net, podPlaces.get(pod)!, join(directory, `pod${pod}`))] as const,
      ),
    );
    let changes = 0;
    let isOver = false;
    const startMs = performance.now();
    const change = async () => {
      while (!isOver) {
        const dueMs = startMs + changes * 10 - performance.now();
        if (dueMs > 0) await new Promise((resolve) => setTimeout(resolve, dueMs));
        const name = `changing-${changing[changes % changing.length]}`;
        const to = changes % 4 < 2 ? 'west' : 'nobody';
        const metadata = { name, namespace: 'shop', annotations: { 'portolan.dev/export-to': to } };
        await home.order({ patch: { ...exportType, metadata, ...{ spec: {} } } as never });
        changes += 1;
      }
    };
    const changed = change();
    const { wrong, passed } = await tryAll(randomAttempts([...targets, ...changing]));
    isOver = true;
    await changed;
    const perSecond = changes / ((performance.now() - startMs) / 1000);
    const arrived = new Map<string, number>();
    for (const [pod, capture] of captures) {
      const { frames, dropped } = await capture.end();
      expect(dropped).toBe(0);
      for (const { from, port } of openingsIn(frames)) {
        const caller = callerAt(from);
        if (caller === undefined) continue;
        const isFine = isAllowed({ from: caller, pod, port });
        const what = isFine === false ? `${from} to pod ${pod} port ${port}` : 'as exported';
        arrived.set(what, (arrived.get(what) ?? 0) + 1);
      }
    }
    console.log(`${JSON.stringify(passed)}, ${perSecond.toFixed(0)} changes per second`, [...arrived]);
    expect(wrong).toEqual([]);
    expect([...arrived.keys()]).toEqual(['as exported']);
    expect(changes).toBeGreaterThan(10);
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

  test('access: a policy names callers -> it narrows the export, open connections of others end; nonsense admits nobody; gone -> as before', async () => {
    const rule = (services: string[], from: object) => ({ namespace: 'shop', services, from });
    const calls = () => [isReached('west', 1, 8080), isReached('south', 1, 8080), isReached('west', 2, 8080)];
    expect(calls()).toEqual([true, true, true]);
    const script = `const s=require('net').connect(8080,'${addressOf(1, 4)}',()=>console.log('open'));s.on('close',()=>process.exit(0));s.on('error',()=>{});setInterval(()=>s.write('x\\n'),100);`;
    const child = net.start(places.get('west')!, process.execPath, ['-e', script]);
    children.push(child);
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    await new Promise((resolve) => child.stdout?.once('data', resolve));
    await access('Exported', { callers: JSON.stringify([rule(['web'], { south: 'all' })]) });
    await until('narrowed', async () => !isReached('west', 1, 8080));
    await ended;
    expect(calls()).toEqual([false, true, true]);
    // Packets show no namespace, and no policy widens an export.
    await access('Exported', {
      callers: JSON.stringify([rule(['web'], { west: ['billing'] }), rule(['api'], { south: 'all' })]),
    });
    await until('narrowed again', async () => !isReached('south', 1, 8080));
    expect([...calls(), isReached('south', 2, 8080)]).toEqual([false, false, false, false]);
    await access('Exported');
    await until('as before', async () => calls().every(Boolean));
    await access('Exported', { callers: '{' });
    await until('closed', async () => !calls().some(Boolean));
    await access('Exported');
    await until('as before', async () => calls().every(Boolean));
  });

  // The kernel here has no SCTP sockets, so packets are made by hand: ports, a tag and a checksum that are nothing, and a chunk INIT.
  test('access: SCTP -> packets to an exported port arrive at the Pod, others are refused and named', async () => {
    const send = (from: string, pod: number, port: number, times = 1) => {
      const program = `use Socket; socket(my $s, AF_INET, SOCK_RAW, 132) or die $!; my $packet = pack('nnNNCCnNNnnN', 40000, ${port}, 0, 0, 1, 0, 20, 1, 65535, 1, 1, 1); for (1..${times}) { send($s, $packet, 0, sockaddr_in(0, inet_aton('${addressOf(pod, 4)}'))) or die $!; }`;
      execFileSync('ip', ['netns', 'exec', places.get(from)!.name, 'perl', '-e', program]);
    };
    const slice = (name: string, pod: number) =>
      put({
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: `${name}-sctp`, namespace: 'shop', labels: { 'kubernetes.io/service-name': name } },
        addressType: 'IPv4',
        ports: [{ name: 'sctp', protocol: 'SCTP', port: 5000 }],
        endpoints: [{ addresses: [addressOf(pod, 4)], conditions: { ready: true } }],
      });
    await slice('api', 2);
    await slice('db', 3);
    const elements = () => net.run(node, 'nft list set inet portolan-access to-west-v4');
    await until('the tuple is in the kernel', async () => /10\.91\.2\.2 \. (132|sctp) \. 5000/.test(elements()));
    const captures = await Promise.all(
      pods.map((pod) => Capture.start(net, podPlaces.get(pod)!, join(directory, `sctp${pod}`))),
    );
    for (const from of ['west', 'south'])
      for (const pod of [2, 3]) for (const port of [5000, 5001]) send(from, pod, port);
    // The report names what is refused most, and earlier tests refused much.
    await until('refused and named', async () => {
      send('west', 3, 5000, 100);
      return ((await report())?.refused ?? []).some(
        ({ from, service, port }) => `${from} ${service} ${port}` === 'west shop/db 5000/sctp',
      );
    });
    const arrived: string[] = [];
    for (const [index, capture] of captures.entries())
      for (const { from, port } of openingsIn((await capture.end()).frames))
        if (callerAt(from) !== undefined && port >= 5000 && port <= 5001) arrived.push(`${from} ${index + 1} ${port}`);
    expect(arrived).toEqual([`${places.get('west')!.address} 2 5000`]);
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

// Two clusters with the same Pod range in networks of their own, joined as people do it: by the commands, with the agents,
// resolvers, discovery servers, proxies and Envoys as processes that have the rights of an installation. Needs root.

import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRealWorld } from '../src/base/real/world.ts';
import type { Cluster } from '../src/clusterset/kinds/cluster.ts';
import { exportToAnnotation } from '../src/clusterset/kinds/service-export.ts';
import { gatewayArgs } from '../src/install/envoy-containers.ts';
import { pairIn } from '../src/kube/client/kept-authority.ts';
import { gatewayAuthoritySecret, xdsNamespace } from '../src/kube/objects/ours.ts';
import type { Secret } from '../src/kube/objects/secret.ts';
import { gatewayPort } from '../src/xds/gateways/names.ts';
import { MeshCertificates } from '../src/xds/sources/mesh-certificates.ts';
import { describeWith, pathOf } from './support/counterparts.ts';
import { until } from './support/dns-process.ts';
import { Namespaces, type Place } from './support/namespaces.ts';
import { portolan } from './support/portolan.ts';
import { ask, LineProcess, type NodeHome, startNodeHome, startServers } from './support/proxy-processes.ts';
import type { Order } from './support/xds-inside.ts';

const set = 'prod';
const ids = ['east', 'west'] as const;
type Id = (typeof ids)[number];
const podRange = '10.70.0.0/16';
/** In both clusters. */
const pod = '10.70.2.1';
/** In east alone. */
const eastPod = '10.70.2.9';
const targets = { web: 8080, inner: 8081, page: 8082 } as const;
type Name = keyof typeof targets;
const streamsEndMs = 10_000;

const object = (apiVersion: string, kind: string, name: string, rest: object = {}) => ({
  ...{ apiVersion, kind, metadata: { name, namespace: 'shop' } },
  ...rest,
});
const exportOf = (name: Name, to?: string) => ({
  ...object('multicluster.x-k8s.io/v1beta1', 'ServiceExport', name),
  metadata: { name, namespace: 'shop', ...(to === undefined ? {} : { annotations: { [exportToAnnotation]: to } }) },
});

describeWith(['envoy', 'ip', 'nft', 'conntrack'], 'gateways: two clusters that joined', () => {
  const directory = mkdtempSync(join(tmpdir(), 'portolan-joined-'));
  const places = {} as Record<Id, Place>;
  const homes = {} as Record<Id, NodeHome>;
  const children: ChildProcess[] = [];
  const lines: LineProcess[] = [];
  let net: Namespaces;
  let broker: NodeHome;
  let inside: LineProcess;

  /** A command as a person types it. */
  const type = (place: Place, home: NodeHome, words: readonly string[]) =>
    net.output(place, portolan, [...words, '--kubeconfig', home.kubeconfig]);

  /** A role or an Envoy, until the test is over; resolves when it has printed this. */
  async function start(place: Place, program: string, args: readonly string[], ready?: RegExp): Promise<void> {
    const child = net.start(place, program, args);
    children.push(child);
    let out = '';
    for (const stream of [child.stdout!, child.stderr!])
      stream.setEncoding('utf8').on('data', (chunk: string) => (out = (out + chunk).slice(-20_000)));
    if (ready === undefined) return;
    await until(`${program} ${args[0]} says ${ready}`, () => {
      if (child.exitCode !== null) throw new Error(`${program} ${args.join(' ')} ended: ${out}`);
      return ready.test(out);
    });
  }
  const role = (id: Id, name: string, args: readonly string[], ready: RegExp) =>
    start(places[id], portolan, [name, '--kubeconfig', homes[id].accounts[`portolan-${name}`]!, ...args], ready);

  const clusterAtBroker = (id: Id) =>
    broker.order<Cluster>({
      get: { apiVersion: 'portolan.dev/v1alpha1', kind: 'Cluster', metadata: { name: id, namespace: set } },
    });

  /** Joins, reports, and is accepted by the admin of the set. */
  async function joinSet(id: Id, more: readonly string[]): Promise<void> {
    const network = ['--network', `${id}-net`, '--pod-cidr', podRange];
    await type(places[id], homes[id], ['join', broker.tokens[id]!, ...network, ...more]);
    await role(id, 'agent', [], /^admin /m);
    if (more.length > 0)
      await until(`${id} reports its gateway`, async () => (await clusterAtBroker(id)).status?.gateways?.length === 1);
    await type(net.hub, broker, ['broker', 'accept', id, '--clusterset', set]);
  }

  async function startEnvoy(id: Id, role: 'gateway' | 'sidecar', args: readonly string[]): Promise<void> {
    const folder = join(directory, `${id}-${role}`);
    const made = ['xds', 'bootstrap', '--role', role, '--name', `${id}-1`, '--namespace', xdsNamespace];
    await type(places[id], homes[id], [...made, '--directory', folder]);
    const flags = ['-c', join(folder, 'envoy.json'), '--concurrency', '1', '-l', 'warning', '--use-dynamic-base-id'];
    await start(places[id], pathOf('envoy')!, [...flags, ...args]);
  }

  async function serve(name: Name, exportTo?: string): Promise<void> {
    const port = targets[name];
    const { order } = homes.east;
    await order({
      put: object('v1', 'Service', name, { spec: { ports: [{ name: 'tcp', port: 80, targetPort: port }] } }),
    });
    const slice = object('discovery.k8s.io/v1', 'EndpointSlice', `${name}-1`, {
      ...{ addressType: 'IPv4', ports: [{ name: 'tcp', port }], endpoints: [{ addresses: [pod] }] },
    });
    const labels = { 'kubernetes.io/service-name': name };
    await order({ put: { ...slice, metadata: { ...slice.metadata, labels } } });
    await order({ put: exportOf(name, exportTo) });
  }

  const hostOf = (name: Name) => `${name}.shop.svc.clusterset.local`;
  const client = (name: Name, count = 1) =>
    ask(net, places.west, { kind: 'tcp', host: hostOf(name), port: 80, count, lanes: 2, timeoutMs: 2000 });
  const answered = (name: Name) =>
    until(`west is answered by ${name}`, async () => (await client(name)).answers[`${name} of east`] === 1);
  const addressIn = (id: Id, name: Name) =>
    homes[id]
      .order<{ spec?: { ips?: string[] } } | null>({
        get: object('multicluster.x-k8s.io/v1beta1', 'ServiceImport', name),
      })
      .then((found) => found?.spec?.ips?.[0]);

  const tell = async (order: Order) => (await inside.ask<{ answer: unknown }>({ id: 1, order })).answer;
  const isClosed = async (name: string) => ((await tell({ do: 'held', name })) as { isClosed: boolean }).isClosed;
  const closedWithinMs = async (name: string) => {
    const startMs = performance.now();
    await until(`${name} is closed`, () => isClosed(name));
    return performance.now() - startMs;
  };

  /** Asks the gateway of east for a service as a node of west does: its status. */
  async function asWest(name: Name): Promise<unknown> {
    const secret = { name: gatewayAuthoritySecret, namespace: xdsNamespace };
    const root = await homes.west.order<Secret>({ get: { apiVersion: 'v1', kind: 'Secret', metadata: secret } });
    const options = { only: 'client', commonName: 'test', lifetimeMs: 3_600_000, keptMax: 1 } as const;
    const pair = new MeshCertificates(createRealWorld(), options).of(`spiffe://west.${set}/node/test`, pairIn(root)!);
    const to = { address: places.east.address, port: gatewayPort, sni: `west.${set}` };
    const authority = `${await addressIn('east', name)}:80`;
    return tell({ do: 'connect', ...to, authority, certificate: pair.certificate, key: pair.key });
  }

  /** Packets of new connections from west that are not for the port of the gateway. */
  const refusedByGuard = () =>
    Number(/counter packets (\d+)/.exec(net.run(places.east, 'nft list chain inet guard in'))![1]);

  beforeAll(async () => {
    net = new Namespaces('gj');
    for (const [index, id] of ids.entries()) {
      places[id] = net.addMachine(id, 11 + index);
      net.ip(places[id], `addr add ${pod}/32 dev lo`);
      net.setResolver(places[id], places[id].address);
    }
    net.ip(places.east, `addr add ${eastPod}/32 dev lo`);
    // The way to the Pods of east is known; its firewall lets through the port of the gateway and nothing else.
    net.ip(places.west, `route add ${eastPod}/32 via ${places.east.address}`);
    const from = `ip saddr ${places.west.address} ct state new`;
    const rules = `add rule inet guard in ${from} tcp dport ${gatewayPort} accept; add rule inet guard in ${from} counter drop`;
    const chain = 'add chain inet guard in { type filter hook input priority 0; }';
    net.run(places.east, `nft '${['add table inet guard', chain, rules].join('; ')}'`);
    const members = ids.map((id) => ({ id, region: 'here', zone: `${id}-a` }));
    const accounts = ['portolan-agent', 'portolan-xds', 'portolan-dns'];
    broker = await startNodeHome(net, net.hub, { directory: join(directory, 'broker'), members, leaseSeconds: 4 });
    await Promise.all(
      ids.map(async (id) => {
        homes[id] = await startNodeHome(net, places[id], { directory: join(directory, id), accounts });
        await homes[id].order({ put: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } } });
        const addresses = id === 'east' ? [pod, eastPod] : [pod];
        const listening = addresses.flatMap((address) =>
          Object.entries(targets).map(([name, port]) => ({ kind: 'tcp', address, port, says: `${name} of ${id}` })),
        );
        lines.push(await startServers(net, places[id], listening));
      }),
    );
    inside = new LineProcess(
      net.start(places.west, process.execPath, [fileURLToPath(new URL('./support/xds-inside.ts', import.meta.url))]),
    );
    lines.push(inside);
    // The second one has the same Pods: it joins when the first is in its own network.
    await joinSet('east', ['--gateway', `${places.east.address}:${gatewayPort}`]);
    await joinSet('west', []);
    const xds = ['--secrets-namespace', xdsNamespace, '--peering-namespace', 'portolan-peering'];
    await Promise.all([
      ...ids.map((id) => role(id, 'xds', xds, /^ready /m)),
      role('west', 'dns', ['--listen', `${places.west.address}:53`], /^ready$/m),
      start(
        places.west,
        portolan,
        ['proxy', '--kubeconfig', homes.west.proxyKubeconfig, '--node', 'west-1'],
        /^ready /m,
      ),
      serve('web')
        .then(() => serve('inner', 'north'))
        .then(() => serve('page')),
    ]);
    await Promise.all([startEnvoy('east', 'gateway', gatewayArgs), startEnvoy('west', 'sidecar', [])]);
    await answered('web');
    await answered('page');
  });

  afterAll(async () => {
    for (const child of children) child.kill('SIGKILL');
    for (const each of lines) await each.stop();
    for (const home of [...Object.values(homes), broker]) await home?.stop();
    net?.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  test('a client of one by name -> answered by the other, through its gateway alone; a direct connection is impossible', async () => {
    expect(await client('web', 40)).toMatchObject({ answers: { 'web of east': 40 }, failures: {} });
    expect(await addressIn('west', 'web')).toBe(await addressIn('east', 'web'));
    expect(refusedByGuard()).toBe(0);
    const direct = (address: string) =>
      ask(net, places.west, { kind: 'tcp', host: address, port: targets.web, count: 1, timeoutMs: 1000 });
    expect((await direct(eastPod)).answers).toEqual({});
    expect(refusedByGuard()).toBeGreaterThan(0);
    // The address of the endpoint is another Pod here.
    expect((await direct(pod)).answers).toEqual({ 'web of west': 1 });
  });

  test('explain connection -> the hops of this connection, by a command at the home', async () => {
    const address = (await addressIn('west', 'web'))!;
    const explain = (port: number) =>
      type(places.west, homes.west, ['explain', 'connection', '--to', `${address}:${port}`]);
    // What the node last heard of the gateway may be a check old.
    await expect
      .poll(() => explain(80), { timeout: 60_000, interval: 500 })
      .toMatch(/^east +100 % +1 +Envoy of the client's node, port 15\d\d\d$/m);
    const text = await explain(80);
    expect(text).toMatch(/^service +shop\/web, port 80\/TCP$/m);
    expect(text).toContain(`-> gateway ${places.east.address}:${gatewayPort} of network east-net`);
    const wrong = await explain(81);
    expect(wrong).toMatch(/nowhere: it is refused\nnote: the service has no port 81; it has 80\/TCP/);
  });

  test('a service exported to another member alone -> unknown here, and refused by the gateway', async () => {
    expect((await client('inner')).failures).toEqual({ ENOTFOUND: 1 });
    expect(await addressIn('east', 'inner')).toBeDefined();
    expect(await asWest('inner')).toBe('403');
    expect(await asWest('web')).toBe('200');
  });

  test('the export is taken back -> open connections end within 10 s, new ones reach nobody; others go on', async () => {
    const address = (await addressIn('west', 'web'))!;
    expect(await tell({ do: 'holdPlain', name: 'web', address, port: 80 })).toBe('open');
    await homes.east.order({ remove: exportOf('web') });
    expect(await closedWithinMs('web')).toBeLessThan(streamsEndMs);
    expect((await client('web')).answers).toEqual({});
    expect((await client('page')).answers).toEqual({ 'page of east': 1 });
  });

  test('the member is removed from the set -> its connections end within 10 s, and the gateway knows it no longer', async () => {
    const address = (await addressIn('west', 'page'))!;
    expect(await tell({ do: 'holdPlain', name: 'page', address, port: 80 })).toBe('open');
    expect(await asWest('page')).toBe('200');
    await type(net.hub, broker, ['broker', 'remove', 'west', '--clusterset', set, '--force']);
    expect(await closedWithinMs('page')).toBeLessThan(streamsEndMs);
    expect((await client('page')).answers).toEqual({});
    expect(await asWest('page')).toMatch(/^refused/);
  });
});

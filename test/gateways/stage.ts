// Three clusters in network namespaces, each in a network of its own, two of them with the same Pods: joined by the commands, with
// agents, discovery servers, resolvers, proxies and Envoys as processes that have the rights of an installation. Clients and servers
// are Pods behind their node; gateways run on machines of their own. Needs root.

import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Cluster } from '../../src/clusterset/kinds/cluster.ts';
import { exportToAnnotation } from '../../src/clusterset/kinds/service-export.ts';
import type { ServiceImport } from '../../src/clusterset/kinds/service-import.ts';
import { clusterSetDnsName } from '../../src/clusterset/rules/clusterset-dns.ts';
import { readNetworks } from '../../src/clusterset/rules/networks/networks.ts';
import { gatewayArgs } from '../../src/install/envoy-containers.ts';
import type { ConfigMap } from '../../src/kube/objects/config-map.ts';
import type { AnyObject } from '../../src/kube/objects/object.ts';
import { systemNamespace, xdsNamespace } from '../../src/kube/objects/ours.ts';
import { gatewayPort } from '../../src/xds/gateways/names.ts';
import { pathOf } from '../support/counterparts.ts';
import { until } from '../support/dns-process.ts';
import { Namespaces, type Place } from '../support/namespaces.ts';
import { portolan } from '../support/portolan.ts';
import {
  ask,
  type ClientReport,
  LineProcess,
  type NodeHome,
  startNodeHome,
  startServers,
} from '../support/proxy-processes.ts';
import type { Loaded, Order } from '../support/xds-inside.ts';
import { Capture, type Judgement, judge, macOf } from './capture.ts';

const clusterSet = 'prod';
export const ids = ['east', 'west', 'south'] as const;
export type Id = (typeof ids)[number];
/** East and west have the same Pods. */
const shapes: Readonly<
  Record<Id, { readonly host: number; readonly pods: string; readonly gateways: readonly number[] }>
> = {
  east: { host: 11, pods: '10.70', gateways: [21, 22] },
  west: { host: 12, pods: '10.70', gateways: [23] },
  south: { host: 13, pods: '10.71', gateways: [24] },
};
const xdsPort = 15_010;
const adminPort = 15_000;
const targetPort = 8080;
/** Here a Pod says which one it is. */
export const podPort = 8082;
const udpTargetPort = 8083;

/** A process that can be ended, frozen and started again. */
export class Running {
  readonly #start: () => ChildProcess;
  readonly #ready: RegExp | undefined;
  #child: ChildProcess;
  #out = '';

  private constructor(start: () => ChildProcess, ready: RegExp | undefined) {
    this.#start = start;
    this.#ready = ready;
    this.#child = start();
  }

  static async start(start: () => ChildProcess, ready?: RegExp): Promise<Running> {
    const running = new Running(start, ready);
    await running.#listen();
    return running;
  }

  async #listen(): Promise<void> {
    const child = this.#child;
    this.#out = '';
    for (const stream of [child.stdout!, child.stderr!])
      stream.setEncoding('utf8').on('data', (chunk: string) => (this.#out = (this.#out + chunk).slice(-20_000)));
    const ready = this.#ready;
    if (ready === undefined) return;
    await until(`a process says ${ready}`, () => {
      if (child.exitCode !== null) throw new Error(`${child.spawnargs.join(' ')} ended: ${this.#out}`);
      return ready.test(this.#out);
    });
  }

  get out(): string {
    return this.#out;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async end(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#child;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.kill(signal);
    if (signal !== 'SIGKILL') child.kill('SIGCONT');
    await ended;
  }

  async again(): Promise<void> {
    await this.end();
    this.#child = this.#start();
    await this.#listen();
  }
}

export interface Gateway {
  readonly place: Place;
  readonly envoy: Running;
}

export interface Member {
  readonly id: Id;
  readonly node: Place;
  readonly app: Place;
  readonly client: Place;
  readonly home: NodeHome;
  readonly gateways: Gateway[];
  readonly roles: Record<'agent' | 'xds' | 'dns' | 'proxy' | 'envoy', Running>;
  /** Makes requests in the Pod of clients; one order after the other. */
  readonly inside: LineProcess;
}

export interface Exported {
  readonly name: string;
  readonly in: Id;
  /** How many of its Pods; one unless told. */
  readonly endpoints?: number;
  readonly exportTo?: readonly Id[];
  /** UDP at 53, too. */
  readonly hasUdp?: boolean;
}

/** A headless service: its endpoints are `NAME-0` and so on. */
interface ExportedHeadless {
  readonly name: string;
  readonly in: Id;
  /** Which of the cluster's Pods stand behind each name, from 0. */
  readonly pods: readonly number[];
}

export class Stage {
  readonly net: Namespaces = new Namespaces('gs');
  readonly members: Record<Id, Member> = {} as Record<Id, Member>;
  readonly #directory = mkdtempSync(join(tmpdir(), 'portolan-gateways-'));
  readonly #running: Running[] = [];
  readonly #lines: LineProcess[] = [];
  #broker!: NodeHome;
  #capture: Capture | undefined;

  static async open(): Promise<Stage> {
    const stage = new Stage();
    await stage.#open().catch(async (error: unknown) => {
      await stage.close();
      throw error;
    });
    return stage;
  }

  async #open(): Promise<void> {
    const { net } = this;
    const members = ids.map((id) => ({ id, region: 'here', zone: `${id}-a` }));
    for (const id of ids) this.#addPlaces(id);
    this.#capture = await Capture.start(net, net.hub, join(this.#directory, 'frames'), 'br0');
    this.#broker = await startNodeHome(net, net.hub, {
      ...{ directory: join(this.#directory, 'broker'), members, leaseSeconds: 10 },
    });
    await Promise.all(ids.map((id) => this.#openHome(id)));
    // The second one with the same Pods joins when the first is in its own network.
    for (const id of ids) await this.#join(id);
    await Promise.all(ids.map((id) => this.#openRoles(id)));
  }

  #addPlaces(id: Id): void {
    const { net } = this;
    const { host, pods, gateways } = shapes[id];
    const node = net.addMachine(id, host);
    net.run(node, 'sysctl -qw net.ipv4.ip_forward=1');
    const app = net.addPod(node, `${id}-app`, `${pods}.2`);
    const client = net.addPod(node, `${id}-cli`, `${pods}.3`);
    for (const more of [3, 4]) net.ip(app, `addr add ${pods}.2.${more}/24 dev eth0`);
    for (const place of [node, app, client]) net.setResolver(place, node.address);
    const places = gateways.map((at, index) => {
      const place = net.addMachine(`${id}-g${index}`, at);
      net.ip(place, `route add ${pods}.0.0/16 via ${node.address}`);
      return place;
    });
    this.members[id] = {
      ...{ id, node, app, client, home: undefined as never, inside: undefined as never, roles: {} as never },
      gateways: places.map((place) => ({ place, envoy: undefined as never })),
    };
  }

  async #openHome(id: Id): Promise<void> {
    const member = this.members[id];
    const accounts = ['portolan-agent', 'portolan-xds', 'portolan-dns'];
    const home = await startNodeHome(this.net, member.node, { directory: join(this.#directory, id), accounts });
    await home.order({ put: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } } });
    const script = fileURLToPath(new URL('../support/xds-inside.ts', import.meta.url));
    const inside = new LineProcess(this.net.start(member.client, process.execPath, [script]));
    this.#lines.push(inside);
    this.members[id] = { ...member, home, inside };
    const { pods } = shapes[id];
    const listening = [2, 3, 4].flatMap((host) => [
      { kind: 'http', address: `${pods}.2.${host}`, port: targetPort, says: id },
      { kind: 'tcp', address: `${pods}.2.${host}`, port: targetPort + 1, says: id },
      { kind: 'tcp', address: `${pods}.2.${host}`, port: podPort, says: `${id}-${host - 2}` },
      { kind: 'udp', address: `${pods}.2.${host}`, port: udpTargetPort, says: id },
    ]);
    this.#lines.push(await startServers(this.net, member.app, listening));
  }

  /** A command as a person types it. */
  type(at: Id | 'broker', words: readonly string[]): Promise<string> {
    const [place, home] =
      at === 'broker' ? [this.net.hub, this.#broker] : [this.members[at].node, this.members[at].home];
    return this.net.output(place, portolan, [...words, '--kubeconfig', home.kubeconfig]);
  }

  /** Joins, reports, and is accepted by the admin of the set. */
  async #join(id: Id): Promise<void> {
    const { gateways } = this.members[id];
    const network = ['--network', `${id}-net`, '--pod-cidr', `${shapes[id].pods}.0.0/16`];
    const flags = gateways.flatMap(({ place }) => ['--gateway', `${place.address}:${gatewayPort}`]);
    await this.type(id, ['join', this.#broker.tokens[id]!, ...network, ...flags]);
    const agent = await this.#role(id, 'agent', [], /^admin /m);
    Object.assign(this.members[id].roles, { agent });
    await until(`${id} reports its gateways`, async () => {
      const { status } = await this.clusterAtBroker(id);
      return status?.gateways?.length === gateways.length;
    });
    await this.type('broker', ['broker', 'accept', id, '--clusterset', clusterSet]);
  }

  async #openRoles(id: Id): Promise<void> {
    const member = this.members[id];
    const { node, home, roles } = member;
    const keys = ['--secrets-namespace', xdsNamespace, '--peering-namespace', 'portolan-peering'];
    const listen = ['--listen', `${node.address}:${xdsPort}`, '--host', node.address];
    const proxy = () =>
      this.net.start(node, portolan, ['proxy', '--kubeconfig', home.proxyKubeconfig, '--node', `${id}-1`]);
    const [xds, dns, running] = await Promise.all([
      this.#role(id, 'xds', [...listen, ...keys], /^ready /m),
      this.#role(id, 'dns', ['--listen', `${node.address}:53`], /^ready$/m),
      this.#run(proxy, /^ready /m),
    ]);
    Object.assign(roles, { xds, dns, proxy: running, envoy: await this.#envoy(member, node, 'sidecar', []) });
    for (const [index, { place }] of member.gateways.entries())
      member.gateways[index] = { place, envoy: await this.#envoy(member, place, 'gateway', gatewayArgs) };
  }

  async #envoy({ id }: Member, place: Place, role: 'gateway' | 'sidecar', args: readonly string[]): Promise<Running> {
    const folder = join(this.#directory, place.name);
    const server = `${this.members[id].node.address}:${xdsPort}`;
    const made = ['xds', 'bootstrap', '--role', role, '--name', place.name, '--namespace', xdsNamespace];
    await this.type(id, [...made, '--server', server, '--directory', folder]);
    const flags = ['-c', join(folder, 'envoy.json'), '--concurrency', '1', '-l', 'warning', '--use-dynamic-base-id'];
    return this.#run(() => this.net.start(place, pathOf('envoy')!, [...flags, ...args]));
  }

  #role(id: Id, name: string, args: readonly string[], ready: RegExp): Promise<Running> {
    const { node, home } = this.members[id];
    const kubeconfig = home.accounts[`portolan-${name}`]!;
    return this.#run(() => this.net.start(node, portolan, [name, '--kubeconfig', kubeconfig, ...args]), ready);
  }

  async #run(start: () => ChildProcess, ready?: RegExp): Promise<Running> {
    const running = await Running.start(start, ready);
    this.#running.push(running);
    return running;
  }

  clusterAtBroker(id: Id): Promise<Cluster> {
    const metadata = { name: id, namespace: clusterSet };
    return this.#broker.order<Cluster>({ get: { apiVersion: 'portolan.dev/v1alpha1', kind: 'Cluster', metadata } });
  }

  /** A Service with so many Pods of the cluster, and its export: HTTP at 80, and at 81 a server that speaks first. */
  async serve({ name, in: id, endpoints = 1, exportTo, hasUdp = false }: Exported): Promise<void> {
    const { order } = this.members[id].home;
    const ports = [
      { name: 'http', port: 80, targetPort, protocol: 'TCP' },
      { name: 'tcp', port: 81, targetPort: targetPort + 1, protocol: 'TCP' },
      ...(hasUdp ? [{ name: 'udp', port: 53, targetPort: udpTargetPort, protocol: 'UDP' }] : []),
    ];
    await order({ put: object('v1', 'Service', name, { spec: { ports } }) });
    const slice = object('discovery.k8s.io/v1', 'EndpointSlice', `${name}-1`, {
      addressType: 'IPv4',
      ports: ports.map((port) => ({ name: port.name, port: port.targetPort, protocol: port.protocol })),
      endpoints: Array.from({ length: endpoints }, (_, index) => ({
        addresses: [`${shapes[id].pods}.2.${index + 2}`],
      })),
    });
    const labels = { 'kubernetes.io/service-name': name };
    await order({ put: { ...slice, metadata: { ...slice.metadata, labels } } });
    const limited = exportOf(name);
    const annotations = exportTo && { [exportToAnnotation]: exportTo.join(',') };
    await order({ put: { ...limited, metadata: { ...limited.metadata, ...(annotations && { annotations }) } } });
  }

  async serveHeadless({ name, in: id, pods }: ExportedHeadless): Promise<void> {
    const { order } = this.members[id].home;
    const ports = [{ name: 'tcp', port: podPort }];
    await order({ put: object('v1', 'Service', name, { spec: { clusterIP: 'None', ports } }) });
    const slice = object('discovery.k8s.io/v1', 'EndpointSlice', `${name}-1`, {
      ...{ addressType: 'IPv4', ports },
      endpoints: pods.map((pod, index) => ({
        ...{ addresses: [`${shapes[id].pods}.2.${pod + 2}`], hostname: `${name}-${index}` },
      })),
    });
    const labels = { 'kubernetes.io/service-name': name };
    await order({ put: { ...slice, metadata: { ...slice.metadata, labels } } });
    await order({ put: exportOf(name) });
  }

  async withdraw(name: string, id: Id): Promise<void> {
    await this.members[id].home.order({ remove: exportOf(name) });
  }

  async addressIn(id: Id, name: string): Promise<string | undefined> {
    return (await this.importIn(id, name))?.spec.ips?.[0];
  }

  importIn(id: Id, name: string): Promise<ServiceImport | null> {
    const get = object('multicluster.x-k8s.io/v1beta1', 'ServiceImport', name);
    return this.members[id].home.order<ServiceImport | null>({ get });
  }

  /** New connections by name: who answered. A name with dots is that of an endpoint, with its cluster and service. */
  connect(from: Id, name: string, count: number, { lanes = 8, port = 81, kind = 'tcp' } = {}): Promise<ClientReport> {
    const task = { kind, host: hostOf(name), port, count, lanes, timeoutMs: kind === 'udp' ? 1000 : 8000 };
    return ask(this.net, this.members[from].client, task);
  }

  /** The addresses of a name, as a program in a Pod gets them. */
  async resolved(from: Id, name: string): Promise<string[]> {
    // Ends with 2 for a name that does not exist.
    const text = await this.net.output(this.members[from].client, 'getent', ['ahostsv4', hostOf(name)]).catch(() => '');
    return [...new Set(text.split('\n').flatMap((line) => line.split(/\s+/)[0] || []))].sort();
  }

  answered(from: Id, name: string, by: readonly Id[]): Promise<void> {
    return until(`${from} is answered by ${name} of ${by.join(', ')}`, async () => {
      const { answers, failures } = await this.connect(from, name, 24);
      return Object.keys(failures).length === 0 && Object.keys(answers).sort().join() === [...by].sort().join();
    });
  }

  async tell<T = unknown>(from: Id, order: Order): Promise<T> {
    return (await this.members[from].inside.ask<{ answer: T }>({ id: 1, order })).answer;
  }

  /** Fresh connections by name, and kept ones, until told to end. */
  async load(from: Id, name: string): Promise<() => Promise<{ readonly fresh: Loaded; readonly kept: Loaded }>> {
    const to = `http://${hostOf(name)}/`;
    await this.tell(from, { do: 'load', name: 'fresh', to, lanes: 3 });
    await this.tell(from, { do: 'load', name: 'kept', to, lanes: 4, keptMs: 1500 });
    return async () => ({
      fresh: await this.tell<Loaded>(from, { do: 'loaded', name: 'fresh' }),
      kept: await this.tell<Loaded>(from, { do: 'loaded', name: 'kept' }),
    });
  }

  /** Whether the kernel of a node gives new connections to another cluster. */
  async isInKernel(at: Id, cluster: Id): Promise<boolean> {
    const port = await this.listenerPort(at, cluster);
    const maps = await this.net.output(this.members[at].node, pathOf('nft')!, ['list', 'table', 'inet', 'portolan']);
    return maps.includes(` . ${port}`);
  }

  async listenerPort(at: Id, cluster: Id): Promise<number> {
    const metadata = { namespace: systemNamespace, name: clusterSetDnsName };
    const found = await this.members[at].home.order<ConfigMap>({
      get: { apiVersion: 'v1', kind: 'ConfigMap', metadata },
    });
    return readNetworks(found).clusters.get(cluster)!.listenerPort!;
  }

  /** At the admin endpoint of a gateway's Envoy. */
  admin({ place }: Gateway, path: string): Promise<string> {
    const method = path.startsWith('/stats') ? 'GET' : 'POST';
    return this.net.output(place, 'curl', ['-sf', '-X', method, `http://127.0.0.1:${adminPort}${path}`]);
  }

  /** All that passed between the clusters since they were opened. */
  async judged(): Promise<Judgement & { readonly dropped: number }> {
    const { frames, dropped } = await this.#capture!.end();
    this.#capture = undefined;
    const clusterOf = new Map<string, string>();
    const gateways = new Set<string>();
    for (const { id, node, gateways: places } of Object.values(this.members)) {
      clusterOf.set(macOf(this.net, node), id);
      for (const { place } of places) {
        const mac = macOf(this.net, place);
        clusterOf.set(mac, id);
        gateways.add(mac);
      }
    }
    return { ...judge(frames, { clusterOf, gateways, port: gatewayPort }), dropped };
  }

  async close(): Promise<void> {
    await this.#capture?.stop();
    for (const running of this.#running) await running.end();
    for (const lines of this.#lines) await lines.stop();
    for (const home of [...Object.values(this.members).map((member) => member.home), this.#broker]) await home?.stop();
    this.net.remove();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

function hostOf(name: string): string {
  return `${name}.shop.svc.clusterset.local`;
}

function object(apiVersion: string, kind: string, name: string, rest: object = {}): AnyObject {
  return { apiVersion, kind, metadata: { name, namespace: 'shop' }, ...rest };
}

function exportOf(name: string): AnyObject {
  return object('multicluster.x-k8s.io/v1beta1', 'ServiceExport', name);
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

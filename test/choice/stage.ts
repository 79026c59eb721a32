// One node with `portolan proxy`, a resolver, a discovery server and gRPC clients; a Pod behind it; an Envoy with its own clients; and one
// machine with every endpoint. All cases of the table are services of the node's home at the same time. Needs root.

import type { ChildProcess } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { caseSelf } from '../../src/clusterset/rules/choice/testing/choice-case.ts';
import { grpcBootstrap } from '../../src/xds/identity/bootstrap.ts';
import { pathOf } from '../support/counterparts.ts';
import { until } from '../support/dns-process.ts';
import { type ClientLanguage, startWithBootstrap } from '../support/grpc-clients/grpc-clients.ts';
import { Namespaces, type Place } from '../support/namespaces.ts';
import { LineProcess, type ProxyProcess, startProxyProcess } from '../support/proxy-processes.ts';
import type { NodeReady, NodeTask } from './node.ts';
import { firstDead, objectsOf, type PlacedCase, tcpPorts } from './objects.ts';

const script = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const virtualPort = 15_003;
const envoyUid = 1337;
/** Connections that are reset are forgotten soon: at thousands a second their table would be full. */
const settings = [
  'net.ipv4.ip_local_port_range="10000 65000"',
  'net.ipv4.tcp_tw_reuse=1',
  'net.netfilter.nf_conntrack_tcp_timeout_close=2',
];
const endpointRange = '10.64.0.0/10';

/** For asking.py. */
type AskOrder =
  | { readonly do: 'connect'; readonly host: string; readonly port: number; readonly count: number }
  | { readonly do: 'look up'; readonly server: string; readonly name: string; readonly count: number };

interface Asked {
  /** By address of an endpoint; errors by their code. */
  readonly first: Record<string, number>;
  /** All addresses that were in any answer. */
  readonly any: string[];
}

export class Stage {
  readonly #directory = mkdtempSync(join(tmpdir(), 'portolan-choice-'));
  readonly #net = new Namespaces('ch');
  readonly #node: Place;
  readonly #pod: Place;
  readonly #envoy: Place;
  readonly #far: Place;
  readonly #ending: (() => unknown)[] = [];
  #ready!: NodeReady;
  #proxy!: ProxyProcess;

  constructor() {
    const net = this.#net;
    [this.#node, this.#envoy, this.#far] = ['node', 'envoy', 'far'].map((id, at) => net.addMachine(id, 11 + at)) as [
      Place,
      Place,
      Place,
    ];
    this.#pod = net.addPod(this.#node, 'pod', '10.32.0');
    net.run(this.#node, 'sysctl -qw net.ipv4.ip_forward=1');
    for (const place of [this.#node, this.#pod, this.#envoy]) net.run(place, `sysctl -qw ${settings.join(' ')}`);
    net.ip(this.#far, `route add local ${endpointRange} dev lo`);
    net.ip(this.#far, `route add 10.32.0.0/24 via ${this.#node.address}`);
    for (const place of [this.#node, this.#envoy]) net.ip(place, `route add ${endpointRange} via ${this.#far.address}`);
    this.#refuseForTheDead();
    this.#redirectToEnvoy();
  }

  #refuseForTheDead(): void {
    const net = this.#net;
    net.run(this.#far, 'nft add table ip dead');
    net.run(this.#far, "nft add chain ip dead in '{ type filter hook input priority 0; }'");
    const last = `ip daddr \\& 0.0.0.255 \\>= ${firstDead}`.replace(/(\d+)$/, '0.0.0.$1');
    net.run(
      this.#far,
      `nft add rule ip dead in ip daddr ${endpointRange} ${last} meta l4proto tcp reject with tcp reset`,
    );
  }

  #redirectToEnvoy(): void {
    const net = this.#net;
    net.ip(this.#envoy, 'route add local 243.0.0.0/8 dev lo');
    net.run(this.#envoy, 'nft add table ip to-envoy');
    net.run(this.#envoy, "nft add chain ip to-envoy out '{ type nat hook output priority -100; }'");
    const rule = `meta skuid != ${envoyUid} ip daddr 243.0.0.0/8 tcp dport 80 redirect to :${virtualPort}`;
    net.run(this.#envoy, `nft add rule ip to-envoy out ${rule}`);
  }

  async start(cases: readonly PlacedCase[]): Promise<void> {
    const net = this.#net;
    for (const serving of [this.#line('serving.ts', this.#far), this.#python('serving.py', this.#far, tcpPorts)])
      await serving.next();
    const node = this.#line('node.ts', this.#node);
    const task: NodeTask = {
      ...{ directory: join(this.#directory, 'home'), address: this.#node.address, virtualPort },
      objects: [namespaceShop, ...cases.flatMap((each) => objectsOf(each))],
    };
    node.child.stdin!.end(JSON.stringify(task));
    this.#ready = JSON.parse(await node.next()) as NodeReady;
    const flags = ['--kubeconfig', this.#ready.kubeconfig, '--node', 'node-1', '--cluster-id', caseSelf];
    this.#proxy = await startProxyProcess(net, this.#node, [...flags, '--range', '243.0.0.0/8', '--no-flows']);
    this.#ending.push(() => this.#proxy.stop('SIGKILL'));
    await this.#proxy.whenReady();
    await this.#startEnvoy(cases);
  }

  async #startEnvoy(cases: readonly PlacedCase[]): Promise<void> {
    chmodSync(this.#directory, 0o755);
    const file = join(this.#directory, 'envoy.json');
    writeFileSync(file, JSON.stringify(this.#ready.envoyBootstrap));
    const as = ['--reuid', String(envoyUid), '--clear-groups', '--', pathOf('envoy')!];
    const args = ['-c', file, '--concurrency', '1', '-l', 'warning', '--use-dynamic-base-id'];
    const envoy = this.#net.start(this.#envoy, 'setpriv', [...as, ...args]);
    envoy.stderr!.resume();
    envoy.stdout!.resume();
    this.#ending.push(() => envoy.kill('SIGKILL'));
    const asking = this.asking('envoy');
    // The last service that is there.
    const { address: host } = cases.at(-1)!;
    await until('Envoy has its configuration', async () => {
      const { first } = await asking({ do: 'connect', host, port: 80, count: 1 });
      return Object.keys(first).some((each) => each.startsWith('10.'));
    });
  }

  get resolver(): string {
    return this.#node.address;
  }

  /** A process of clients, in the Pod, beside Envoy or on the node. */
  asking(where: 'pod' | 'envoy' | 'node'): (order: AskOrder) => Promise<Asked> {
    const place = { pod: this.#pod, envoy: this.#envoy, node: this.#node }[where];
    const lines = this.#python('asking.py', place);
    return (order) => lines.ask<Asked>(order);
  }

  grpc(language: ClientLanguage) {
    const file = join(this.#directory, `grpc-${language}.json`);
    const bootstrap = grpcBootstrap({
      identity: { role: 'grpc', cluster: caseSelf, name: language },
      server: { kind: 'socket', path: this.#ready.xdsSocket },
      ...{ zone: '', region: '', variant: 'sotw', admin: { host: '', port: 0 }, isClustersetProxied: false },
    });
    writeFileSync(file, JSON.stringify(bootstrap));
    const client = startWithBootstrap(language, file, '', this.#net.within(this.#node));
    this.#ending.push(() => client.stop());
    return client;
  }

  async stop(): Promise<void> {
    for (const end of this.#ending.splice(0).reverse()) await end();
    this.#net.remove();
    for (const folder of [this.#directory, this.#ready?.xdsFolder ?? this.#directory])
      rmSync(folder, { recursive: true, force: true });
  }

  #line(name: string, place: Place): LineProcess {
    return this.#ended(this.#net.start(place, process.execPath, [script(name)]));
  }

  #python(name: string, place: Place, args: readonly unknown[] = []): LineProcess {
    return this.#ended(this.#net.start(place, 'python3', [script(name), ...args.map(String)]));
  }

  #ended(child: ChildProcess): LineProcess {
    const lines = new LineProcess(child);
    this.#ending.push(() => lines.stop());
    return lines;
  }
}

const namespaceShop = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } };

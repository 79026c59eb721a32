// The demo with every part in a process of its own: a broker, three clusters, an authority, a second company and a dashboard. Makes
// faults and mends them.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parse, stringify } from 'yaml';
import { createRealHost } from '../../src/base/real/host.ts';
import { addClusterSetCommands } from '../../src/cli/clusterset/index.ts';
import { addFederationCommand } from '../../src/cli/federation.ts';
import { addPeerCommands } from '../../src/cli/peer/index.ts';
import { addRegisterCommands } from '../../src/cli/register/register.ts';
import { addDashboardCommand } from '../../src/cli/roles/dashboard.ts';
import { type Client, createClient } from '../../src/kube/client/client.ts';
import { findHome } from '../../src/kube/client/kubeconfig.ts';
import { issueTokens } from '../../src/main/dashboard/process.ts';
import { takeRange } from '../../src/main/demo/range.ts';
import { peerExportType } from '../../src/peering/kinds/peer-export.ts';
import { type ApiProcess, connect, startApi } from '../support/api-process.ts';
import { makeNamespace } from '../support/clusterset.ts';
import { freePort } from '../support/free-port.ts';
import { type RoleProcess, startRole } from '../support/roles.ts';
import { hasMovableClocks, MovableClock } from './clock.ts';
import { allFaults, type ClusterId, clockParts, clusters, diskParts, type Fault, type Part, roleOf } from './faults.ts';
import { Relay } from './relay.ts';
import { hasSmallDisks, SmallDisk } from './small-disk.ts';
import { type AddCommands, typed, world } from './typed.ts';

export const set = 'prod';
const quiet = ['--log-level', 'error'];
const admin = ['--admin-listen', '127.0.0.1:0', ...quiet];
const jumpSecondsMin = 30;
const jumpSecondsMax = 180;
const firstRanges = [80, 90];

/** A process that can be ended, and how it is started, the first time and again. */
interface Running {
  start(): Promise<RoleProcess | ApiProcess>;
  process: RoleProcess | ApiProcess | undefined;
}

export interface StageOptions {
  /** A second company, which shares a service with west. */
  readonly hasPeers: boolean;
}

export class Stage {
  readonly folder = mkdtempSync(join(tmpdir(), 'portolan-truth-'));
  readonly #parts = new Map<Part | 'home acme', Running>();
  readonly #relays = new Map<string, Relay>();
  readonly #clocks = new Map<Part, MovableClock>();
  readonly #disks = new Map<Part, SmallDisk>();
  readonly #backends = new Map<string, { server: Server; readonly address: string; readonly port: number }>();
  readonly #fillers = new Map<Part, NodeJS.Timeout>();
  readonly #stops: (() => unknown)[] = [];
  readonly #dnsPorts = new Map<ClusterId, number>();
  /** Clusters have ranges of loopback addresses after this one, beside the range of virtual addresses. */
  #firstRange = 0;
  dashboardUrl = '';
  dashboardToken = '';

  /** Faults that can be made here, and why others cannot. */
  static possible(): { readonly faults: readonly Fault[]; readonly leftOut: readonly string[] } {
    const can = ({ kind }: Fault) =>
      (kind !== 'disk full' || hasSmallDisks) && (kind !== 'clock jumped' || hasMovableClocks);
    return {
      faults: allFaults.filter(can),
      leftOut: [
        ...(hasSmallDisks ? [] : ['disk full: a small disk can only be mounted by root']),
        ...(hasMovableClocks ? [] : ['clock jumped: libfaketime is not installed']),
      ],
    };
  }

  static async open(options: StageOptions): Promise<Stage> {
    const stage = new Stage();
    try {
      await stage.#startAll(options);
    } catch (error) {
      await stage.close();
      throw error;
    }
    return stage;
  }

  kubeconfigOf(place: ClusterId | 'broker'): string {
    return join(this.#dataOf(place === 'broker' ? 'broker' : `home ${place}`), 'admin.kubeconfig');
  }

  dnsPortOf(cluster: ClusterId): number {
    return this.#dnsPorts.get(cluster)!;
  }

  /** Texts with the addresses of this stage and the names that they stand for. */
  get names(): ReadonlyMap<string, string> {
    const entries: [string, string][] = [];
    for (const [part, { process }] of this.#parts)
      if (process !== undefined && 'port' in process) entries.push([`https://127.0.0.1:${process.port}`, part]);
    for (const [name, relay] of this.#relays)
      if (name.startsWith('link ')) entries.push([`https://127.0.0.1:${relay.port}`, 'broker']);
    return new Map(entries);
  }

  async clientOf(kubeconfig: string): Promise<Client> {
    const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig });
    const client = createClient(world.network.http(access), { world, userAgent: 'check-truth' });
    this.#stops.push(() => client.close());
    return client;
  }

  async make({ part, kind }: Fault, size: number): Promise<void> {
    if (roleOf(part) === 'backend') return void this.#backends.get(part)!.server.close();
    if (kind === 'cut off') return this.#relays.get(part)!.cut();
    if (kind === 'clock jumped') {
      const seconds = jumpSecondsMin + Math.abs(size) * (jumpSecondsMax - jumpSecondsMin);
      return this.#clocks.get(part)!.move(Math.round(Math.sign(size) * seconds));
    }
    if (kind === 'disk full') return this.#fill(part);
    const { process } = this.#parts.get(part)!;
    if (kind === 'frozen') return void process!.child.kill('SIGSTOP');
    await process!.stop('SIGKILL');
  }

  async mend({ part, kind }: Fault): Promise<void> {
    if (roleOf(part) === 'backend') return this.#startBackend(part);
    if (kind === 'cut off') return this.#relays.get(part)!.heal();
    if (kind === 'clock jumped') return this.#clocks.get(part)!.move(0);
    if (kind === 'disk full') return this.#empty(part);
    const running = this.#parts.get(part)!;
    if (kind === 'frozen') return void running.process!.child.kill('SIGCONT');
    running.process = await running.start();
  }

  async close(): Promise<void> {
    for (const { process } of [...this.#parts.values()].reverse()) {
      process?.child.kill('SIGCONT');
      await process?.stop('SIGKILL');
    }
    for (const stop of this.#stops.splice(0).reverse()) await stop();
    for (const relay of this.#relays.values()) relay.close();
    for (const { server } of this.#backends.values()) server.close();
    for (const filler of this.#fillers.values()) clearInterval(filler);
    for (const disk of this.#disks.values()) disk.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #startAll({ hasPeers }: StageOptions): Promise<void> {
    const { clusterSet, peers, external, release } = await takeRange(world);
    this.#stops.push(release);
    this.#firstRange = firstRanges.find((first) => {
      const taken = Number(clusterSet.split('.')[1]);
      return taken < first || taken > first + clusters.length;
    })!;
    await Promise.all(
      ['broker' as const, ...clusters.map((id): Part => `home ${id}`), ...(hasPeers ? ['home acme' as const] : [])].map(
        (part) => this.#addHome(part),
      ),
    );
    const setFile = join(this.folder, 'set.yaml');
    // Holding clusters down for minutes would hide what comes next.
    const lease = { holdDownSeconds: 2, holdDownMaxSeconds: 10 };
    const addressRanges = { clusterSet: [clusterSet], peers: [peers], external: [external] };
    const apiVersion = 'portolan.dev/v1alpha1';
    writeFileSync(
      setFile,
      stringify({ apiVersion, kind: 'ClusterSet', metadata: { name: set }, spec: { lease, addressRanges } }),
    );
    await this.#type('broker', 'broker init --clusterset prod --file', setFile);
    for (const id of clusters) await this.#relay(`link ${id}`, () => this.#portOf('broker'));
    const authorityPort = await freePort();
    await this.#type('broker', `federation create world --clusterset prod --nameserver 127.0.0.1:${authorityPort}`);
    await this.#addPart('authority', 'broker', (kubeconfig) => [
      ...['authority', '--federation', 'world', '--clusterset', set, '--broker-kubeconfig', kubeconfig],
      ...['--listen', `127.0.0.1:${authorityPort}`, '--trusted-range', '127.0.0.1/32', ...admin],
    ]);
    await Promise.all(clusters.map((id) => this.#startCluster(id)));
    await this.#addPart('proxy west', 'home west', (kubeconfig) => [
      ...['proxy', '--mode', 'userspace', '--range', clusterSet, '--cluster-id', 'west', '--kubeconfig', kubeconfig],
      ...admin,
    ]);
    if (hasPeers) await this.#startPeers(peers);
    await this.#startDashboard();
  }

  async #startCluster(id: ClusterId): Promise<void> {
    const index = clusters.indexOf(id) + 1;
    const server = `https://127.0.0.1:${this.#relays.get(`link ${id}`)!.port}`;
    const ranges = [`127.${this.#firstRange + index}.0.0/16`, `10.9${index}.0.0/16`];
    const place = ['--region', `r${index}`, '--server', server, '--allowed-range', ...ranges];
    const token = await this.#type('broker', `broker token ${id} --clusterset prod`, ...place);
    await this.#type(`home ${id}`, 'join', token.split('\n').at(-1)!);
    await this.#addPart(`agent ${id}`, `home ${id}`, (kubeconfig) => ['agent', '--kubeconfig', kubeconfig, ...admin]);
    const [dnsPort, stubPort] = [await freePort(), await freePort()];
    this.#dnsPorts.set(id, dnsPort);
    await this.#addPart(`dns ${id}`, `home ${id}`, (kubeconfig) => [
      ...['dns', '--cluster-id', id, '--kubeconfig', kubeconfig, '--listen', `127.0.0.1:${dnsPort}`],
      ...[
        '--stub-listen',
        `127.${this.#firstRange + index}.0.1:${stubPort}`,
        '--stub-file',
        join(this.folder, `${id}-stubs.json`),
      ],
      ...['--state', join(this.folder, `${id}-names`), ...admin],
    ]);
    const client = await this.clientOf(this.kubeconfigOf(id));
    await makeNamespace(client, 'shop');
    const address = `127.${this.#firstRange + index}.0.1`;
    const register = async (backend: string, service: string, ...more: readonly string[]) => {
      const port = await freePort();
      this.#backends.set(backend, { server: createServer(), address, port });
      await this.#startBackend(backend);
      const checks = ['--check', 'tcp', '--interval', '1s', '--check-timeout', '1s', '--fall', '3', '--export'];
      const words = [`shop/${service}`, '--address', address, ...checks];
      const text = more.map((word) => word.replace('PORT', String(port)));
      await this.#type(`home ${id}`, 'register', ...words, ...text);
    };
    await register(`backend ${id}`, `pay-${id}`, '--headless', '--port', 'PORT');
    await register(`checkout of ${id}`, 'checkout', '--port', 'http=8080:PORT', '--load-balancer', `10.9${index}.0.1`);
    // Two of them disagree, which has to be told all the time.
    if (id !== 'south') await register(`cart of ${id}`, 'cart', '--port', `http=${8080 + index}:PORT`);
  }

  async #startPeers(range: string): Promise<void> {
    const listen = await freePort();
    const way = await this.#relay('peering acme', () => listen);
    const common = (kubeconfig: string) => [
      'peering',
      '--kubeconfig',
      kubeconfig,
      '--ingress',
      '192.0.2.1:15443',
      ...admin,
    ];
    await this.#addPart(
      'peering acme',
      'home acme',
      (kubeconfig) => [
        ...common(kubeconfig),
        ...[
          '--trust-domain',
          'acme.example',
          '--listen',
          `127.0.0.1:${listen}`,
          '--advertise',
          `127.0.0.1:${way.port}`,
        ],
      ],
      { isDirect: true },
    );
    const port = await freePort();
    await this.#addPart('peering west', 'home west', (kubeconfig) => [
      ...common(kubeconfig),
      ...['--trust-domain', 'west.example', '--listen', `127.0.0.1:${port}`, '--address-range', range],
    ]);
    const client = await this.clientOf(join(this.#dataOf('home acme'), 'admin.kubeconfig'));
    await makeNamespace(client, 'billing');
    await this.#type('home acme', 'register billing/invoices --address 127.84.0.1 --port http=8080');
    const token = await this.#type('home acme', 'peer token west --allow west.example');
    await this.#type('home west', 'peer add acme --allow acme.example --token', token.split('\n').at(-1)!);
    await client.create(peerExportType, {
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'PeerExport',
      metadata: { name: 'invoices', namespace: 'billing' },
      spec: { services: ['invoices'], peers: ['west'], protocols: ['http'] },
    });
  }

  async #startDashboard(): Promise<void> {
    const places = ['broker', ...clusters] as const;
    const files = ['--kubeconfig', ...places.map((place) => this.kubeconfigOf(place))];
    const add: AddCommands = (program, deps) =>
      addDashboardCommand(program, deps.print, { run: async () => {}, token: (flags) => issueTokens(flags, deps) });
    this.dashboardToken = (await typed(add, ['dashboard', 'token', ...files])).trim();
    const port = await freePort();
    this.dashboardUrl = `http://127.0.0.1:${port}`;
    const args = ['dashboard', '--listen', `127.0.0.1:${port}`, ...files, ...quiet];
    await this.#add('dashboard', () => startRole(args, /^ready \S+$/m));
  }

  async #addHome(part: Part | 'home acme'): Promise<void> {
    const port = await freePort();
    const folder = join(this.folder, part.replace(' ', '-'));
    if (hasSmallDisks && (diskParts as readonly string[]).includes(part))
      this.#disks.set(part as Part, new SmallDisk(folder));
    else mkdirSync(folder);
    const environment = this.#environmentOf(part);
    const under = environment === undefined ? {} : { under: ['env', ...environment.map(([k, v]) => `${k}=${v}`)] };
    await this.#add(part, () => startApi({ data: this.#dataOf(part), port, args: quiet, ...under }));
  }

  /** Its name is that of its folder, which is what the dashboard calls the home. */
  #dataOf(part: Part | 'home acme'): string {
    return join(this.folder, part.replace(' ', '-'), part.split(' ').at(-1)!);
  }

  /** With a relay between it and its home, unless it is to be reached directly. */
  async #addPart(
    part: Part,
    home: Part | 'home acme',
    args: (kubeconfig: string) => readonly string[],
    { isDirect = false } = {},
  ): Promise<void> {
    const own = join(this.#dataOf(home), 'admin.kubeconfig');
    const kubeconfig = isDirect ? own : join(this.folder, `${part.replace(' ', '-')}.kubeconfig`);
    if (!isDirect) {
      const relay = await this.#relay(part, () => this.#portOf(home));
      const config = parse(readFileSync(own, 'utf8'));
      config.clusters[0].cluster.server = `https://127.0.0.1:${relay.port}`;
      writeFileSync(kubeconfig, stringify(config), { mode: 0o600 });
    }
    const environment = this.#environmentOf(part);
    const env = environment === undefined ? process.env : { ...process.env, ...Object.fromEntries(environment) };
    await this.#add(part, () => startRole(args(kubeconfig), undefined, env));
  }

  async #add(part: Part | 'home acme', start: Running['start']): Promise<void> {
    const running: Running = { start, process: undefined };
    this.#parts.set(part, running);
    running.process = await start();
  }

  #environmentOf(part: string): [string, string][] | undefined {
    if (!hasMovableClocks || !(clockParts as readonly string[]).includes(part)) return undefined;
    const clock = new MovableClock(join(this.folder, `${part.replace(' ', '-')}.clock`));
    this.#clocks.set(part as Part, clock);
    return Object.entries(clock.environment);
  }

  #portOf(home: Part | 'home acme'): number {
    return (this.#parts.get(home)!.process as ApiProcess).port;
  }

  async #relay(name: string, target: () => number): Promise<Relay> {
    const relay = await Relay.open(target);
    this.#relays.set(name, relay);
    return relay;
  }

  /** A command at a home, which throws if it fails; the first text may hold several words. */
  async #type(home: Part | 'home acme', line: string, ...words: string[]): Promise<string> {
    const args = [...line.split(' '), ...words, '--kubeconfig', join(this.#dataOf(home), 'admin.kubeconfig')];
    return (await typed(commands[args[0]!] ?? addClusterSetCommands, args)).trim();
  }

  async #startBackend(name: string): Promise<void> {
    const backend = this.#backends.get(name)!;
    backend.server = createServer((socket) => socket.on('error', () => {}).end());
    await new Promise<void>((resolve, reject) => {
      backend.server.once('error', reject).listen(backend.port, backend.address, resolve);
    });
  }

  /**
   * Until it refuses small writes too: space that it has taken already lets it go on for a while, and all is well until then.
   * What it frees meanwhile is taken at once.
   */
  async #fill(part: Part): Promise<void> {
    const disk = this.#disks.get(part)!;
    disk.fill();
    const connection = await connect(join(this.#dataOf(part), 'admin.kubeconfig'));
    try {
      for (let index = 0, refused = 0; refused < 5; index += 1) {
        if (index === 400) throw new Error(`${part} took 400 writes on a full disk`);
        const value = 'x'.repeat(refused === 0 ? 100_000 : 1_000);
        const object = { metadata: { name: `ballast-${index}` }, data: { value } };
        const { status } = await connection.request('POST', ballastPath, object);
        disk.fill();
        refused = status >= 500 ? refused + 1 : 0;
        if (refused > 0) await pause(500);
      }
    } finally {
      connection.close();
    }
    this.#fillers.set(
      part,
      setInterval(() => disk.fill(), 1_000),
    );
  }

  async #empty(part: Part): Promise<void> {
    clearInterval(this.#fillers.get(part));
    this.#disks.get(part)!.free();
    const connection = await connect(join(this.#dataOf(part), 'admin.kubeconfig'));
    try {
      for (let index = 0, missing = 0; missing < 10; index += 1) {
        const { status } = await connection.request('DELETE', `${ballastPath}/ballast-${index}`);
        if (status === 404) missing += 1;
      }
    } finally {
      connection.close();
    }
  }
}

const commands: Readonly<Record<string, AddCommands>> = {
  federation: addFederationCommand,
  peer: addPeerCommands,
  register: addRegisterCommands,
};
const ballastPath = '/api/v1/namespaces/default/configmaps';

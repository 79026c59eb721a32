// Userspace mode: a listener for each clusterset address and port that has backends, by the same choice function as the
// kernel's rules. Meant for trying out: every byte passes through this process.

import { errorText, type Log } from '../../base/log.ts';
import { LogBudget } from '../../base/log-budget.ts';
import type { IpRange } from '../../base/net/ip.ts';
import { sleep, type Timer, type World } from '../../base/world.ts';
import { type ConnectionCounts, noConnections } from '../../kube/objects/reports/connections.ts';
import type { Backend, PortChoice } from '../port-choice.ts';
import { modeProblem } from '../ranges.ts';
import type { ProxyState } from '../state.ts';
import { Tally } from '../tally.ts';
import { Balancer } from './balancer.ts';
import type { FlowClient, UserspaceFlows } from './flows.ts';
import { type Listener, listenTcp } from './server-tcp.ts';
import { listenUdp } from './server-udp.ts';

export interface ListenersOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly state: ProxyState;
  /** Absent if nothing is counted. */
  readonly flows?: UserspaceFlows;
  /** Told of services that are listened for. */
  readonly onWritten?: (services: readonly (readonly [key: string, ports: readonly PortChoice[]])[]) => void;
}

interface Open {
  readonly balancer: Balancer;
  /** Absent while it could not be opened. */
  listener?: Listener;
}

const retryMs = 5000;
const problemsMax = 100;
const recentMax = 1000;
const identifyMs = 20;
const identifyTries = 50;

export class Listeners {
  /** Connections of services that are shifted. */
  readonly tally = new Tally();
  readonly #options: ListenersOptions;
  readonly #budget: LogBudget;
  /** By service, then by `PROTOCOL IP PORT`. */
  readonly #open = new Map<string, Map<string, Open>>();
  readonly #problems = new Map<string, readonly string[]>();
  readonly #connections = new Map<string, number>();
  /** By the client's port, the latest last. */
  readonly #recent = new Map<number, string>();
  #rangeProblem = '';
  #isStarted = false;
  #isStopped = false;
  #running: Promise<void> | undefined;
  #timer: Timer | undefined;

  constructor(options: ListenersOptions) {
    this.#options = options;
    this.#budget = new LogBudget(options.world.clock);
    options.state.onDirty(() => this.#wake());
  }

  /** For the connectivity test: which endpoint was given to the client with this port. */
  readonly identify = async (_target: unknown, ports: readonly number[]): Promise<Map<number, string>> => {
    // A client is connected to us a moment before we are to its endpoint.
    for (let tries = 0; tries < identifyTries && ports.some((port) => !this.#recent.has(port)); tries += 1)
      await sleep(this.#options.world.timers, identifyMs);
    const found = new Map<number, string>();
    for (const port of ports) if (this.#recent.has(port)) found.set(port, this.#recent.get(port)!);
    return found;
  };

  /** Resolves to why they cannot be used; an empty text if they can. */
  async useRanges(ranges: readonly IpRange[]): Promise<string> {
    this.#rangeProblem = modeProblem(ranges, 'userspace') ?? '';
    return this.#rangeProblem;
  }

  async start(): Promise<void> {
    this.#isStarted = true;
    this.#wake();
    await this.#running;
  }

  status() {
    const count = [...this.#open.values()].reduce((sum, ports) => sum + ports.size, 0);
    return {
      problem: this.#rangeProblem || (this.#isStarted ? '' : 'nothing was read from the home yet'),
      size: { services: this.#open.size, ports: count },
      connections: Object.fromEntries(this.#connections),
      problems: Object.fromEntries([...this.#problems].slice(0, problemsMax)),
    };
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#running;
    for (const ports of this.#open.values()) for (const { listener } of ports.values()) await listener?.close();
    this.#open.clear();
  }

  #wake(): void {
    if (!this.#isStarted || this.#isStopped || this.#running !== undefined) return;
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  async #run(): Promise<void> {
    await Promise.resolve();
    for (;;) {
      const keys = this.#options.state.takeDirty();
      if (keys.length === 0 || this.#isStopped) return;
      for (const key of keys) await this.#update(key);
    }
  }

  async #update(key: string): Promise<void> {
    const { ports, problems } = this.#options.state.choiceOf(key);
    this.#startCounting(key, ports);
    const found = [...problems];
    const wanted = new Map<string, PortChoice>();
    for (const port of ports) {
      if (port.protocol === 'SCTP') found.push(`port ${port.port}: SCTP is not served in userspace mode`);
      else if (port.backends.length > 0) wanted.set(`${port.protocol} ${port.ip} ${port.port}`, port);
    }
    const open = this.#open.get(key) ?? new Map<string, Open>();
    for (const [name, { listener }] of open) {
      if (wanted.has(name)) continue;
      open.delete(name);
      await listener?.close();
    }
    for (const [name, choice] of wanted) {
      const known = open.get(name) ?? { balancer: new Balancer(choice, this.#options.world) };
      known.balancer.update(choice);
      open.set(name, known);
      const problem = known.listener ? undefined : await this.#listen(key, known, choice);
      if (problem !== undefined) found.push(problem);
    }
    if (open.size === 0) this.#open.delete(key);
    else this.#open.set(key, open);
    if (found.length > 0) this.#problems.set(key, found);
    else this.#problems.delete(key);
    this.#options.onWritten?.([[key, ports]]);
  }

  /** Clusters that have had no connection yet are reported with none. */
  #startCounting(key: string, ports: readonly PortChoice[]): void {
    const counted = this.#options.state.counted();
    this.tally.keep(counted);
    if (!counted.has(key)) return;
    for (const { protocol, backends } of ports)
      if (protocol === 'TCP') for (const { cluster } of backends) this.tally.add(key, cluster, noConnections);
  }

  /** Returns the error, if there is one. */
  async #listen(key: string, open: Open, choice: PortChoice): Promise<string | undefined> {
    const { ip, port, protocol } = choice;
    const { flows } = this.#options;
    const openFlow = flows && ((backend: Backend, client: FlowClient) => flows.open(key, choice, backend, client));
    const onConnection = (backend: Backend, clientPort: number) => this.#count(backend, clientPort);
    const onOutcome = ({ cluster }: Backend, outcome: keyof ConnectionCounts) => {
      if (this.#options.state.counted().has(key)) this.tally.add(key, cluster, { [outcome]: 1 });
    };
    try {
      const listen = protocol === 'TCP' ? listenTcp : listenUdp;
      open.listener = await listen({ ip, port, balancer: open.balancer, onConnection, onOutcome, openFlow });
      return undefined;
    } catch (error) {
      const problem = `cannot listen on ${ip}:${port}/${protocol}: ${advice(error)}`;
      const fields = this.#budget.take();
      if (fields) this.#options.log.warn('a clusterset address is not served', { problem, ...fields });
      this.#timer ??= this.#options.world.timers.after(retryMs, () => this.#retry());
      return problem;
    }
  }

  #retry(): void {
    this.#timer = undefined;
    this.#options.state.setView(this.#options.state.view);
  }

  #count(backend: Backend, clientPort: number): void {
    this.#connections.set(backend.cluster, (this.#connections.get(backend.cluster) ?? 0) + 1);
    this.#recent.delete(clientPort);
    this.#recent.set(clientPort, `${backend.address}:${backend.port}`);
    if (this.#recent.size > recentMax) this.#recent.delete(this.#recent.keys().next().value!);
  }
}

function advice(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EACCES') return 'not permitted: ports below 1024 need root, or export a higher port';
  if (code === 'EADDRINUSE') return 'in use by another process';
  if (code === 'EADDRNOTAVAIL') return 'no address of this machine: use a clusterset range inside 127.0.0.0/8';
  if (code === 'EMFILE') return 'too many open files: raise ulimit -n';
  return errorText(error);
}

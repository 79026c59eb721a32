// Starts the processes of the proxy's tests inside network namespaces: homes that take orders, proxies, servers and clients.

import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { adminTicketHeader } from '../../src/base/admin-headers.ts';
import type { AnyObject } from '../../src/kube/objects/object.ts';
import { until } from './dns-process.ts';
import type { Namespaces, Place } from './namespaces.ts';
import { portolan } from './portolan.ts';
import type { Order, ProxyNodeTask } from './proxy-node.ts';

const script = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** A process that prints a line when it is ready, and one for each that it is sent. */
export class LineProcess {
  readonly child: ChildProcess;
  readonly #waiting: ((line: string) => void)[] = [];
  readonly #early: string[] = [];
  #errors = '';
  #ended: Promise<void>;

  constructor(child: ChildProcess) {
    this.child = child;
    createInterface({ input: child.stdout! }).on('line', (line) => {
      const waiter = this.#waiting.shift();
      if (waiter) waiter(line);
      else this.#early.push(line);
    });
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (this.#errors += chunk));
    this.#ended = new Promise((resolve) => child.once('exit', () => resolve()));
  }

  next(): Promise<string> {
    const early = this.#early.shift();
    if (early !== undefined) return Promise.resolve(early);
    return Promise.race([
      new Promise<string>((resolve) => this.#waiting.push(resolve)),
      this.#ended.then(() => {
        throw new Error(`ended with ${this.child.exitCode}: ${this.#errors.slice(-3000)}`);
      }),
    ]);
  }

  async ask<T>(value: unknown): Promise<T> {
    const answer = this.next();
    this.child.stdin!.write(`${JSON.stringify(value)}\n`);
    return JSON.parse(await answer) as T;
  }

  get errors(): string {
    return this.#errors;
  }

  async stop(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(signal);
    await this.#ended;
  }
}

export interface NodeHome {
  readonly kubeconfig: string;
  /** Kubeconfig of the proxies' account. */
  readonly proxyKubeconfig: string;
  /** Kubeconfigs of the accounts that were asked for. */
  readonly accounts: Record<string, string>;
  readonly tokens: Record<string, string>;
  order<T = AnyObject>(order: Order): Promise<T>;
  stop(): Promise<void>;
}

export async function startNodeHome(
  net: Namespaces,
  place: Place,
  task: Omit<ProxyNodeTask, 'address'>,
): Promise<NodeHome> {
  const args = [script('proxy-node.ts'), JSON.stringify({ ...task, address: place.address })];
  const lines = new LineProcess(net.start(place, process.execPath, args));
  const { kubeconfig, proxyKubeconfig, accounts, tokens } = JSON.parse(await lines.next());
  return {
    kubeconfig,
    proxyKubeconfig,
    accounts,
    tokens,
    order: async <T>(order: Order) => {
      const answer = await lines.ask<T & { error?: string }>(order);
      if (answer?.error !== undefined) throw new Error(`${JSON.stringify(order)}: ${answer.error}`);
      return answer;
    },
    stop: () => lines.stop(),
  };
}

export interface ProxyProcess {
  readonly child: ChildProcess;
  readonly admin: string;
  log(): string;
  whenReady(): Promise<void>;
  /** From its admin endpoint. */
  get(
    path: string,
    options?: { readonly method?: string; readonly ticket?: string },
  ): Promise<{ readonly status: number; readonly text: string }>;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** `prefix` is a program with arguments that runs it. */
export async function startProxyProcess(
  net: Namespaces,
  place: Place,
  args: readonly string[],
  prefix: readonly string[] = [],
): Promise<ProxyProcess> {
  const [program, ...rest] = [...prefix, portolan, 'proxy', ...args];
  const child = net.start(place, program!, rest);
  let out = '';
  let log = '';
  child.stdout!.setEncoding('utf8').on('data', (chunk: string) => (out += chunk));
  child.stderr!.setEncoding('utf8').on('data', (chunk: string) => (log += chunk));
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const has = (pattern: RegExp) => async () => {
    if (child.exitCode !== null) throw new Error(`portolan proxy ended with ${child.exitCode}: ${log}`);
    return pattern.test(out);
  };
  await until('the proxy has an admin endpoint', has(/^admin (\S+)$/m));
  const admin = /^admin (\S+)$/m.exec(out)![1]!;
  return {
    child,
    admin,
    log: () => log,
    whenReady: () => until('the proxy is ready', has(/^ready /m)),
    get: async (path, { method = 'GET', ticket } = {}) => {
      const header = ticket === undefined ? [] : ['-H', `${adminTicketHeader}: ${ticket}`];
      const args = ['-s', '-X', method, ...header, '-w', '\\n%{http_code}', `${admin}${path}`];
      const text = await net.output(place, 'curl', args);
      const at = text.lastIndexOf('\n');
      return { status: Number(text.slice(at + 1)), text: text.slice(0, at) };
    },
    stop: async (signal = 'SIGTERM') => {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      await ended;
    },
  };
}

/** What a proxy has seen of connections, as JSON. */
export async function seenBy<T>(home: NodeHome, proxy: ProxyProcess, path: string): Promise<T> {
  const { token } = await home.order<{ token: string }>({ flowTicket: proxy.admin });
  return JSON.parse((await proxy.get(path, { ticket: token })).text) as T;
}

/** Servers that name themselves; see name-servers.mjs. */
export async function startServers(net: Namespaces, place: Place, servers: readonly object[]): Promise<LineProcess> {
  const lines = new LineProcess(
    net.start(place, process.execPath, [script('name-servers.mjs'), JSON.stringify(servers)]),
  );
  await lines.next();
  return lines;
}

export interface ClientReport {
  /** The backends that answered, and how often. */
  readonly answers: Record<string, number>;
  readonly failures: Record<string, number>;
  /** Local ports of HTTP requests that failed. */
  readonly failedPorts?: readonly number[];
}

/** Connections one after the other in some lanes, each of which asks who answers; see name-clients.mjs. */
export function startClients(net: Namespaces, place: Place, task: object): LineProcess {
  return new LineProcess(net.start(place, process.execPath, [script('name-clients.mjs'), JSON.stringify(task)]));
}

export async function ask(net: Namespaces, place: Place, task: object): Promise<ClientReport> {
  const lines = startClients(net, place, task);
  const report = JSON.parse(await lines.next()) as ClientReport;
  await lines.stop();
  return report;
}

// Which of several servers to ask next. One that does not answer is left out after the second time and tried again now and
// then by a single query, so that a dead server or a black hole costs its clients next to nothing. Pure but for the time.

import { parseIp } from '../../model/ip.ts';

export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

interface ServerState {
  readonly address: ServerAddress;
  failures: number;
  /** Left out until then. */
  downUntilMs: number;
}

const failuresUntilDown = 2;
const downMs = { first: 1000, max: 10_000 };

export class ServerSet {
  readonly #servers: ServerState[];
  /** Where the next query starts, if they take turns. */
  #turn = 0;
  readonly #takesTurns: boolean;

  constructor(addresses: readonly ServerAddress[], options: { readonly takesTurns: boolean }) {
    this.#servers = addresses.map((address) => ({ address, failures: 0, downUntilMs: 0 }));
    this.#takesTurns = options.takesTurns;
  }

  get addresses(): readonly ServerAddress[] {
    return this.#servers.map(({ address }) => address);
  }

  /** Servers to try in this order; empty if all are known to be down and none is due for a trial. */
  candidates(nowMs: number): ServerAddress[] {
    const count = this.#servers.length;
    const start = this.#takesTurns && count > 0 ? this.#turn++ % count : 0;
    const inOrder = this.#servers.map((_, i) => this.#servers[(start + i) % count]!);
    const healthy = inOrder.filter(isUp).map(({ address }) => address);
    if (healthy.length > 0) return healthy;
    const due = this.dueForTrial(nowMs);
    return due ? [due] : [];
  }

  answered(address: ServerAddress): void {
    const server = this.#state(address);
    if (server) server.failures = 0;
  }

  failed(address: ServerAddress, nowMs: number): void {
    const server = this.#state(address);
    if (!server) return;
    server.failures += 1;
    const step = Math.min(downMs.max, downMs.first * 2 ** Math.min(10, server.failures - failuresUntilDown));
    if (server.failures >= failuresUntilDown) server.downUntilMs = nowMs + step;
  }

  /** A server that is down and has waited long enough: the caller sends it one query to see whether it is back. */
  dueForTrial(nowMs: number): ServerAddress | undefined {
    const due = this.#servers.find((server) => !isUp(server) && nowMs >= server.downUntilMs);
    if (due) due.downUntilMs = nowMs + downMs.first;
    return due?.address;
  }

  #state(address: ServerAddress): ServerState | undefined {
    return this.#servers.find((server) => server.address === address);
  }
}

function isUp(server: ServerState): boolean {
  return server.failures < failuresUntilDown;
}

/** `10.0.0.1`, `10.0.0.1:5353`, `[fd00::1]:5353`, `fd00::1`. */
export function parseServerAddress(text: string, defaultPort = 53): ServerAddress {
  const match =
    /^\[([^\]]+)\](?::(\d+))?$/.exec(text) ?? /^([^:]+)(?::(\d+))?$/.exec(text) ?? /^([0-9a-fA-F:.]+)$/.exec(text);
  const port = Number(match?.[2] ?? defaultPort);
  if (!match || parseIp(match[1]!) === undefined || port < 1 || port > 65_535) {
    throw new Error(`nameserver ${JSON.stringify(text)}: want an address with an optional port, such as 10.0.0.1:5353`);
  }
  return { host: match[1]!, port };
}

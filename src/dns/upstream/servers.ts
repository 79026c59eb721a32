// Which of several servers to ask, and in which order: those that are known to be silent come last, but nobody is ever left
// out, for all that is known may be wrong by now. A server is silent when it does not even answer a probe; a name that takes
// long to resolve says nothing about the server, or any client could take it away from all others. Pure but for the time.

import type { ServerAddress } from '../config/config.ts';

interface ServerState {
  readonly address: ServerAddress;
  isSilent: boolean;
  lastAnswerMs: number;
  /** Not probed before then. */
  nextProbeMs: number;
  /** Grows while it stays silent. */
  probeEveryMs: number;
}

const probeEveryMs = { first: 1000, max: 10_000 };

export class ServerSet {
  readonly #servers: ServerState[];
  /** Where the next query starts, if they take turns. */
  #turn = 0;
  readonly #takesTurns: boolean;

  constructor(addresses: readonly ServerAddress[], options: { readonly takesTurns: boolean }) {
    this.#servers = addresses.map((address) => ({
      address,
      isSilent: false,
      lastAnswerMs: Number.NEGATIVE_INFINITY,
      nextProbeMs: Number.NEGATIVE_INFINITY,
      probeEveryMs: probeEveryMs.first,
    }));
    this.#takesTurns = options.takesTurns;
  }

  get addresses(): readonly ServerAddress[] {
    return this.#servers.map(({ address }) => address);
  }

  get areAllSilent(): boolean {
    return this.#servers.every(({ isSilent }) => isSilent);
  }

  isSilent(address: ServerAddress): boolean {
    return this.#state(address)?.isSilent ?? false;
  }

  /** All of them, the silent ones last. */
  inOrder(): ServerAddress[] {
    const count = this.#servers.length;
    const start = this.#takesTurns && count > 0 ? this.#turn++ % count : 0;
    const all = this.#servers.map((_, i) => this.#servers[(start + i) % count]!);
    return [...all.filter(({ isSilent }) => !isSilent), ...all.filter(({ isSilent }) => isSilent)].map(
      ({ address }) => address,
    );
  }

  /** Whatever it said: it is there. */
  answered(address: ServerAddress, nowMs: number): void {
    const server = this.#state(address);
    if (!server) return;
    server.lastAnswerMs = nowMs;
    server.isSilent = false;
    server.probeEveryMs = probeEveryMs.first;
  }

  /** A probe sent then got no answer; if nothing else did since, the server is silent. */
  didNotAnswer(address: ServerAddress, sinceMs: number): void {
    const server = this.#state(address);
    if (!server || server.lastAnswerMs >= sinceMs) return;
    server.isSilent = true;
    server.probeEveryMs = Math.min(probeEveryMs.max, 2 * server.probeEveryMs);
  }

  /** Whether the caller is to send a probe now; a yes counts as sent. */
  takeProbe(address: ServerAddress, nowMs: number): boolean {
    const server = this.#state(address);
    if (!server || nowMs < server.nextProbeMs) return false;
    server.nextProbeMs = nowMs + server.probeEveryMs;
    return true;
  }

  /** Silent ones whose time for another probe has come. */
  takeDueProbes(nowMs: number): ServerAddress[] {
    const due = this.#servers.filter(({ isSilent, address }) => isSilent && this.takeProbe(address, nowMs));
    return due.map(({ address }) => address);
  }

  #state(address: ServerAddress): ServerState | undefined {
    return this.#servers.find((server) => server.address === address);
  }
}

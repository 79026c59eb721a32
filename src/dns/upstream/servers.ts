// Which of several servers to ask, and in which order: silent ones come last, but none is ever left out, because the
// state may be outdated. A server is silent when it does not even answer a probe; a name that takes long to resolve
// says nothing about the server, or any client could take it away from all others. Pure but for the time.

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
  #turn = -1;
  readonly #takesTurns: boolean;
  /** By their start, until a server falls silent or returns. */
  #orders: readonly ServerAddress[][] | undefined;
  #silentCount = 0;
  readonly addresses: readonly ServerAddress[];

  constructor(addresses: readonly ServerAddress[], options: { readonly takesTurns: boolean }) {
    this.#servers = addresses.map((address) => ({
      address,
      isSilent: false,
      lastAnswerMs: Number.NEGATIVE_INFINITY,
      nextProbeMs: Number.NEGATIVE_INFINITY,
      probeEveryMs: probeEveryMs.first,
    }));
    this.#takesTurns = options.takesTurns;
    this.addresses = addresses;
  }

  get areAllSilent(): boolean {
    return this.#silentCount === this.#servers.length;
  }

  isSilent(address: ServerAddress): boolean {
    return this.#state(address)?.isSilent ?? false;
  }

  /** All of them, the silent ones last. */
  inOrder(): readonly ServerAddress[] {
    const count = this.#servers.length;
    if (count === 0) return [];
    this.#turn = this.#takesTurns ? (this.#turn + 1) % count : 0;
    this.#orders ??= this.#servers.map((_, start) => this.#orderFrom(start));
    return this.#orders[this.#turn]!;
  }

  #orderFrom(start: number): ServerAddress[] {
    const all = this.#servers.map((_, i) => this.#servers[(start + i) % this.#servers.length]!);
    return [...all.filter(({ isSilent }) => !isSilent), ...all.filter(({ isSilent }) => isSilent)].map(
      ({ address }) => address,
    );
  }

  #setSilent(server: ServerState, isSilent: boolean): void {
    if (server.isSilent === isSilent) return;
    server.isSilent = isSilent;
    this.#silentCount += isSilent ? 1 : -1;
    this.#orders = undefined;
  }

  /** Any answer shows that the server is there. */
  answered(address: ServerAddress, nowMs: number): void {
    const server = this.#state(address);
    if (!server) return;
    server.lastAnswerMs = nowMs;
    this.#setSilent(server, false);
    server.probeEveryMs = probeEveryMs.first;
  }

  /** A probe sent then got no answer; if nothing else did since, the server is silent. */
  didNotAnswer(address: ServerAddress, sinceMs: number): void {
    const server = this.#state(address);
    if (!server || server.lastAnswerMs >= sinceMs) return;
    this.#setSilent(server, true);
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
    if (this.#silentCount === 0) return [];
    const due = this.#servers.filter(({ isSilent, address }) => isSilent && this.takeProbe(address, nowMs));
    return due.map(({ address }) => address);
  }

  #state(address: ServerAddress): ServerState | undefined {
    return this.#servers.find((server) => server.address === address);
  }
}

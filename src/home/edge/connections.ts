// The open connections and what each is doing. Ends those that do nothing, and makes room for a new one by ending the
// one that has been idle longest; what happens on a connection is exchange.ts.

import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { EdgeLimits } from './limits.ts';
import { type TlsClient, tlsClientOf } from './tls-client.ts';

export class Connection {
  readonly address: string;
  #socket: Socket;
  #session: ServerHttp2Session | undefined;
  #client: TlsClient | undefined;
  /** Exchanges that still hold anything, those whose stream was reset included. */
  openExchanges = 0;
  activeMs: number;
  hasRequested = false;
  /** Requests of HTTP/1.1 that came before the one at work was answered; undefined while none is at work. */
  #pipelined: (() => void)[] | undefined;
  /** Set while it is unknown whether anything still gets through to the other side. */
  #pingDeadlineMs = Number.POSITIVE_INFINITY;

  constructor(socket: Socket, nowMs: number) {
    this.#socket = socket;
    this.address = socket.remoteAddress ?? '';
    this.activeMs = nowMs;
  }

  secured(socket: TLSSocket): void {
    this.#socket = socket;
    this.#client = tlsClientOf(socket);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 30_000);
  }

  spokeHttp2(session: ServerHttp2Session): void {
    this.#session = session;
  }

  get client(): TlsClient {
    return this.#client ?? { kind: 'nobody' };
  }

  /**
   * Runs requests of HTTP/1.1 one after the other: a client that pipelines a DELETE and a GET means that order (RFC 9112,
   * section 9.3.2).
   */
  inTurn(begin: () => void): void {
    if (this.#pipelined !== undefined) return void this.#pipelined.push(begin);
    this.#pipelined = [];
    begin();
  }

  /** The request at work is answered. */
  nextInTurn(): void {
    const begin = this.#pipelined?.shift();
    if (begin === undefined) this.#pipelined = undefined;
    else if (!this.#socket.destroyed) begin();
  }

  /** A stream was blocked for too long: if not even a ping comes back, it is the whole connection that is. */
  probe(deadlineMs: number): void {
    const session = this.#session;
    if (session === undefined || session.destroyed || this.#pingDeadlineMs !== Number.POSITIVE_INFINITY) return;
    this.#pingDeadlineMs = deadlineMs;
    session.ping(() => {
      this.#pingDeadlineMs = Number.POSITIVE_INFINITY;
    });
  }

  isDue(nowMs: number, limits: EdgeLimits): boolean {
    if (nowMs > this.#pingDeadlineMs) return true;
    if (this.openExchanges > 0) return false;
    return nowMs - this.activeMs > (this.hasRequested ? limits.idleMsMax : limits.headersMsMax);
  }

  /** Says goodbye where the protocol has a word for it. */
  retire(): void {
    if (this.openExchanges === 0) this.#session?.close();
    this.destroy();
  }

  destroy(): void {
    this.#session?.destroy();
    this.#socket.destroy();
  }
}

export class Connections {
  readonly #limits: EdgeLimits;
  readonly #byEndpoint = new Map<string, Connection>();

  constructor(limits: EdgeLimits) {
    this.#limits = limits;
  }

  open(socket: Socket, nowMs: number): void {
    if (this.#byEndpoint.size >= this.#limits.connectionsMax && !this.#makeRoom()) {
      socket.destroy();
      return;
    }
    const endpoint = endpointOf(socket);
    const connection = new Connection(socket, nowMs);
    this.#byEndpoint.set(endpoint, connection);
    socket.once('close', () => {
      if (this.#byEndpoint.get(endpoint) === connection) this.#byEndpoint.delete(endpoint);
    });
  }

  of(socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): Connection | undefined {
    return this.#byEndpoint.get(endpointOf(socket));
  }

  sweep(nowMs: number): void {
    for (const connection of this.#byEndpoint.values()) {
      if (connection.isDue(nowMs, this.#limits)) connection.retire();
    }
  }

  destroyAll(): void {
    for (const connection of this.#byEndpoint.values()) connection.destroy();
  }

  #makeRoom(): boolean {
    let idlest: [string, Connection] | undefined;
    for (const entry of this.#byEndpoint) {
      const [, connection] = entry;
      if (connection.openExchanges === 0 && (idlest === undefined || connection.activeMs < idlest[1].activeMs)) {
        idlest = entry;
      }
    }
    if (idlest === undefined) return false;
    this.#byEndpoint.delete(idlest[0]);
    idlest[1].retire();
    return true;
  }
}

function endpointOf(socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}

// For tests under the virtual clock: peering's own sockets, simulated. Messages take a latency, a way that is full
// says so, a consumer can stall, an owner can vanish with or without a word. The caller's identity is its certificate
// text.

import type { CallHandlers, GrpcServer, ServerCall } from '../../base/grpc/server-options.ts';
import { type Code, codes } from '../../base/grpc/status.ts';
import type { ClientCall, ClientHandlers, Dial, DialOptions } from '../../base/grpc/transport-client.ts';
import type { Timers } from '../../base/world.ts';
import type { PeeringServerOptions } from '../peering.ts';
import type { PeerCaller } from '../trust/trust.ts';

export interface VirtualPeeringOptions {
  readonly timers: Timers;
  readonly latencyMs?: number;
}

/** As an HTTP/2 stream buffers before it says that it is full. */
const highWaterBytes = 64 * 1024;
const keepAliveMs = 10_000;

type LinkFault = 'up' | 'refused' | 'silent';

/** One direction of a stream. */
class Lane {
  readonly #timers: Timers;
  readonly #latencyMs: number;
  readonly #isHeld: () => boolean;
  #queue: (() => void)[] = [];
  #isPumping = false;
  bytes = 0;
  bytesMax = 0;
  onDrain: () => void = () => {};

  constructor(timers: Timers, latencyMs: number, isHeld: () => boolean) {
    this.#timers = timers;
    this.#latencyMs = latencyMs;
    this.#isHeld = isHeld;
  }

  push(bytes: number, deliver: () => void): boolean {
    this.bytes += bytes;
    this.bytesMax = Math.max(this.bytesMax, this.bytes);
    this.#queue.push(() => {
      this.bytes -= bytes;
      deliver();
    });
    this.pump();
    return this.bytes < highWaterBytes;
  }

  pump(): void {
    if (this.#isPumping || this.#queue.length === 0) return;
    this.#isPumping = true;
    this.#timers.after(this.#latencyMs, () => {
      this.#isPumping = false;
      if (this.#isHeld()) return;
      const wasFull = this.bytes >= highWaterBytes;
      for (const deliver of this.#queue.splice(0)) deliver();
      if (wasFull) this.onDrain();
      this.pump();
    });
  }
}

interface Connection {
  readonly from: string;
  readonly address: string;
  readonly toConsumer: Lane;
  readonly toOwner: Lane;
  close(code: Code, reason: string): void;
  alive(): void;
}

export class VirtualPeering {
  readonly #options: VirtualPeeringOptions;
  readonly #servers = new Map<string, PeeringServerOptions>();
  readonly #faults = new Map<string, LinkFault>();
  readonly #stalled = new Set<string>();
  readonly #connections = new Set<Connection>();

  constructor(options: VirtualPeeringOptions) {
    this.#options = options;
  }

  serve(address: string): (options: PeeringServerOptions) => Promise<GrpcServer> {
    return async (options) => {
      this.#servers.set(address, options);
      return {
        port: 0,
        setCertificate: () => {},
        trustChanged: () => {},
        close: async () => {
          this.#servers.delete(address);
          this.#closeAll(address, 'the owner stopped');
        },
      };
    };
  }

  /** `refused` breaks what is open; `silent` leaves it to keep-alive to notice. */
  setFault(address: string, fault: LinkFault): void {
    this.#faults.set(address, fault);
    if (fault === 'refused') this.#closeAll(address, 'connection reset');
    if (fault === 'silent')
      this.#options.timers.after(2 * keepAliveMs, () => {
        if (this.#faults.get(address) === 'silent') this.#closeAll(address, 'no answer to keep-alive');
      });
  }

  /** A process that was killed: its endpoint is gone, its streams end at the other side, and nothing reaches it. */
  vanish(address: string, from: string): void {
    this.#servers.delete(address);
    for (const connection of [...this.#connections])
      if (connection.address === address || connection.from === from)
        connection.close(codes.unavailable, 'the process was killed');
  }

  stall(from: string, isStalled: boolean): void {
    if (isStalled) this.#stalled.add(from);
    else this.#stalled.delete(from);
    for (const { toConsumer } of this.#connections) toConsumer.pump();
  }

  /** The most bytes that waited on the way to this consumer. */
  bytesMaxTo(from: string): number {
    return Math.max(
      0,
      ...[...this.#connections].filter((one) => one.from === from).map((one) => one.toConsumer.bytesMax),
    );
  }

  dial(options: { readonly withoutMarker?: boolean } = {}): Dial {
    return (target, handlers) => {
      const headers = options.withoutMarker ? {} : target.headers;
      return this.#connect({ ...target, headers }, handlers);
    };
  }

  #connect(options: DialOptions, handlers: ClientHandlers): ClientCall {
    const { timers, latencyMs = 1 } = this.#options;
    const from = options.certificate;
    const { address } = options;
    const isSilent = () => this.#faults.get(address) === 'silent';
    const toConsumer = new Lane(timers, latencyMs, () => isSilent() || this.#stalled.has(from));
    const toOwner = new Lane(timers, latencyMs, isSilent);
    let served: CallHandlers | undefined;
    let isOpen = true;
    const connection: Connection = {
      from,
      address,
      toConsumer,
      toOwner,
      alive: () => {
        if (!isOpen || isSilent()) return;
        handlers.onAlive();
        served?.onAlive?.();
      },
      close: (code, reason) => {
        if (!isOpen) return;
        isOpen = false;
        this.#connections.delete(connection);
        served?.onClosed();
        handlers.onClosed(code, reason);
      },
    };
    const call = this.#serverCall(options, handlers, connection, () => isOpen);
    const begin = () => {
      const server = this.#servers.get(address);
      if (!isOpen) return;
      if (server === undefined || (this.#faults.get(address) ?? 'up') !== 'up')
        return connection.close(codes.unavailable, `${address} is not there`);
      const verdict = server.judge([]);
      const isStarting = verdict.kind === 'refused' && verdict.code === codes.unavailable;
      if (isStarting) return connection.close(codes.unavailable, verdict.reason);
      this.#connections.add(connection);
      served = server.accept(call);
      if (served === undefined) return connection.close(codes.unimplemented, `${options.path} is not served here`);
      toConsumer.onDrain = () => isOpen && served?.onDrain();
      this.#keepAlive(connection);
    };
    timers.after(latencyMs, begin);
    return {
      send: (message) => void toOwner.push(message.length, () => isOpen && served?.onMessage(Buffer.from(message))),
      get unsentBytes() {
        return toOwner.bytes;
      },
      pause: () => {},
      resume: () => {},
      cancel: (code = codes.cancelled, reason = 'cancelled by us') => connection.close(code, reason),
    };
  }

  #serverCall(
    options: DialOptions,
    handlers: ClientHandlers,
    connection: Connection,
    isOpen: () => boolean,
  ): ServerCall<PeerCaller> {
    let hasHeaders = false;
    const { toConsumer } = connection;
    return {
      path: options.path,
      headers: options.headers,
      caller: { peer: options.certificate, identity: `spiffe://${options.certificate}` },
      sendHeaders: (headers) => {
        if (hasHeaders) return;
        hasHeaders = true;
        toConsumer.push(0, () => isOpen() && handlers.onOpened(headers));
      },
      send: (message) =>
        toConsumer.push(message.length, () => {
          if (!isOpen()) return;
          handlers.onAlive();
          handlers.onMessage(Buffer.from(message));
        }),
      get unsentBytes() {
        return toConsumer.bytes;
      },
      pause() {},
      resume() {},
      end: (code, reason) => void toConsumer.push(0, () => connection.close(code, reason)),
    };
  }

  #keepAlive(connection: Connection): void {
    if (!this.#connections.has(connection)) return;
    connection.alive();
    this.#options.timers.after(keepAliveMs, () => this.#keepAlive(connection));
  }

  #closeAll(address: string, reason: string): void {
    for (const connection of [...this.#connections])
      if (connection.address === address) connection.close(codes.unavailable, reason);
  }
}

// Questions to other servers over TLS (RFC 7858). One connection to each, opened when it is needed and kept as long as the
// other side does; questions share it and are told apart by their ids. A connection that breaks takes its questions along:
// one that found it open is asked once more on a new one.

import { isIP } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { FrameReader, frameMessage } from '../../base/dns/frames.ts';
import type { Timer, World } from '../../base/world.ts';
import type { TlsClient } from '../config/config.ts';
import { headerBytes } from '../message/wire.ts';
import type { ExchangeOptions } from './exchange.ts';

interface Waiting {
  readonly resolve: (reply: Uint8Array) => void;
  readonly reject: (error: Error) => void;
}

interface Connection {
  readonly socket: TLSSocket;
  readonly waiting: Map<number, Waiting>;
  /** Data to send once the other side is authenticated; undefined from then on. */
  unsent: Buffer[] | undefined;
  /** Grows with every answer. */
  answers: number;
}

class BrokenError extends Error {}

export class TlsConnections {
  readonly #world: Pick<World, 'timers' | 'random'>;
  readonly #open = new Map<TlsClient, Map<string, Connection>>();

  constructor(world: Pick<World, 'timers' | 'random'>) {
    this.#world = world;
  }

  /** The reply under the id that was sent; whether it answers the question is for the caller to see. */
  async ask(options: ExchangeOptions & { readonly tls: TlsClient }): Promise<Uint8Array> {
    const connection = this.#connectionTo(options);
    const isUsed = connection.answers > 0;
    try {
      return await this.#askOn(connection, options);
    } catch (error) {
      // It may have been closed for being idle just when we asked.
      if (!isUsed || !(error instanceof BrokenError)) throw error;
      return this.#askOn(this.#connectionTo(options), options);
    }
  }

  close(): void {
    for (const ours of [...this.#open.values()]) for (const { socket } of [...ours.values()]) socket.destroy();
  }

  #connectionTo({ server, tls }: ExchangeOptions & { readonly tls: TlsClient }): Connection {
    const where = `${server.host}:${server.port}`;
    const ours = this.#open.get(tls) ?? new Map<string, Connection>();
    this.#open.set(tls, ours);
    const known = ours.get(where);
    if (known) return known;
    const connection: Connection = { socket: dial(server, tls), waiting: new Map(), unsent: [], answers: 0 };
    ours.set(where, connection);
    const end = (error: Error) => {
      if (ours.get(where) === connection) ours.delete(where);
      if (ours.size === 0 && this.#open.get(tls) === ours) this.#open.delete(tls);
      connection.socket.destroy();
      for (const { reject } of [...connection.waiting.values()]) reject(error);
    };
    connection.socket.on('error', (cause) => end(new BrokenError(`${where} over TLS: ${cause.message}`, { cause })));
    connection.socket.on('close', () => end(new BrokenError(`${where} over TLS: the connection was closed`)));
    connection.socket.on('secureConnect', () => {
      for (const frame of connection.unsent ?? []) connection.socket.write(frame);
      connection.unsent = undefined;
    });
    readFrames(connection);
    return connection;
  }

  #freshId({ waiting }: Connection): number {
    for (;;) {
      const bytes = this.#world.random.bytes(2);
      const id = (bytes[0]! << 8) | bytes[1]!;
      if (!waiting.has(id)) return id;
    }
  }

  #askOn(connection: Connection, { server, message, timeoutMs }: ExchangeOptions): Promise<Uint8Array> {
    const { socket, waiting, answers } = connection;
    const id = this.#freshId(connection);
    return new Promise((resolve, reject) => {
      let timer: Timer | undefined;
      const end = () => {
        timer?.cancel();
        waiting.delete(id);
      };
      timer = this.#world.timers.after(timeoutMs, () => {
        end();
        reject(new Error(`${server.host}:${server.port} did not answer over TLS within ${timeoutMs} ms`));
        // Nothing came at all: the next question had better not wait for the same.
        if (connection.answers === answers) socket.destroy();
      });
      waiting.set(id, {
        resolve: (reply) => {
          end();
          resolve(reply);
        },
        reject: (error) => {
          end();
          reject(error);
        },
      });
      if (connection.unsent) connection.unsent.push(framed(message, id));
      else socket.write(framed(message, id));
    });
  }
}

function dial(server: ExchangeOptions['server'], tls: TlsClient): TLSSocket {
  const { authority, certificate, key, serverName = server.host } = tls;
  const socket = connect({
    host: server.host,
    port: server.port,
    ALPNProtocols: ['dot'],
    // An address is no server name (RFC 6066 section 3), but the certificate may be for it.
    ...(isIP(serverName) ? {} : { servername: serverName }),
    ca: authority,
    ...(certificate === undefined ? {} : { cert: certificate, key }),
  });
  socket.setNoDelay(true);
  socket.unref();
  return socket;
}

function readFrames(connection: Connection): void {
  const frames = new FrameReader();
  connection.socket.on('data', (chunk: Buffer) => {
    frames.add(chunk);
    for (let reply = frames.next(); reply !== undefined; reply = frames.next()) {
      connection.answers += 1;
      if (reply.length >= headerBytes) connection.waiting.get(reply.readUInt16BE(0))?.resolve(reply);
    }
  });
}

function framed(message: Uint8Array, id: number): Buffer {
  const bytes = frameMessage(message);
  bytes.writeUInt16BE(id, 2);
  return bytes;
}

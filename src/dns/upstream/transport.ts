// Questions to other servers over UDP, TCP and TLS (tls-connections.ts). Each UDP question leaves from a port and under an id that the kernel's and
// our randomness chose (RFC 5452): ports come from a pool of sockets that are thrown away after a while. A reply counts
// only if server, id and question are right to the letter; anything else is ignored and the wait goes on.

import { createSocket, type Socket } from 'node:dgram';
import { connect, isIPv6 } from 'node:net';
import type { World } from '../../base/world.ts';
import { headerBytes } from '../wire.ts';
import type { Exchange, ExchangeOptions } from './exchange.ts';
import { isBareFailure } from './reply.ts';
import { createTlsConnections } from './tls-connections.ts';

interface Waiting {
  readonly options: ExchangeOptions;
  readonly resolve: (reply: Uint8Array) => void;
}

interface PooledSocket {
  readonly socket: Socket;
  readonly waiting: Map<number, Waiting>;
  questionsLeft: number;
}

const poolSize = 16;
const questionsPerSocket = 2000;
const waitingPerSocketMax = 4096;

export function createTransport(world: Pick<World, 'timers' | 'random'>): Exchange {
  const pools: Record<'udp4' | 'udp6', PooledSocket[]> = { udp4: [], udp6: [] };
  const retired = new Set<PooledSocket>();
  /** End each question that waits. */
  const stops = new Set<() => void>();
  const connections = createTlsConnections(world);
  let isClosed = false;

  function open(family: 'udp4' | 'udp6'): PooledSocket {
    const socket = createSocket({
      type: family,
      lookup: (host, _options, callback) => callback(null, host, family === 'udp4' ? 4 : 6),
    });
    const pooled: PooledSocket = { socket, waiting: new Map(), questionsLeft: questionsPerSocket };
    socket.on('message', (reply, from) => {
      if (reply.length < headerBytes) return;
      const waiting = pooled.waiting.get(reply.readUInt16BE(0));
      if (
        !waiting ||
        from.port !== waiting.options.server.port ||
        !isSameHost(from.address, waiting.options.server.host)
      )
        return;
      if (isReplyTo(reply, waiting.options.message)) waiting.resolve(reply);
    });
    // Unreachable hosts show up here on some systems; the question's own time limit deals with them.
    socket.on('error', () => {});
    socket.bind({ port: 0, exclusive: true });
    socket.unref();
    return pooled;
  }

  function pick(family: 'udp4' | 'udp6'): PooledSocket {
    const pool = pools[family];
    const at = Math.floor(world.random.float() * poolSize);
    const pooled = (pool[at] ??= open(family));
    if (pooled.questionsLeft-- > 0 && pooled.waiting.size < waitingPerSocketMax) return pooled;
    retired.add(pooled);
    closeIfIdle(pooled);
    return (pool[at] = open(family));
  }

  function closeIfIdle(pooled: PooledSocket): void {
    if (!retired.has(pooled) || pooled.waiting.size > 0) return;
    retired.delete(pooled);
    pooled.socket.close();
  }

  function freshId(pooled: PooledSocket): number {
    for (;;) {
      const bytes = world.random.bytes(2);
      const id = (bytes[0]! << 8) | bytes[1]!;
      if (!pooled.waiting.has(id)) return id;
    }
  }

  function askUdp(options: ExchangeOptions): Promise<Uint8Array> {
    const { server } = options;
    const pooled = pick(isIPv6(server.host) ? 'udp6' : 'udp4');
    const id = freshId(pooled);
    const message = withId(options.message, id);
    return new Promise((resolve, reject) => {
      const end = () => {
        timer.cancel();
        stops.delete(stop);
        pooled.waiting.delete(id);
        closeIfIdle(pooled);
      };
      const stop = () => {
        end();
        reject(new Error(`${server.host}:${server.port} has not answered, and is no longer waited for`));
      };
      stops.add(stop);
      const timer = world.timers.after(options.timeoutMs, () => {
        end();
        reject(new Error(`${server.host}:${server.port} did not answer within ${options.timeoutMs} ms`));
      });
      pooled.waiting.set(id, {
        options,
        resolve: (reply) => {
          end();
          resolve(reply);
        },
      });
      pooled.socket.send(message, server.port, server.host, (error) => {
        if (!error || !pooled.waiting.has(id)) return;
        end();
        reject(error);
      });
    });
  }

  function askTcp(options: ExchangeOptions): Promise<Uint8Array> {
    const { server } = options;
    const bytes = world.random.bytes(2);
    const message = withId(options.message, (bytes[0]! << 8) | bytes[1]!);
    return new Promise((resolve, reject) => {
      const socket = connect({ host: server.host, port: server.port, noDelay: true });
      let received = Buffer.alloc(0);
      const end = (finish: () => void) => {
        timer.cancel();
        stops.delete(stop);
        socket.destroy();
        finish();
      };
      const fail = (error: Error) => end(() => reject(error));
      const stop = () => fail(new Error(`${server.host}:${server.port} is no longer waited for`));
      stops.add(stop);
      const timer = world.timers.after(options.timeoutMs, () =>
        fail(new Error(`${server.host}:${server.port} did not answer over TCP within ${options.timeoutMs} ms`)),
      );
      socket.on('connect', () => socket.write(framed(message)));
      socket.on('data', (chunk) => {
        received = Buffer.concat([received, chunk]);
        if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return;
        const reply = received.subarray(2, 2 + received.readUInt16BE(0));
        const isRight = reply.length >= headerBytes && reply.readUInt16BE(0) === message.readUInt16BE(0);
        if (isRight && isReplyTo(reply, options.message)) end(() => resolve(reply));
        else fail(new Error(`${server.host}:${server.port} answered something else over TCP`));
      });
      socket.on('error', fail);
      socket.on('close', () => fail(new Error(`${server.host}:${server.port} closed the connection`)));
    });
  }

  async function askTls(options: Parameters<typeof connections.ask>[0]): Promise<Uint8Array> {
    const { server, message } = options;
    const reply = await connections.ask(options);
    if (isReplyTo(reply, message)) return reply;
    throw new Error(`${server.host}:${server.port} answered something else over TLS`);
  }

  return {
    ask: (options) => {
      if (isClosed) return Promise.reject(new Error(`${options.server.host} is not asked: this server is stopping`));
      if (options.tls) return askTls({ ...options, tls: options.tls });
      return options.isTcp ? askTcp(options) : askUdp(options);
    },
    close: () => {
      isClosed = true;
      // Who waits must not keep the process alive until its time is over.
      for (const stop of stops) stop();
      connections.close();
      for (const pooled of [...pools.udp4, ...pools.udp6, ...retired]) if (pooled) pooled.socket.close();
      pools.udp4 = [];
      pools.udp6 = [];
      retired.clear();
    },
  };
}

function withId(message: Uint8Array, id: number): Buffer {
  const copy = Buffer.from(message);
  copy.writeUInt16BE(id);
  return copy;
}

function framed(message: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(2 + message.length);
  bytes.writeUInt16BE(message.length);
  message.copy(bytes, 2);
  return bytes;
}

function isSameHost(a: string, b: string): boolean {
  return a === b || normalHost(a) === normalHost(b);
}

function normalHost(host: string): string {
  return isIPv6(host) ? new URL(`http://[${host.replace(/%.*$/, '')}]`).hostname : host;
}

/** A reply, with one question that is ours to the letter: case is part of what a forger must guess. Only a failure may come
 *  without its question, as old servers send it: all it can do is make us ask again. */
function isReplyTo(reply: Uint8Array, message: Uint8Array): boolean {
  if ((reply[2]! & 0x80) === 0) return false;
  if (isBareFailure(reply)) return true;
  let end = headerBytes;
  while (message[end] !== 0) end += message[end]! + 1;
  end += 5;
  if (reply.length < end) return false;
  for (let i = headerBytes; i < end; i++) if (reply[i] !== message[i]) return false;
  return true;
}

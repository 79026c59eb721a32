// Questions to other servers over UDP (udp-sockets.ts), TCP and TLS (tls-connections.ts).

import { connect } from 'node:net';
import type { World } from '../../base/world.ts';
import { headerBytes } from '../wire.ts';
import type { Exchange, ExchangeOptions, TakeReply } from './exchange.ts';
import { isReplyTo } from './reply.ts';
import { createTlsConnections } from './tls-connections.ts';
import { UdpSockets } from './udp-sockets.ts';

export function createTransport(world: Pick<World, 'clock' | 'timers' | 'random'>): Exchange {
  const udp = new UdpSockets(world);
  /** End each question that waits for TCP. */
  const stops = new Set<() => void>();
  const connections = createTlsConnections(world);
  let isClosed = false;

  function askUdp(options: ExchangeOptions): Promise<Uint8Array> {
    const { host, port } = options.server;
    return new Promise((resolve, reject) => {
      udp.send({ ...options, message: Buffer.from(options.message) }, (reply) => {
        if (reply) resolve(reply);
        else if (isClosed) reject(new Error(`${host}:${port} has not answered, and is no longer waited for`));
        else reject(new Error(`${host}:${port} did not answer within ${options.timeoutMs} ms`));
      });
    });
  }

  function send(options: ExchangeOptions, done: TakeReply): void {
    if (isClosed) done(undefined);
    else udp.send(options, done);
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
      const tls = options.tls ?? options.server.tls;
      if (tls) return askTls({ ...options, tls });
      return options.isTcp ? askTcp(options) : askUdp(options);
    },
    send,
    close: () => {
      isClosed = true;
      // Who waits must not keep the process alive until its time is over.
      for (const stop of stops) stop();
      connections.close();
      udp.close();
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

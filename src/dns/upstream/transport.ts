// Questions to other servers over UDP (udp-sockets.ts), TCP and TLS (tls-connections.ts).

import { exchangeOverTcp } from '../../base/dns/transport-tcp.ts';
import type { World } from '../../base/world.ts';
import { headerBytes } from '../message/wire.ts';
import type { Exchange, ExchangeOptions, TakeReply } from './exchange.ts';
import { isReplyTo } from './reply.ts';
import { TlsConnections } from './tls-connections.ts';
import { UdpSockets } from './udp-sockets.ts';

export function createTransport(world: Pick<World, 'clock' | 'timers' | 'random'>): Exchange {
  const udp = new UdpSockets(world);
  /** Ends each question that waits for TCP: it must not keep the process alive until its time is over. */
  const stopping = new AbortController();
  const connections = new TlsConnections(world);
  let isClosed = false;

  function askUdp(options: ExchangeOptions): Promise<Uint8Array> {
    const { host, port } = options.server;
    return new Promise((resolve, reject) => {
      udp.send({ ...options, message: Buffer.from(options.message) }, (reply) => {
        if (reply) resolve(reply);
        else if (isClosed) reject(new Error(`${host}:${port} did not respond in time`));
        else reject(new Error(`${host}:${port} did not answer within ${options.timeoutMs} ms`));
      });
    });
  }

  function send(options: ExchangeOptions, done: TakeReply): void {
    if (isClosed) done(undefined);
    else udp.send(options, done);
  }

  async function askTcp({ server, message: question, timeoutMs }: ExchangeOptions): Promise<Uint8Array> {
    const bytes = world.random.bytes(2);
    const message = withId(question, (bytes[0]! << 8) | bytes[1]!);
    let answer: Uint8Array | undefined;
    const onMessage = (reply: Buffer): 'end' => {
      const isRight = reply.length >= headerBytes && reply.readUInt16BE(0) === message.readUInt16BE(0);
      if (!isRight || !isReplyTo(reply, question))
        throw new Error(`${server.host}:${server.port} answered something else over TCP`);
      answer = reply;
      return 'end';
    };
    const limit = { totalMs: timeoutMs };
    await exchangeOverTcp({ server, timers: world.timers, message, onMessage, limit, signal: stopping.signal });
    return answer!;
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
      stopping.abort();
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

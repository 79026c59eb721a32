// One TCP connection to a DNS server for one exchange of messages: a question and its reply, or a transfer of many.

import { connect } from 'node:net';
import type { Timers } from '../world.ts';
import { FrameReader, frameMessage } from './frames.ts';

export interface TcpExchange {
  readonly server: { readonly host: string; readonly port: number };
  readonly timers: Timers;
  readonly message: Uint8Array;
  /** Called with every message that comes back until one was the last. An exception from it ends the exchange. */
  readonly onMessage: (reply: Buffer) => 'more' | 'end';
  /** `totalMs` for all of it, or `idleMs` without anything. */
  readonly limit: { readonly totalMs: number } | { readonly idleMs: number };
  readonly signal?: AbortSignal;
}

export function exchangeOverTcp(options: TcpExchange): Promise<void> {
  const { server, timers, message, onMessage, limit, signal } = options;
  const where = `${server.host}:${server.port}`;
  const limitMs = 'totalMs' in limit ? limit.totalMs : limit.idleMs;
  return new Promise((resolve, reject) => {
    const socket = connect({ host: server.host, port: server.port, noDelay: true });
    const frames = new FrameReader();
    const startTimer = () =>
      timers.after(limitMs, () => fail(new Error(`${where} did not answer over TCP within ${limitMs} ms`)));
    let timer = startTimer();
    const end = (finish: () => void) => {
      timer.cancel();
      signal?.removeEventListener('abort', onAbort);
      socket.destroy();
      finish();
    };
    const fail = (error: Error) => end(() => reject(error));
    const onAbort = () => fail(new Error(`${where} did not respond in time`));
    signal?.addEventListener('abort', onAbort);
    const read = (chunk: Buffer): void => {
      frames.add(chunk);
      for (let reply = frames.next(); reply !== undefined; reply = frames.next())
        if (onMessage(reply) === 'end') return end(resolve);
    };
    socket.on('connect', () => socket.write(frameMessage(message)));
    socket.on('data', (chunk: Buffer) => {
      if ('idleMs' in limit) {
        timer.cancel();
        timer = startTimer();
      }
      try {
        read(chunk);
      } catch (error) {
        fail(error as Error);
      }
    });
    socket.on('error', (cause) => fail(new Error(`${where} cannot be reached over TCP: ${cause.message}`, { cause })));
    socket.on('close', () => fail(new Error(`${where} closed the TCP connection before the end`)));
  });
}

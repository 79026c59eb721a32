// One TCP connection to a DNS server for one exchange of messages.

import { connect } from 'node:net';
import type { Timers } from '../../base/world.ts';
import type { DnsConnection } from './rfc2136.ts';

export interface TcpConnectionOptions {
  readonly host: string;
  readonly port: number;
  readonly timers: Timers;
  /** Without a message for so long it is over. */
  readonly idleMs?: number;
}

const defaultIdleMs = 10_000;

export function tcpConnection(options: TcpConnectionOptions): DnsConnection {
  const where = `${options.host}:${options.port}`;
  return {
    exchange: (message, onMessage) =>
      new Promise((resolve, reject) => {
        const socket = connect({ host: options.host, port: options.port, noDelay: true });
        let received: Buffer = Buffer.alloc(0);
        const fail = (error: Error) => {
          timer.cancel();
          socket.destroy();
          reject(error);
        };
        const startTimer = () =>
          options.timers.after(options.idleMs ?? defaultIdleMs, () => fail(new Error(`${where} does not answer`)));
        let timer = startTimer();
        socket.on('connect', () => {
          const length = Buffer.alloc(2);
          length.writeUInt16BE(message.length);
          socket.write(Buffer.concat([length, message]));
        });
        socket.on('data', (chunk: Buffer) => {
          timer.cancel();
          timer = startTimer();
          received = Buffer.concat([received, chunk]);
          try {
            while (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
              const end = 2 + received.readUInt16BE(0);
              const step = onMessage(received.subarray(2, end));
              received = received.subarray(end);
              if (step === 'more') continue;
              timer.cancel();
              socket.destroy();
              resolve();
              return;
            }
          } catch (error) {
            fail(error as Error);
          }
        });
        socket.on('error', (cause) => fail(new Error(`${where} cannot be reached`, { cause })));
        socket.on('close', () => fail(new Error(`${where} closed the connection before the end`)));
      }),
  };
}

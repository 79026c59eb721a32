// One query for the IPv4 addresses of a name, over UDP, without a resolver library between the clock and the socket.

import { createSocket } from 'node:dgram';
import { sleep } from '../api/load.ts';

/** Undefined if there was no reply in time. */
export function lookUp(port: number, name: string, waitMs: number): Promise<string[] | undefined> {
  const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)]);
  const query = Buffer.from([0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, 1, 0, 1]);
  return new Promise((resolve) => {
    const socket = createSocket('udp4');
    const end = (value: string[] | undefined) => {
      clearTimeout(timer);
      socket.close();
      resolve(value);
    };
    const timer = setTimeout(() => end(undefined), waitMs);
    socket.on('message', (reply) => {
      const addresses: string[] = [];
      // Every record of a plain answer has sixteen bytes: a pointer, the fixed part, the address.
      for (let at = query.length; at + 16 <= reply.length && reply[at] === 0xc0; at += 16) {
        addresses.push([...reply.subarray(at + 12, at + 16)].join('.'));
      }
      end(addresses);
    });
    socket.send(query, port, '127.0.0.1');
  });
}

export async function untilAnswers(port: number, name: string): Promise<void> {
  for (let i = 0; i < 100; i++) {
    if ((await lookUp(port, name, 200)) !== undefined) return;
    await sleep(100);
  }
  throw new Error(`no answer on port ${port}`);
}

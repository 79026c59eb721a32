// A wildcard address on a host with several: each is answered from itself, also one that comes later.

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { afterEach, expect, test } from 'vitest';
import { createRealWorld } from '../../base/real/world.ts';
import { Responder } from '../chain/responder.ts';
import { refuseHandler } from '../handlers/refusals.ts';
import { createCounters, tallyIn } from '../metrics/observe.ts';
import { encodeQuestion } from '../testing/ask.ts';
import type { Listening } from './server-udp.ts';
import { listenWildcardUdp } from './wildcard-udp.ts';

const open: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

async function listen(addresses: string[], port = 0): Promise<Listening> {
  const listening = await listenWildcardUdp({
    responder: new Responder({ chain: [refuseHandler()], onFault: () => {} }),
    nsid: Buffer.from('test'),
    host: '0.0.0.0',
    port,
    reusePort: false,
    tally: tallyIn(createCounters()),
    onError: () => {},
    timers: createRealWorld().timers,
    localAddresses: () => addresses,
  });
  open.push(() => listening.close());
  return listening;
}

/** Which address answers one that was sent to this one. */
async function answererOf(host: string, port: number): Promise<string> {
  const socket = createSocket('udp4');
  open.push(() => socket.close());
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const send = () => socket.send(encodeQuestion('www.example.com A'), port, host);
  send();
  // A socket that is closed at this moment takes its question with it.
  const again = setInterval(send, 500);
  const [, from] = await once(socket, 'message');
  clearInterval(again);
  return from.address;
}

test('dns: a wildcard address -> each local address answers from itself, and follows as addresses come and go', async () => {
  const addresses = ['127.0.0.1', '127.0.0.2', '::1'];
  const { port } = await listen(addresses);
  for (const host of ['127.0.0.1', '127.0.0.2']) expect(await answererOf(host, port)).toBe(host);
  addresses.push('127.0.0.3');
  await expect.poll(() => answererOf('127.0.0.3', port), { timeout: 10_000 }).toBe('127.0.0.3');
  addresses.splice(1, 1);
  // No socket of its own any more: the kernel chooses.
  await expect.poll(() => answererOf('127.0.0.2', port), { timeout: 10_000 }).toBe('127.0.0.1');
});

test('dns: a wildcard address whose port somebody has -> an error with its code', async () => {
  const { port } = await listen(['127.0.0.1']);
  await expect(listen(['127.0.0.1'], port)).rejects.toMatchObject({ code: 'EADDRINUSE' });
});

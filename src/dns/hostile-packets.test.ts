// Packets through real sockets that no honest client sends: whatever they do, the server lives and serves the next.

import { spawnSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { createLog } from '../base/log.ts';
import { createRealWorld } from '../base/real/world.ts';
import { createCounters, readCounters, tallyIn } from './metrics/observe.ts';
import { type DnsServer, startDns } from './server.ts';
import { listenStream } from './sockets/server-stream.ts';
import { listenUdp } from './sockets/server-udp.ts';
import { encodeQuestion } from './testing/ask.ts';
import { askTcp, askUdp, framed, type Target } from './testing/edge/client.ts';
import { mulberry32, mutate, sampleCatalog, sampleQueries } from './testing/fuzz.ts';

const question = 'checkout.shop.svc.clusterset.local A';
const running: { close(): Promise<unknown> | unknown }[] = [];
const lines: string[] = [];
const world = createRealWorld();
const log = createLog({ clock: world.clock, level: 'warn', write: (line) => lines.push(line) });

afterEach(async () => {
  lines.length = 0;
  await Promise.all(running.splice(0).map((each) => each.close()));
});

async function start(workers = 0): Promise<{ server: DnsServer; target: Target }> {
  const server = await startDns({
    world,
    log,
    workers,
    catalog: sampleCatalog(),
    listen: { hosts: ['127.0.0.1'], port: 0 },
  });
  running.push(server);
  return { server, target: { host: '127.0.0.1', port: server.udpPort } };
}

/** The sockets that are made while something runs. */
async function socketsOf<T>(run: () => Promise<T>): Promise<{ sockets: Socket[]; result: T }> {
  const sockets: Socket[] = [];
  const onSocket = (message: unknown) => sockets.push((message as { socket: Socket }).socket);
  subscribe('udp.socket', onSocket);
  try {
    return { sockets, result: await run() };
  } finally {
    unsubscribe('udp.socket', onSocket);
  }
}

/** A UDP packet that says it comes from port 0, from a raw socket. */
function sendFromPortZero(target: Target, payload: Buffer): boolean {
  const script = `
import socket, struct, sys
payload = bytes.fromhex(sys.argv[2])
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
raw.sendto(struct.pack('!HHHH', 0, int(sys.argv[1]), 8 + len(payload), 0) + payload, ('127.0.0.1', 0))
`;
  return spawnSync('python3', ['-c', script, String(target.port), payload.toString('hex')]).status === 0;
}

const tallyOf = (server: DnsServer) => readCounters(server.counters()).tally;

describe('dns server: hostile packets', () => {
  test('a packet from port 0 -> dropped and counted, and the next query is served', async () => {
    const { sockets, result } = await socketsOf(() => start());
    const { server, target } = result;
    const from = { address: '127.0.0.1', port: 0, family: 'IPv4', size: 30 } as const;
    for (const socket of sockets) socket.emit('message', encodeQuestion(question), from);
    expect(tallyOf(server).droppedPortZero).toBe(1);
    expect(await askUdp(target, question)).toBe('243.0.0.7');
  });

  test('the same from a raw socket, without and with threads -> served on', async ({ skip }) => {
    for (const workers of [0, 2]) {
      const { server, target } = await start(workers);
      if (!sendFromPortZero(target, encodeQuestion(question))) skip('needs python3 and the right to open a raw socket');
      await expect.poll(() => tallyOf(server).droppedPortZero).toBe(1);
      expect(await askUdp(target, question)).toBe('243.0.0.7');
    }
  });

  test('a packet that makes us throw -> that one is lost, counted, and logged once in a while', async () => {
    const counters = createCounters();
    const faults: unknown[] = [];
    const common = { host: '127.0.0.1', port: 0, reusePort: false, nsid: Buffer.alloc(0), timers: world.timers };
    const responder = {
      respond: () => {
        throw new Error('a mistake of ours');
      },
    } as never;
    const options = { ...common, responder, tally: tallyIn(counters), onError: (error: unknown) => faults.push(error) };
    const udp = await listenUdp(options);
    const stream = await listenStream(options);
    running.push(udp, stream);
    const client = createSocket('udp4');
    for (let i = 0; i < 3; i++) client.send(encodeQuestion(question), udp.port, '127.0.0.1');
    await expect.poll(() => faults.length).toBe(3);
    client.close();
    const socket = connect({ host: '127.0.0.1', port: stream.port });
    socket.on('error', () => {});
    socket.write(framed(encodeQuestion(question)));
    await once(socket, 'close');
    expect(readCounters([counters]).tally.droppedFault).toBe(4);
  });

  test('thousands of mutated packets over UDP and TCP -> no fault, and the next query is served', async () => {
    const { server, target } = await start();
    const random = mulberry32(815);
    const corpus = sampleQueries();
    const client = createSocket('udp4');
    client.on('message', () => {});
    for (let i = 0; i < 4000; i++) {
      const sent = mutate(corpus[Math.floor(random() * corpus.length)]!, random);
      await new Promise((resolve) => client.send(sent, target.port, target.host, resolve));
      if (i % 40 === 0) await throwAway(target, framed(sent));
    }
    client.close();
    expect(await askUdp(target, question)).toBe('243.0.0.7');
    expect(await askTcp(target, question)).toBe('243.0.0.7');
    expect(tallyOf(server).droppedFault).toBe(0);
    expect(lines).toEqual([]);
  });
});

async function throwAway(target: Target, bytes: Buffer): Promise<void> {
  const socket = connect(target);
  socket.on('error', () => {});
  socket.on('data', () => {});
  socket.end(bytes);
  await new Promise((resolve) => socket.on('close', resolve));
}

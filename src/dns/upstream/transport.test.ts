// Questions to other servers over real sockets: what a forger would have to guess, and what is made of wrong guesses.

import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import packet from 'dns-packet';
import { afterEach, expect, test } from 'vitest';
import { createRealWorld } from '../../base/real/world.ts';
import { describeAnswer, encodeQuestion } from '../testing/ask.ts';
import { createTransport } from './transport.ts';

const open: { close(): void }[] = [];

afterEach(() => {
  for (const each of open.splice(0)) each.close();
});

type Answerer = (socket: Socket, question: Buffer, from: RemoteInfo) => void;

async function serve(answer: Answerer) {
  const socket = createSocket('udp4');
  socket.on('message', (question, from) => answer(socket, question, from));
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const transport = createTransport(createRealWorld());
  open.push(socket, transport);
  const server = { host: '127.0.0.1', port: socket.address().port };
  const message = encodeQuestion('www.example.com A');
  return () => transport.ask({ server, message, timeoutMs: 2000, isTcp: false });
}

function replyTo(question: Buffer, change: { id?: number; name?: string; data?: string } = {}): Buffer {
  const { id, questions } = packet.decode(question);
  const name = change.name ?? questions![0]!.name;
  const answers = [{ type: 'A', name, ttl: 60, data: change.data ?? '203.0.113.1' }] as never;
  return packet.encode({ type: 'response', id: change.id ?? id, questions: [{ ...questions![0]!, name }], answers });
}

const addressIn = (reply: Uint8Array) => describeAnswer(packet.decode(Buffer.from(reply)));

test('upstream: many questions -> from many ports, under ids that follow no order', async () => {
  const seen: { id: number; port: number }[] = [];
  const ask = await serve((socket, question, from) => {
    seen.push({ id: question.readUInt16BE(0), port: from.port });
    socket.send(replyTo(question), from.port, from.address);
  });
  for (let i = 0; i < 600; i++) await ask();
  // From a pool of 256 about 230 different ones come out.
  expect(new Set(seen.map(({ port }) => port)).size).toBeGreaterThan(200);
  expect(new Set(seen.map(({ id }) => id)).size).toBeGreaterThan(580);
  const steps = seen.slice(1).map(({ id }, i) => (id - seen[i]!.id) & 0xffff);
  expect(new Set(steps).size).toBeGreaterThan(50);
});

test('upstream: a wrong id, another question, another sender -> ignored, the right reply counts', async () => {
  const stranger = createSocket('udp4');
  stranger.bind(0, '127.0.0.1');
  await once(stranger, 'listening');
  open.push(stranger);
  const ask = await serve((socket, question, from) => {
    const id = question.readUInt16BE(0) ^ 1;
    const send = (by: Socket, reply: Buffer) => by.send(reply, from.port, from.address);
    send(socket, replyTo(question, { id, data: '6.6.6.1' }));
    send(socket, replyTo(question, { name: 'other.example.com', data: '6.6.6.2' }));
    send(socket, question);
    stranger.send(replyTo(question, { data: '6.6.6.3' }), from.port, from.address, () =>
      setTimeout(() => send(socket, replyTo(question)), 20),
    );
  });
  expect(addressIn(await ask())).toBe('203.0.113.1');
});

test('upstream: a failure without its question, under the right id and from the server -> counts; an answer without -> ignored', async () => {
  const bare = (question: Buffer, { id = question.readUInt16BE(0), flags = 0x8001, answers = 0 } = {}) => {
    const header = Buffer.alloc(12);
    header.writeUInt16BE(id, 0);
    header.writeUInt16BE(flags, 2);
    header.writeUInt16BE(answers, 6);
    return header;
  };
  const ask = await serve((socket, question, from) => {
    const send = (reply: Buffer) => socket.send(reply, from.port, from.address);
    send(bare(question, { id: question.readUInt16BE(0) ^ 1 }));
    send(bare(question, { flags: 0x8000 }));
    send(bare(question, { flags: 0x8003 }));
    send(bare(question, { answers: 1 }));
    send(bare(question, { flags: 0x8005 }));
  });
  expect((await ask())[3]! & 15).toBe(5);
});

test.each([false, true])(
  'upstream: closed while a question waits (TCP: %s) -> it fails at once, and so do later ones',
  async (isTcp) => {
    const silent = isTcp ? createServer() : createSocket('udp4');
    if ('bind' in silent) silent.bind(0, '127.0.0.1');
    else silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
    open.push(silent);
    const transport = createTransport(createRealWorld());
    const server = { host: '127.0.0.1', port: (silent.address() as { port: number }).port };
    const ask = () =>
      transport.ask({ server, message: encodeQuestion('www.example.com A'), timeoutMs: 600_000, isTcp });
    const failing = expect(ask()).rejects.toThrow(/did not respond in time/);
    transport.close();
    await failing;
    await expect(ask()).rejects.toThrow(/stopping/);
  },
);

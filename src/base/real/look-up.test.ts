import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { afterEach, expect, test } from 'vitest';
import { classIn, rcode, recordType } from '../dns/codes.ts';
import { decodeMessage, encodeMessage } from '../dns/message.ts';
import { createSystemLookUp } from './look-up.ts';

const open: Socket[] = [];
afterEach(() => {
  for (const socket of open.splice(0)) socket.close();
});

/** A nameserver on loopback that knows these IPv4 and IPv6 addresses; null: SERVFAIL. */
async function nameserver(known: Record<string, { v4?: number[]; v6?: number[] } | null>): Promise<string> {
  const socket = createSocket('udp4');
  open.push(socket);
  socket.on('message', (bytes, { port, address }) => {
    const { id, questions } = decodeMessage(bytes);
    const { name, type } = questions[0]!;
    const entry = known[name];
    const rdata = type === recordType.A ? entry?.v4 : entry?.v6;
    const answers = rdata === undefined ? [] : [{ name, type, class: classIn, ttl: 17, rdata: Buffer.from(rdata) }];
    const code = entry === null ? rcode.SERVFAIL : entry === undefined ? rcode.NXDOMAIN : rcode.NOERROR;
    const reply = { id, flags: 0x8180 | code, questions, answers, authorities: [], additionals: [] };
    socket.send(encodeMessage(reply), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return `127.0.0.1:${socket.address().port}`;
}

const v6 = [0x20, 1, 0xd, 0xb8, ...Array<number>(11).fill(0), 1];

test('system lookup: IPv4 first, IPv6 where there is no other, with the time that they hold', async () => {
  const both = { 'both.example': { v4: [192, 0, 2, 7], v6 }, 'newer.example': { v6 } };
  const lookUp = createSystemLookUp([await nameserver(both)]);
  expect(await lookUp('both.example')).toEqual({ addresses: ['192.0.2.7'], ttlSeconds: 17 });
  expect(await lookUp('newer.example')).toEqual({ addresses: ['2001:db8::1'], ttlSeconds: 17 });
});

test('system lookup: the nameserver fails -> an error, so that nobody takes it for a name without addresses', async () => {
  const lookUp = createSystemLookUp([await nameserver({ 'broken.example': null })]);
  await expect(lookUp('broken.example')).rejects.toThrow();
});

test('system lookup: a name of the hosts file that the nameserver does not know -> found', async () => {
  const lookUp = createSystemLookUp([await nameserver({})]);
  expect((await lookUp('localhost')).addresses).toContain('127.0.0.1');
});

// Replies that no good server sends, as clients get them from the cache.

import packet from 'dns-packet';
import { expect, test } from 'vitest';
import { encodeName } from '../../base/dns/name.ts';
import { Answer } from '../message/answer.ts';
import { Query } from '../message/wire.ts';
import { throwFault } from '../testing/ask.ts';
import { ReplyCache } from './cache.ts';
import { readReply } from './reply.ts';
import { WaitingRoom } from './waiting-room.ts';

const question = { type: 'MX', name: 'x' } as const;
const longName = (letter: string) => [63, 63, 63, 61].map((length) => letter.repeat(length)).join('.');

/** A client's answer over TCP. */
function throughCache(received: Buffer): Buffer {
  const cache = new ReplyCache();
  cache.put('key', readReply(received)!, 0);
  const query = new Query();
  query.transport = 'tcp';
  query.read(packet.encode({ questions: [question] }));
  const answer = new Answer();
  answer.begin(query);
  new WaitingRoom({ onFault: throwFault }).fill(query, answer, cache.get('key', 0)!, 0);
  return Buffer.from(answer.bytes.subarray(0, answer.finish()));
}

test('reply: longest words of an extended error, not UTF-8 -> its records are passed on as they are', () => {
  // Each byte becomes three when such words are read as UTF-8.
  const option = { code: 15, data: Buffer.alloc(40_000, 0xff) };
  const opt = { type: 'OPT', name: '.', udpPayloadSize: 1232, flags: 0, options: [option] } as never;
  const data = { preference: 5, exchange: 'mail.x' };
  const answers = [{ type: 'MX', name: 'x', ttl: 60, data }] as const;
  const received = packet.encode({
    type: 'response',
    questions: [question],
    answers: [...answers],
    additionals: [opt],
  });
  expect(packet.decode(throughCache(received))).toMatchObject({ answers, flag_tc: false });
});

test('reply: a DNAME above the name asked for, signed -> the signature is passed on; one of another type there is not', () => {
  const hex = (text: string) => Buffer.from(text, 'hex');
  const asked = packet.encode({ type: 'response', questions: [{ type: 'A', name: 'www.old.example' }] });
  asked.writeUInt16BE(5, 6);
  const [above, target] = [encodeName('old.example'), encodeName('new.example')];
  const signer = encodeName('example');
  const signature = (covered: string) => {
    const rdata = Buffer.concat([hex(`${covered}0d020000003c70000000600000001234`), signer, Buffer.alloc(64, 7)]);
    return [above, hex('002e00010000003c'), hex(rdata.length.toString(16).padStart(4, '0')), rdata];
  };
  const data = (type: string, owner: Uint8Array, name: Uint8Array) => [
    ...[owner, hex(`${type}00010000003c`), hex(name.length.toString(16).padStart(4, '0')), name],
  ];
  const records = [
    ...data('0027', above, target),
    ...signature('0027'),
    ...signature('0010'),
    ...data('0005', hex('c00c'), encodeName('www.new.example')),
    ...[encodeName('www.new.example'), hex('000100010000003c0004cb007101')],
  ];
  const reply = readReply(Buffer.concat([asked, ...records]))!;
  const types = packet.decode(Buffer.from(reply.bytes)).answers!.map(({ type }) => type);
  expect(types).toEqual(['DNAME', 'RRSIG', 'CNAME', 'A']);
});

test('reply: longer than a message once a record of others is left out -> whole records that fit, and TC', () => {
  const count = 242;
  const head = packet.encode({ type: 'response', questions: [question] });
  head.writeUInt16BE(count + 2, 6);
  head.writeUInt16BE(1, 8);
  const hex = (text: string) => Buffer.from(text, 'hex');
  // Owned by the root; then one record that writes its host in full, and many that point to it.
  const foreign = hex('0000010001000000780004cb007101');
  const full = [hex('c00c000f00010000003c01010005'), encodeName(longName('m'))];
  const target = (0xc000 + head.length + foreign.length + full[0]!.length).toString(16);
  const pointing = Array.from({ length: count }, () => hex(`c00c000f00010000003c00040005${target}`));
  const nsec = [encodeName(longName('o')), hex('002f00010000003c000100')];
  const reply = packet.decode(throughCache(Buffer.concat([head, foreign, ...full, ...pointing, ...nsec])));
  expect([reply.answers?.length, reply.authorities, reply.flag_tc]).toEqual([243, [], true]);
  const data = { preference: 5, exchange: longName('m') };
  for (const answer of reply.answers!) expect(answer).toMatchObject({ name: 'x', type: 'MX', ttl: 60, data });
});

// EDNS options a client may send: cookies (RFC 7873), the time a connection stays open (RFC 7828), and padding (RFC 7830).

import packet, { type DecodedPacket } from 'dns-packet';
import { describe, expect, test } from 'vitest';
import type { Clock } from '../base/world.ts';
import { Answer } from './message/answer.ts';
import { Query, type Transport } from './message/wire.ts';
import { Asker, type AskOptions, addImport, encodeQuestion, makeCatalog, stillClock, syncAll } from './testing/ask.ts';

const name = 'checkout.shop.svc.clusterset.local';

function setUp() {
  let wallMs = stillClock.wallMs();
  const clock: Clock = { wallMs: () => wallMs, monotonicMs: () => 1000 };
  const catalog = makeCatalog();
  addImport(catalog, 'shop/checkout', { ips: ['243.0.0.7'], ports: ['http:80'] });
  syncAll(catalog);
  const exchange = {
    ask: async ({ message }: { message: Uint8Array }) => {
      const { questions } = packet.decode(Buffer.from(message));
      return packet.encode({ type: 'response', questions, answers: [] });
    },
    close: () => {},
  };
  const config = { forward: { nameservers: ['192.0.2.53'] }, cookieSecret: 'a secret' };
  const asker = new Asker(catalog, { world: { clock }, exchange, config });
  const pass = (ms: number) => {
    wallMs += ms;
  };
  return { asker, pass };
}

const withOption = (code: number, data: Buffer, rest: AskOptions = {}): AskOptions => ({
  ...rest,
  edns: { options: [{ code, data }] },
});

function optionOf(reply: DecodedPacket, code: number): Buffer | undefined {
  const opt = reply.additionals?.find(({ type }) => type === 'OPT') as { options: { code: number; data: Buffer }[] };
  return opt.options.find((option) => option.code === code)?.data;
}

describe('dns cookies', () => {
  const client = Buffer.from('0123456789abcdef', 'hex');
  const cookieOf = async (asker: Asker, sent: Buffer, options?: AskOptions, question = `${name} A`) =>
    optionOf(await asker.askPacket(question, withOption(10, sent, options)), 10)!;

  test("a client's cookie -> back with one of ours; ours sent back -> the same, until it is old", async () => {
    const { asker, pass } = setUp();
    const first = await cookieOf(asker, client);
    expect([first.length, first.subarray(0, 8)]).toEqual([24, client]);
    pass(60_000);
    expect(await cookieOf(asker, first)).toEqual(first);
    pass(1_800_000);
    expect(await cookieOf(asker, first)).not.toEqual(first);
  });

  test('somebody else sends it, or it is spoiled -> another one', async () => {
    const { asker } = setUp();
    const first = await cookieOf(asker, client);
    expect(await cookieOf(asker, first, { address: '127.0.0.9' })).not.toEqual(first);
    const spoiled = Buffer.from(first);
    spoiled[23]! ^= 1;
    expect(await cookieOf(asker, spoiled)).toEqual(first);
  });

  test('a forwarded name -> the cookie comes with the answer too', async () => {
    const { asker } = setUp();
    expect(await cookieOf(asker, client, {}, 'www.example.com A')).toHaveLength(24);
  });

  test.each([0, 7, 9, 15, 41])('a cookie of %d bytes -> FORMERR', async (length) => {
    const { asker } = setUp();
    expect(await asker.ask(`${name} A`, withOption(10, Buffer.alloc(length)))).toBe('FORMERR');
  });

  test('no question but a cookie -> NOERROR and one of ours; ours, spoiled -> BADCOOKIE and a good one (RFC 7873 section 5.4)', async () => {
    const { asker } = setUp();
    const alone = async (sent: Buffer) => {
      const edns = { name: '.', type: 'OPT', udpPayloadSize: 1232, flags: 0, options: [{ code: 10, data: sent }] };
      const reply = (await asker.send(packet.encode({ questions: [], additionals: [edns as never] })))!;
      const decoded = packet.decode(reply);
      const opt = decoded.additionals![0] as unknown as { extendedRcode: number };
      return [(opt.extendedRcode << 4) | (reply[3]! & 15), decoded.questions, optionOf(decoded, 10)] as const;
    };
    const first = await cookieOf(asker, client);
    expect(await alone(client)).toEqual([0, [], first]);
    expect(await alone(first)).toEqual([0, [], first]);
    const spoiled = Buffer.from(first);
    spoiled[23]! ^= 1;
    expect(await alone(spoiled)).toEqual([23, [], first]);
    expect((await alone(client.subarray(1)))[0]).toBe(1);
  });

  test('no question and no cookie -> FORMERR', async () => {
    const { asker } = setUp();
    expect((await asker.send(packet.encode({ questions: [] })))![3]! & 15).toBe(1);
  });

  test('no cookie sent -> none given', async () => {
    const { asker } = setUp();
    expect(optionOf(await asker.askPacket(`${name} A`, { edns: true }), 10)).toBeUndefined();
  });
});

describe('dns over connections', () => {
  const ask = (transport: Transport, code: number, question = `${name} A`) =>
    setUp().asker.askPacket(question, withOption(code, Buffer.alloc(0), { transport }));

  test.each([
    ['tcp', '0064'],
    ['tls', '0064'],
    ['udp', undefined],
  ] as const)('keepalive asked for over %s -> %s tenths of a second', async (transport, expected) => {
    expect(optionOf(await ask(transport, 11), 11)?.toString('hex')).toBe(expected);
  });

  test.each([`${name} A`, `x${name} A`, `_http._tcp.${name} SRV`, 'www.example.com A'])(
    'padding asked for over TLS: %s -> 468 bytes; over TCP -> none',
    async (question) => {
      const options = withOption(12, Buffer.alloc(0), { transport: 'tls' as const });
      const { asker } = setUp();
      expect((await asker.send(encodeQuestion(question, options), options))?.length).toBe(468);
      expect(optionOf(await ask('tcp', 12, question), 12)).toBeUndefined();
    },
  );

  test.each([
    ['tls://192.0.2.53', [128, 128]],
    ['192.0.2.53', [40, 54]],
  ])('a question passed on to %s -> of %o bytes: padded only over TLS (RFC 8467)', async (nameserver, lengths) => {
    const sent: number[] = [];
    const ask = async ({ message }: { message: Uint8Array }) => {
      const { questions } = packet.decode(Buffer.from(message));
      if (questions?.[0]?.type === 'A') sent.push(message.length);
      return packet.encode({ type: 'response', questions, answers: [] });
    };
    const config = { forward: { nameservers: [nameserver] } };
    const asker = new Asker(makeCatalog(), { exchange: { ask, close: () => {} }, config });
    for (const question of ['example.com A', 'a-longer-name.example.com A']) await asker.ask(question);
    expect(sent).toEqual(lengths);
  });
});

test('extended error: longer words than are sent, in any script -> cut between two characters', () => {
  const query = new Query();
  query.read(encodeQuestion(`${name} A`, { edns: true }));
  for (const ahead of ['', 'a', 'ab']) {
    const answer = new Answer();
    answer.begin(query);
    answer.fail(2, 22, ahead + '漢'.repeat(100));
    const reply = packet.decode(Buffer.from(answer.bytes.subarray(0, answer.finish())));
    const text = optionOf(reply, 15)!.subarray(2).toString();
    expect(text).toMatch(/^a?b?漢+$/);
    expect(Buffer.byteLength(text)).toBeGreaterThan(197);
  }
});

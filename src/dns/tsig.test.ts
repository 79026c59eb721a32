// Signed queries (RFC 8945): a good signature is trusted, a bad one refused.

import packet from 'dns-packet';
import { describe, expect, test } from 'vitest';
import { signMessage, type TsigKey, verifyMessage } from '../base/dns/tsig.ts';
import { encodeSource } from './source/source-option.ts';
import { Asker, addImport, encodeQuestion, extendedErrorOf, makeCatalog, stillClock, syncAll } from './testing/ask.ts';

const key: TsigKey = {
  name: 'peer-key',
  algorithm: 'hmac-sha256',
  secret: Buffer.from('0123456789abcdef0123456789abcdef'),
};
const timeSeconds = stillClock.wallMs() / 1000;
const question = 'checkout.shop.svc.clusterset.local A';

function makeAsker() {
  const catalog = makeCatalog();
  addImport(catalog, 'shop/checkout', { ips: ['243.0.0.7'] });
  syncAll(catalog);
  return new Asker(catalog, { config: { keys: [key] } });
}

describe('dns TSIG', () => {
  const asker = makeAsker();
  const query = encodeQuestion(question, { edns: true });

  test('a good signature -> answered, and the answer is signed with the same key', async () => {
    const { message, mac } = signMessage(query, key, { timeSeconds });
    const reply = (await asker.send(message))!;
    const verdict = verifyMessage(reply, { keys: [key], timeSeconds, requestMac: mac });
    expect(verdict.kind).toBe('good');
    expect(packet.decode(reply).answers).toMatchObject([{ data: '243.0.0.7' }]);
    // The signature belongs to this exchange: without the request's it does not fit.
    expect(verifyMessage(reply, { keys: [key], timeSeconds })).toMatchObject({ kind: 'bad', error: 16 });
  });

  test.each([
    ['another secret', { ...key, secret: Buffer.from('wrong') }, timeSeconds, /^18 the signature does not fit/, 16],
    ['an unknown key', { ...key, name: 'nobody' }, timeSeconds, /^18 key nobody .* not known/, 17],
    ['a clock an hour off', key, timeSeconds - 3600, /^18 signed -3600 s off/, 18],
  ])('%s -> NOTAUTH with an extended error and the TSIG error', async (_what, signer, signedAt, why, tsigError) => {
    const { message } = signMessage(query, signer, { timeSeconds: signedAt });
    const reply = (await asker.send(message))!;
    expect(reply[3]! & 15).toBe(9);
    expect(packet.decode(reply).answers).toEqual([]);
    expect(extendedErrorOf(packet.decode(reply))).toMatch(why);
    // The error stands before the last two bytes, the length of nothing.
    expect(reply.readUInt16BE(reply.length - 4)).toBe(tsigError);
  });

  test('changed on the way -> NOTAUTH', async () => {
    const { message } = signMessage(query, key, { timeSeconds });
    message[13]! ^= 1;
    expect((await asker.send(message))![3]! & 15).toBe(9);
  });

  test.each([
    ['hmac-sha256', 'peer-key'],
    ['hmac-sha512', `${'a'.repeat(60)}.${'b'.repeat(40)}.example`],
  ] as const)(
    'signed with %s over UDP with small room -> never more than the client can take',
    async (algorithm, keyName) => {
      const catalog = makeCatalog();
      for (let count = 1; count <= 40; count++) {
        const endpoints = Array.from({ length: count }, (_, i) => `10.1.0.${i}`);
        addImport(catalog, `shop/n${count}`, { type: 'Headless', slices: [{ cluster: 'east', endpoints }] });
      }
      syncAll(catalog);
      const signer = { ...key, algorithm, name: keyName };
      const small = new Asker(catalog, { config: { keys: [signer] } });
      const seen = new Set<boolean>();
      for (let count = 1; count <= 40; count++) {
        for (const udpSize of [0, 512, 600, 1232]) {
          const edns = udpSize === 0 ? {} : { edns: { udpSize } };
          const unsigned = encodeQuestion(`n${count}.shop.svc.clusterset.local A`, edns);
          const { message, mac } = signMessage(unsigned, signer, { timeSeconds });
          const reply = (await small.send(message))!;
          expect(reply.length).toBeLessThanOrEqual(udpSize || 512);
          expect(verifyMessage(reply, { keys: [signer], timeSeconds, requestMac: mac }).kind).toBe('good');
          seen.add(packet.decode(reply).flag_tc === true);
        }
      }
      expect(seen).toEqual(new Set([true, false]));
    },
  );

  test('a TSIG that is not the last record -> FORMERR', async () => {
    const { message } = signMessage(query, key, { timeSeconds });
    const spoiled = Buffer.concat([message, Buffer.from([0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0])]);
    spoiled.writeUInt16BE(spoiled.readUInt16BE(10) + 1, 10);
    expect((await asker.send(spoiled))![3]! & 15).toBe(1);
  });

  test('who signs may say which cluster asks; who does not may not', async () => {
    const asked: Uint8Array[] = [];
    const catalog = makeCatalog({ cluster: { id: 'west' } });
    syncAll(catalog);
    const resolver = new Asker(catalog, {
      config: { keys: [key] },
      stubZones: [{ zone: 'federation', nameservers: ['192.0.2.1'], sendsSource: true }],
      exchange: {
        ask: async ({ message }) => {
          asked.push(message);
          throw new Error('nobody there');
        },
        close: () => {},
      },
    });
    const source = Buffer.from(encodeSource({ cluster: 'east', hops: 0 }));
    const plain = encodeQuestion('a.federation A', { edns: { options: [{ code: 65001, data: source }] } });
    await resolver.send(plain);
    await resolver.send(signMessage(plain, key, { timeSeconds }).message);
    const texts = asked.map((message) => Buffer.from(message).toString('latin1'));
    expect(texts[0]).toContain('west');
    expect(texts.at(-1)).toContain('east');
  });
});

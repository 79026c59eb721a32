// Stub zones: the servers of a zone, and what they are told of the asker.

import { describe, expect, test } from 'vitest';
import { decodeSource, encodeSource } from './source/source-option.ts';
import { type AskerOptions, extendedErrorOf } from './testing/ask.ts';
import { answering, refusing, setUpForwarding, threeAddresses } from './testing/edge/test-net.ts';

describe('dns stub zones', () => {
  const federation = {
    zone: 'myfederation.svc.federation',
    nameservers: ['192.0.2.1', '192.0.2.2:5353'],
    sendsSource: true,
  };
  const question = 'myservice.myns.myfederation.svc.federation A';
  const stub = (options: AskerOptions = {}) => setUpForwarding({ stubZones: [federation], ...options });
  const source = (text: string | ReturnType<typeof encodeSource>) => ({
    edns: { options: [{ code: 65001, data: Buffer.from(text as string) }] },
  });

  test('a name under the zone -> its servers, told which cluster asks [001-30]', async () => {
    const { net, asker } = stub();
    net.servers.set('192.0.2.1:53', answering('104.32.64.128'));
    expect(await asker.ask(question)).toBe('104.32.64.128');
    expect(net.asked).toMatchObject([
      { server: '192.0.2.1:53', source: { cluster: 'west', zone: 'w1', region: 'eu', hops: 1 } },
    ]);
  });

  test('several addresses -> in the order of the authority, each time, also from the cache [001-32]', async () => {
    const { net, asker } = stub();
    net.exchange.ask = async ({ message }) => threeAddresses(message);
    const seen = [];
    for (let i = 0; i < 4; i++) seen.push(await asker.ask(question));
    expect(new Set(seen)).toEqual(new Set(['203.0.113.1, 203.0.113.2, 203.0.113.3']));
  });

  test('what a pod says about its cluster -> dropped [001-31]', async () => {
    const { net, asker } = stub();
    net.servers.set('192.0.2.1:53', answering('104.32.64.128'));
    await asker.ask(question, source('east'));
    expect(net.asked[0]!.source).toMatchObject({ cluster: 'west' });
  });

  test('what an allowed peer says -> passed on, one hop further', async () => {
    const { net, asker } = stub({ config: { trusted: { ranges: ['127.0.0.9/32'], identities: [] } } });
    net.servers.set('192.0.2.1:53', answering('104.32.64.128'));
    await asker.ask(question, { address: '127.0.0.9', ...source(encodeSource({ cluster: 'east', hops: 2 })) });
    expect(net.asked[0]!.source).toMatchObject({ cluster: 'east', hops: 3 });
  });

  test('a query that goes round in a circle -> REFUSED with an extended error', async () => {
    const { net, asker } = stub();
    const reply = await asker.askPacket(question, source(encodeSource({ cluster: 'east', hops: 8 })));
    expect(reply.rcode).toBe('REFUSED');
    expect(extendedErrorOf(reply)).toMatch(/^0 loop/);
    expect(net.asked).toEqual([]);
  });

  test('a query of a strange way that fails -> no news to those who ask here', async () => {
    const { net, asker } = stub();
    net.servers.set('192.0.2.1:53', (query) => {
      const option = query.additionals![0]!.options.find(({ code }: { code: number }) => code === 65001);
      const { hops } = decodeSource(option.data)!;
      return hops > 7 ? { flags: 5 } : answering('104.32.64.128')(query, {} as never);
    });
    net.servers.set('192.0.2.2:5353', refusing);
    const lie = source(encodeSource({ cluster: 'east', hops: 7 }));
    expect(await asker.ask(question, lie)).toBe('REFUSED');
    const liar = asker.ask(question, lie);
    expect(await asker.ask(question)).toBe('104.32.64.128');
    await liar;
    expect(await asker.ask(question)).toBe('104.32.64.128');
  });

  test('a dead nameserver -> the second one, with its own port', async () => {
    const { net, asker } = stub();
    net.servers.set('192.0.2.2:5353', answering('104.32.64.128'));
    expect(await asker.ask(question)).toBe('104.32.64.128');
  });

  test('two zones fit -> the longer one wins; taken away -> the shorter; both gone -> upstream', async () => {
    const { net, asker } = setUpForwarding();
    const zones = [
      { zone: 'federation', nameservers: ['192.0.2.1'], sendsSource: true },
      { zone: 'myfederation.svc.federation', nameservers: ['192.0.2.2'], sendsSource: true },
    ];
    net.servers.set('192.0.2.1:53', answering('1.1.1.1', 0));
    net.servers.set('192.0.2.2:53', answering('2.2.2.2', 0));
    net.servers.set('192.0.2.53:53', answering('3.3.3.3', 0));
    asker.service.stubZones.replace(zones);
    expect(await asker.ask(question)).toBe('2.2.2.2');
    asker.service.stubZones.replace(zones.slice(0, 1));
    expect(await asker.ask(question)).toBe('1.1.1.1');
    asker.service.stubZones.replace([]);
    expect(await asker.ask(question)).toBe('3.3.3.3');
  });

  test('an answer of a federation with a long TTL -> asked for again soon, so that failing over does not wait', async () => {
    const { net, asker } = stub();
    net.servers.set('192.0.2.1:53', answering('104.32.64.128', 300));
    expect(await asker.askPacket(question)).toMatchObject({ answers: [{ ttl: 300 }] });
    expect(await asker.ask(question)).toBe('104.32.64.128');
    expect(net.asked).toHaveLength(1);
    net.servers.set('192.0.2.1:53', answering('104.32.64.130', 300));
    net.nowMs += 600;
    expect(await asker.ask(question)).toBe('104.32.64.130');
  });

  test('a federation that is a black hole -> cluster.local is answered without waiting [001-42]', async () => {
    const { net, asker } = stub();
    net.servers.set('192.0.2.1:53', () => new Promise(() => {}));
    void asker.ask(question);
    const startedMs = net.nowMs;
    expect(await asker.ask('web.shop.svc.cluster.local A')).toBe('10.96.0.7');
    expect(net.nowMs).toBe(startedMs);
  });
});

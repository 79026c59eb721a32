// The cache of forwarded answers: how long one is kept, when it is asked for again, and old ones.

import packet from 'dns-packet';
import { describe, expect, test } from 'vitest';
import { describeAnswer, encodeQuestion, extendedErrorOf } from './testing/ask.ts';
import { answering, refusing, replyTo, setUpForwarding, soa, threeAddresses } from './testing/edge/test-net.ts';

describe('dns cache', () => {
  test("a name that is nobody's here -> asked upstream once, then from the cache with its TTL counted down", async () => {
    const { net, asker } = setUpForwarding({}, ['192.0.2.53']);
    net.servers.set('192.0.2.53:53', answering('203.0.113.1'));
    const first = await asker.askPacket('www.example.com A');
    expect(first).toMatchObject({ flag_ra: true, flag_aa: false, answers: [{ data: '203.0.113.1', ttl: 60 }] });
    net.nowMs += 10_500;
    const second = await asker.askPacket('WWW.example.com A');
    expect(second).toMatchObject({ questions: [{ name: 'WWW.example.com' }], answers: [{ ttl: 50 }] });
    expect(net.asked).toHaveLength(1);
    net.nowMs += 50_000;
    await asker.ask('www.example.com A');
    expect(net.asked).toHaveLength(2);
  });

  test("negative answers -> kept for the smaller of the SOA's TTL and its minimum (RFC 2308)", async () => {
    const { net, asker } = setUpForwarding({}, ['192.0.2.53']);
    net.servers.set('192.0.2.53:53', () => ({ flags: 3, authorities: [soa] }));
    expect(await asker.ask('no.example.com A')).toBe('NXDOMAIN');
    net.nowMs += 14_000;
    expect(await asker.ask('no.example.com A')).toBe('NXDOMAIN');
    expect(net.asked).toHaveLength(1);
    net.nowMs += 7000;
    await asker.ask('no.example.com A');
    expect(net.asked).toHaveLength(2);
  });

  test("negative answers from the cache -> clients are never told more than is left of the SOA's minimum", async () => {
    const { net, asker } = setUpForwarding({}, ['192.0.2.53']);
    net.servers.set('192.0.2.53:53', (query) => ({
      flags: query.questions![0]!.name.startsWith('no.') ? 3 : 0,
      authorities: [soa],
    }));
    const ttlOf = async (name: string) => (await asker.askPacket(`${name}.example.com A`)).authorities?.[0]?.ttl;
    for (const name of ['no', 'empty']) expect(await ttlOf(name)).toBe(20);
    net.nowMs += 15_000;
    for (const name of ['no', 'empty']) expect(await ttlOf(name)).toBe(5);
    net.nowMs += 10_000;
    net.servers.delete('192.0.2.53:53');
    // Stale, and no longer than the zone allows.
    for (const name of ['no', 'empty']) expect(await ttlOf(name)).toBe(20);
  });

  test('several addresses -> each stands first in turn, from the cache too', async () => {
    const { net, asker } = setUpForwarding({}, ['192.0.2.53']);
    net.exchange.ask = async ({ message }) => threeAddresses(message);
    const seen: string[] = [];
    for (let i = 0; i < 4; i++) seen.push(await asker.ask('www.example.com A'));
    expect(seen.map((text) => text.replaceAll('203.0.113.', ''))).toEqual(['1, 2, 3', '2, 3, 1', '3, 1, 2', '1, 2, 3']);
  });

  test('a client that asks for both kinds of addresses -> each address stands first in turn, though both kinds end alike', async () => {
    const { net, asker } = setUpForwarding({}, ['192.0.2.53']);
    // As behind DNS64 (RFC 6052): the last bytes of an IPv6 address are the IPv4 address.
    net.exchange.ask = async ({ message }) => {
      const isV6 = packet.decode(Buffer.from(message)).questions![0]!.type === 'AAAA';
      const head = isV6 ? `c00c001c0001000000780010${'0064ff9b'.padEnd(24, '0')}` : 'c00c00010001000000780004';
      return replyTo(message, [`${head}cb007101`, `${head}cb007102`]);
    };
    const first = { A: new Set<unknown>(), AAAA: new Set<unknown>() };
    for (let i = 0; i < 4; i++)
      for (const type of ['A', 'AAAA'] as const)
        first[type].add((await asker.askPacket(`www.example.com ${type}`)).answers![0]!.data);
    expect([first.A.size, first.AAAA.size]).toEqual([2, 2]);
  });

  test('failures -> each remembered for five seconds, one after another (RFC 9520)', async () => {
    const { net, asker } = setUpForwarding({}, ['192.0.2.53']);
    net.servers.set('192.0.2.53:53', refusing);
    for (let round = 1; round <= 3; round++) {
      for (let i = 0; i < 4; i++) expect(await asker.ask('www.example.com A')).toBe('REFUSED');
      await net.sleep(4700);
      await asker.ask('www.example.com A');
      expect(net.asked).toHaveLength(round);
      await net.sleep(400);
    }
  });

  test('all servers dead and an old answer -> served as stale with extended error 3 and TTL 30 (RFC 8767)', async () => {
    const { net, asker } = setUpForwarding();
    net.servers.set('192.0.2.53:53', answering('203.0.113.1', 5));
    await asker.ask('www.example.com A');
    net.servers.clear();
    net.nowMs += 60_000;
    const stale = await asker.askPacket('www.example.com A', { edns: true });
    expect(stale).toMatchObject({ answers: [{ data: '203.0.113.1', ttl: 30 }] });
    expect(extendedErrorOf(stale)).toBe('3');
    const startedMs = net.nowMs;
    expect(await asker.ask('www.example.com A')).toBe('203.0.113.1');
    expect(net.nowMs).toBe(startedMs);
    await net.sleep(6000);
    net.nowMs += 3_700_000;
    expect(await asker.ask('www.example.com A')).toBe('SERVFAIL');
  });

  test('old answers of several names, asked for at the same time -> each name gets its own', async () => {
    const { net, asker } = setUpForwarding();
    const names = ['a.example.com', 'b.example.com', 'c.example.com'];
    const addressOf = (name: string) => `203.0.113.${name.charCodeAt(0)}`;
    net.servers.set('192.0.2.53:53', (query) => {
      const { name } = query.questions![0]!;
      return answering(addressOf(name), 5)(query, {} as never);
    });
    for (const name of names) await asker.ask(`${name} A`);
    // There, but without an answer to any name.
    net.servers.set('192.0.2.53:53', (query) => (query.questions![0]!.name === '.' ? {} : 'silence'));
    net.nowMs += 60_000;
    expect(await Promise.all(names.map((name) => asker.ask(`${name} A`)))).toEqual(names.map(addressOf));
  });

  test.each([
    [4_294_967_295, 0],
    [2_147_483_648, 0],
    [2_147_483_647, 86_400],
    [60, 60],
  ])('a TTL of %d upstream -> %d (RFC 2181 section 8, a day at most)', async (ttl, expected) => {
    const { net, asker } = setUpForwarding({}, ['192.0.2.53']);
    net.servers.set('192.0.2.53:53', answering('203.0.113.1', ttl));
    expect(await asker.askPacket('www.example.com A')).toMatchObject({ answers: [{ ttl: expected }] });
  });

  test("no data behind an alias -> kept no longer than the SOA's minimum", async () => {
    const { net, asker } = setUpForwarding({}, ['192.0.2.53']);
    const alias = { type: 'CNAME', name: 'www.example.com', ttl: 3000, data: 'web.example.com' } as never;
    net.servers.set('192.0.2.53:53', () => ({ answers: [alias], authorities: [soa] }));
    await asker.ask('www.example.com AAAA');
    await net.sleep(14_000);
    await asker.ask('www.example.com AAAA');
    expect(net.asked).toHaveLength(1);
    await net.sleep(7000);
    await asker.ask('www.example.com AAAA');
    expect(net.asked).toHaveLength(2);
  });

  test('an answer larger than the client takes -> TC, and whole over TCP from the cache', async () => {
    const { net, asker } = setUpForwarding();
    const many = Array.from({ length: 60 }, (_, i) => ({
      type: 'A',
      name: 'big.example.com',
      ttl: 60,
      data: `203.0.113.${i}`,
    }));
    net.servers.set('192.0.2.53:53', () => ({ answers: many }));
    const udp = await asker.askPacket('big.example.com A');
    expect([udp.flag_tc, udp.answers?.length]).toEqual([true, 15]);
    expect((await asker.ask('big.example.com A', { transport: 'tcp' })).split(', ')).toHaveLength(60);
    expect(net.asked).toHaveLength(1);
  });

  test('the cache -> keeps types, and those who want signatures, apart', async () => {
    const { net, asker } = setUpForwarding({}, ['192.0.2.53']);
    const wanted: boolean[] = [];
    net.servers.set('192.0.2.53:53', (query) => {
      const { type, name } = query.questions![0]!;
      wanted.push((query.additionals![0] as { flag_do?: boolean }).flag_do === true);
      const data = type === 'AAAA' ? '2001:db8::1' : `203.0.113.${wanted.length}`;
      return { answers: [{ type, name, ttl: 60, class: 'IN', data } as never] };
    });
    const ask = async (type: string, isDnssecOk: boolean) => {
      const question = encodeQuestion(`www.example.com ${type}`, { edns: true });
      // The DO bit stands in the third byte of the TTL of the OPT, four from the end.
      if (isDnssecOk) question[question.length - 4]! |= 0x80;
      return describeAnswer(packet.decode((await asker.send(question))!));
    };
    for (let round = 0; round < 2; round++) {
      expect(await ask('A', false)).toBe('203.0.113.1');
      expect(await ask('AAAA', false)).toBe('2001:db8::1');
      expect(await ask('A', true)).toBe('203.0.113.3');
    }
    expect(wanted).toEqual([false, false, true]);
  });

  test('asked for near the end of its time -> answered at once, asked for again, and new when its time is over', async () => {
    const { net, asker } = setUpForwarding({}, ['192.0.2.53']);
    net.servers.set('192.0.2.53:53', answering('203.0.113.1', 60));
    await asker.ask('www.example.com A');
    await net.sleep(44_000);
    await asker.ask('www.example.com A');
    expect(net.asked).toHaveLength(1);
    net.servers.set('192.0.2.53:53', answering('203.0.113.2', 60));
    await net.sleep(13_000);
    expect(await asker.askPacket('www.example.com A')).toMatchObject({ answers: [{ data: '203.0.113.1', ttl: 3 }] });
    await net.sleep(1000);
    expect(await asker.askPacket('www.example.com A')).toMatchObject({ answers: [{ data: '203.0.113.2', ttl: 59 }] });
    await net.sleep(10_000);
    expect(await asker.ask('www.example.com A')).toBe('203.0.113.2');
    expect(net.asked).toHaveLength(2);
  });

  test('asked for again early in vain -> not a second time, and the answer holds to its end', async () => {
    const { net, asker } = setUpForwarding({}, ['192.0.2.53']);
    net.servers.set('192.0.2.53:53', answering('203.0.113.1', 600));
    await asker.ask('www.example.com A');
    net.servers.set('192.0.2.53:53', refusing);
    await net.sleep(570_000);
    for (let i = 0; i < 5; i++) {
      expect(await asker.askPacket('www.example.com A', { edns: true })).toMatchObject({
        answers: [{ ttl: 30 - 5 * i }],
      });
      await net.sleep(5_000);
    }
    expect(net.asked).toHaveLength(2);
    await net.sleep(10_000);
    const stale = await asker.askPacket('www.example.com A', { edns: true });
    expect([extendedErrorOf(stale), net.asked.length]).toEqual(['3', 3]);
  });

  test('asked for again early without any reply -> after its time the old answer is given as soon as without that', async () => {
    const { net, asker } = setUpForwarding({}, ['192.0.2.53']);
    net.servers.set('192.0.2.53:53', answering('203.0.113.1', 60));
    await asker.ask('www.example.com A');
    // There, but without an answer to any name.
    net.servers.set('192.0.2.53:53', (query) => (query.questions![0]!.name === '.' ? {} : 'silence'));
    net.nowMs += 59_900;
    await asker.ask('www.example.com A');
    net.nowMs += 200;
    const startedMs = net.nowMs;
    expect(await asker.ask('www.example.com A')).toBe('203.0.113.1');
    expect(net.nowMs - startedMs).toBeLessThanOrEqual(1800);
  });

  test('answers that came together -> asked for again one after another, not all at once', async () => {
    const { net, asker } = setUpForwarding({}, ['192.0.2.53']);
    net.servers.set('192.0.2.53:53', answering('203.0.113.1', 1000));
    const names = Array.from({ length: 200 }, (_, i) => `n${i}.example.com A`);
    for (const name of names) await asker.ask(name);
    const askedAgain: number[] = [];
    for (const seconds of [745, 800, 850, 900, 955]) {
      net.nowMs = 1000 + 1000 * seconds;
      for (const name of names) await asker.ask(name);
      askedAgain.push(net.asked.length - 200);
    }
    expect([askedAgain[0], askedAgain.at(-1)]).toEqual([0, 200]);
    for (const [i, count] of askedAgain.slice(1).entries()) expect(count - askedAgain[i]!).toBeGreaterThan(20);
  });

  test('many names near the end of their time -> a bounded number is asked for again at the same time', async () => {
    const { net, asker } = setUpForwarding({}, ['192.0.2.53']);
    net.servers.set('192.0.2.53:53', answering('203.0.113.1', 60));
    const names = Array.from({ length: 1200 }, (_, i) => `n${i}.example.com A`);
    for (const name of names) await asker.ask(name);
    net.servers.set('192.0.2.53:53', () => new Promise(() => {}));
    net.nowMs += 57_500;
    for (const name of names) expect(await asker.ask(name)).toBe('203.0.113.1');
    expect(net.asked).toHaveLength(1200 + 1000);
  });
});

// Forwarding: which servers are asked, how long is waited, and what is passed on.

import type { Packet } from 'dns-packet';
import { describe, expect, test } from 'vitest';
import { parseServerAddress } from './config/config.ts';
import { describeAnswer, extendedErrorOf } from './testing/ask.ts';
import { answering, refusing, setUpForwarding, soa } from './testing/edge/test-net.ts';

describe('dns forwarding', () => {
  test('our own zones -> never asked upstream [001-45]', async () => {
    const { net, asker } = setUpForwarding();
    expect(await asker.ask('web.shop.svc.cluster.local A')).toBe('10.96.0.7');
    expect(await asker.ask('no.shop.svc.cluster.local A')).toBe('NXDOMAIN');
    expect(net.asked).toEqual([]);
  });

  test.each([
    [
      'the answer and what its alias leads to',
      ['www.example.com CNAME cdn.net', 'cdn.net A 203.0.113.1'],
      'cdn.net, 203.0.113.1',
    ],
    ['an address for another name', ['www.example.com A 203.0.113.1', 'bank.example A 6.6.6.6'], '203.0.113.1'],
    [
      'an alias into our own zone, with an address',
      ['www.example.com CNAME web.shop.svc.cluster.local', 'web.shop.svc.cluster.local A 6.6.6.6'],
      'web.shop.svc.cluster.local',
    ],
    ["an address of a stub zone's", ['www.example.com CNAME a.fed.test', 'a.fed.test A 6.6.6.6'], 'a.fed.test'],
    ['an address that an alias does not lead to', ['www.example.com CNAME cdn.net', 'cdn.org A 6.6.6.6'], 'cdn.net'],
  ])('%s -> only what belongs to the question is passed on', async (_what, records, expected) => {
    const stubZones = [{ zone: 'fed.test', nameservers: ['192.0.2.99'], sendsSource: false }];
    const { net, asker } = setUpForwarding({ stubZones }, ['192.0.2.53']);
    const answers = records.map((text) => {
      const [name, type, data] = text.split(' ') as [string, string, string];
      return { name, type, data, ttl: 60, class: 'IN' };
    });
    const others = ['authorities', 'additionals'].map((section) => [
      section,
      [{ name: 'web.shop.svc.cluster.local', type: 'A', data: '6.6.6.6', ttl: 60 }],
    ]);
    net.servers.set('192.0.2.53:53', () => ({ answers, ...Object.fromEntries(others) }));
    for (const round of ['asked', 'cached']) {
      const reply = await asker.askPacket('www.example.com A');
      expect([round, describeAnswer(reply)]).toEqual([round, expected]);
      expect([reply.authorities, reply.additionals]).toEqual([[], []]);
    }
  });

  test.each([
    ['our own zone', 'web.shop.svc.cluster.local'],
    ['another stub zone', 'a.other.test'],
  ])('a server of a stub zone gives an address in %s -> left out', async (_what, alias) => {
    const stubZones = [
      { zone: 'fed.test', nameservers: ['192.0.2.99'], sendsSource: false },
      { zone: 'other.test', nameservers: ['192.0.2.98'], sendsSource: false },
    ];
    const { net, asker } = setUpForwarding({ stubZones }, ['192.0.2.53']);
    const answers = [
      { name: 'a.fed.test', type: 'CNAME', data: alias, ttl: 60, class: 'IN' },
      { name: alias, type: 'A', data: '6.6.6.6', ttl: 60, class: 'IN' },
    ];
    net.servers.set('192.0.2.99:53', () => ({ answers }));
    expect(await asker.ask('a.fed.test A')).toBe(alias);
  });

  test('addresses of the hosts that an answer names -> stay beside it', async () => {
    const { net, asker } = setUpForwarding({}, ['192.0.2.53']);
    const srv = { name: '_x._tcp.example.com', type: 'SRV', ttl: 60, data: { port: 1, target: 'h.example.com' } };
    const at = (name: string) => ({ name, type: 'A', ttl: 60, data: '203.0.113.1' });
    net.servers.set('192.0.2.53:53', () => ({
      answers: [srv],
      authorities: [{ ...soa, name: 'com' }],
      additionals: [at('h.example.com'), at('i.example.com')],
    }));
    const reply = await asker.askPacket('_x._tcp.example.com SRV');
    expect(reply.additionals?.map((record) => record.name)).toEqual(['h.example.com']);
    expect(reply.authorities?.map((record) => record.name)).toEqual(['com']);
  });

  test('a dead server -> the next is asked within a second; later it is skipped, and asked again when it is back', async () => {
    const { net, asker } = setUpForwarding({}, ['192.0.2.53', '192.0.2.54']);
    net.servers.set('192.0.2.54:53', answering('203.0.113.1', 0));
    for (let i = 0; i < 6; i++) {
      const startedMs = net.nowMs;
      expect(await asker.ask(`a${i}.example.com A`)).toBe('203.0.113.1');
      expect(net.nowMs - startedMs).toBeLessThan(1000);
    }
    await net.sleep(1500);
    const deadCalls = () => net.asked.filter(({ server }) => server === '192.0.2.53:53').length;
    const before = deadCalls();
    const startedMs = net.nowMs;
    for (let i = 0; i < 6; i++) expect(await asker.ask(`b${i}.example.com A`)).toBe('203.0.113.1');
    expect(net.nowMs).toBe(startedMs);
    expect(deadCalls()).toBe(before);
    net.servers.set('192.0.2.53:53', answering('203.0.113.2', 0));
    await net.sleep(20_000);
    await asker.ask('c.example.com A');
    await net.sleep(1);
    for (let i = 0; i < 4; i++) await asker.ask(`d${i}.example.com A`);
    expect(deadCalls()).toBe(before + 2);
  });

  test('all servers dead -> SERVFAIL with an extended error; asked all the same, but not waited for so long', async () => {
    const { net, asker } = setUpForwarding();
    const first = await asker.askPacket('www.example.com A', { edns: true });
    expect(first.rcode).toBe('SERVFAIL');
    expect(extendedErrorOf(first)).toMatch(/^22 no answer from 192.0.2.53:53, 192.0.2.54:53/);
    const startedMs = net.nowMs;
    expect(await asker.ask('x.example.com A')).toBe('SERVFAIL');
    expect(net.nowMs - startedMs).toBeLessThanOrEqual(1500);
    net.servers.set('192.0.2.54:53', answering('203.0.113.1'));
    expect(await asker.ask('y.example.com A')).toBe('203.0.113.1');
  });

  test('names that nobody upstream resolves in time -> they fail, all others are resolved on without waiting', async () => {
    const { net, asker } = setUpForwarding({}, ['192.0.2.53']);
    net.servers.set('192.0.2.53:53', (query) =>
      query.questions![0]!.name.startsWith('slow') ? 'silence' : answering('203.0.113.1')(query, {} as never),
    );
    for (let round = 0; round < 3; round++) {
      const slow = Array.from({ length: 5 }, (_, i) => asker.ask(`slow-${round}-${i}.example.com A`));
      for (const waitMs of [0, 500, 1000, 1500, 1000]) {
        await net.sleep(waitMs);
        const startedMs = net.nowMs;
        expect(await asker.ask(`fast-${startedMs}.example.com A`)).toBe('203.0.113.1');
        expect(net.nowMs).toBe(startedMs);
      }
      expect(new Set(await Promise.all(slow))).toEqual(new Set(['SERVFAIL']));
    }
    expect(net.probed.length).toBeGreaterThan(0);
  });

  test('an answer that takes 3 s, or whose question is lost once -> waited for, asked again', async () => {
    const { net, asker } = setUpForwarding({}, ['192.0.2.53']);
    net.servers.set('192.0.2.53:53', async (query) => {
      if (query.questions![0]!.name !== '.') await net.sleep(3000);
      return answering('203.0.113.1')(query, {} as never) as Packet;
    });
    expect(await asker.ask('late.example.com A')).toBe('203.0.113.1');
    let count = 0;
    net.servers.set('192.0.2.53:53', (query) => {
      const isProbe = query.questions![0]!.name === '.';
      return isProbe || ++count > 1 ? answering('203.0.113.2')(query, {} as never) : 'silence';
    });
    const startedMs = net.nowMs;
    expect(await asker.ask('lost.example.com A')).toBe('203.0.113.2');
    expect(net.nowMs - startedMs).toBe(2000);
  });

  test('other times in the configuration -> kept', async () => {
    const forwardTimes = { totalMs: 900, resendMs: 300 };
    const stubZones = [{ zone: 'fed.svc.federation', nameservers: ['192.0.2.1'], sendsSource: true }];
    const { net, asker } = setUpForwarding({ config: { forwardTimes }, stubZones }, ['192.0.2.53']);
    const startedMs = net.nowMs;
    expect(await asker.ask('www.example.com A')).toBe('SERVFAIL');
    expect(net.nowMs - startedMs).toBe(900);
    expect(net.asked).toHaveLength(3);
    const againMs = net.nowMs;
    expect(await asker.ask('web.shop.fed.svc.federation A')).toBe('SERVFAIL');
    expect(net.nowMs - againMs).toBe(900);
  });

  test('one client with more questions than may wait -> told so; others are served', async () => {
    const { net, asker } = setUpForwarding({ config: { waitingMax: 1250 } }, ['192.0.2.53']);
    net.servers.set('192.0.2.53:53', (query) =>
      query.questions![0]!.name.startsWith('slow') ? 'silence' : answering('203.0.113.1')(query, {} as never),
    );
    // A single source may take four fifths of 1,250 places.
    const slow = Array.from({ length: 1000 }, (_, i) => asker.ask(`slow-${i}.example.com A`));
    const tooMany = await asker.askPacket('www.example.com A', { edns: true });
    expect(extendedErrorOf(tooMany)).toBe('0 too many questions of this client are waiting for other servers');
    expect(await asker.ask('www.example.com A', { address: '127.0.0.2' })).toBe('203.0.113.1');
    await Promise.all(slow);
    expect(await asker.ask('again.example.com A')).toBe('203.0.113.1');
  });

  test('the same questions from many sources -> shared evenly, and bounded in total', async () => {
    const { net, asker } = setUpForwarding({ config: { waitingMax: 1000 } }, ['192.0.2.53']);
    net.servers.set('192.0.2.53:53', () => 'silence');
    const waiting = new Map<string, number>();
    const asking: Promise<void>[] = [];
    for (let i = 0; i < 400; i++) {
      for (const address of ['127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.0.4']) {
        const startedMs = net.nowMs;
        const asked = asker.ask(`slow-${i}-${address}.example.com A`, { address });
        asking.push(
          asked.then(() => {
            if (net.nowMs > startedMs) waiting.set(address, (waiting.get(address) ?? 0) + 1);
          }),
        );
      }
    }
    await Promise.all(asking);
    const counts = [...waiting.values()];
    expect(counts.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(1000);
    expect(Math.min(...counts)).toBeGreaterThan(200);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(2);
  });

  test('all servers dead and many questions -> some wait in case one is back, the others fail at once', async () => {
    const { net, asker } = setUpForwarding({}, ['192.0.2.53']);
    await asker.ask('first.example.com A');
    let atOnce = 0;
    const startedMs = net.nowMs;
    const asking = Array.from({ length: 300 }, async (_, i) => {
      expect(await asker.ask(`n${i}.example.com A`)).toBe('SERVFAIL');
      if (net.nowMs === startedMs) atOnce += 1;
    });
    await Promise.all(asking);
    expect(atOnce).toBe(100);
    net.servers.set('192.0.2.53:53', answering('203.0.113.1'));
    expect(await asker.ask('back.example.com A')).toBe('203.0.113.1');
  });

  test('a truncated reply -> asked again over TCP', async () => {
    const { net, asker } = setUpForwarding();
    net.servers.set('192.0.2.53:53', (query, { isTcp }) =>
      isTcp ? (answering('203.0.113.1')(query, {} as never) as Packet) : { flags: 0x0200 },
    );
    expect(await asker.ask('big.example.com A')).toBe('203.0.113.1');
    expect(net.asked.map(({ isTcp }) => isTcp)).toEqual([false, true]);
  });

  test('a truncated reply of a server whose TCP is blocked -> TC is passed on, and the server counts as alive', async () => {
    const { net, asker } = setUpForwarding({}, ['192.0.2.53']);
    net.servers.set('192.0.2.53:53', (query, { isTcp }) => {
      if (isTcp) return 'silence';
      const isBig = query.questions![0]!.name.startsWith('big');
      return isBig ? { flags: 0x0200 } : answering('203.0.113.1')(query, {} as never);
    });
    for (let i = 0; i < 3; i++) expect(await asker.ask(`big-${i}.example.com A`)).toBe('TRUNCATED');
    const startedMs = net.nowMs;
    expect(await asker.ask('big-2.example.com A')).toBe('TRUNCATED');
    expect(await asker.ask('www.example.com A')).toBe('203.0.113.1');
    expect(net.nowMs).toBe(startedMs);
  });

  test('a reply of nothing but a header, to a question with EDNS -> asked again without', async () => {
    const { net, asker } = setUpForwarding({}, ['192.0.2.53']);
    for (const [name, flags] of [
      ['formerr', 1],
      ['notimp', 4],
    ] as const) {
      net.servers.set('192.0.2.53:53', (query) =>
        query.additionals!.length > 0 ? { flags, questions: [] } : answering('203.0.113.1')(query, {} as never),
      );
      expect(await asker.ask(`${name}.example.com A`)).toBe('203.0.113.1');
    }
    net.servers.set('192.0.2.53:53', () => ({ flags: 5, questions: [] }));
    expect(await asker.ask('refused.example.com A')).toBe('REFUSED');
  });

  test.each([1, 4])(
    'a server answers with rcode %d, with OPT and without -> the next one gets a whole question',
    async (flags) => {
      const { net, asker } = setUpForwarding();
      const seen: unknown[] = [];
      net.servers.set('192.0.2.53:53', () => ({ flags }));
      net.servers.set('192.0.2.54:53', (query, { message }) => {
        seen.push([query.additionals?.map(({ type }) => type), message.length]);
        return answering('203.0.113.1')(query, {} as never);
      });
      for (const name of ['a', 'b']) expect(await asker.ask(`${name}.example.com A`)).toBe('203.0.113.1');
      const whole = [['OPT'], 12 + 'a.example.com'.length + 2 + 4 + 11];
      for (const one of seen) expect(one).toEqual(whole);
    },
  );

  test('an answer that the upstream has validated -> AD for those who ask for it; CD is passed on and kept apart', async () => {
    const { net, asker } = setUpForwarding({}, ['192.0.2.53']);
    const disabled: boolean[] = [];
    net.servers.set('192.0.2.53:53', (query) => {
      disabled.push(query.flag_cd === true);
      const reply = answering('203.0.113.1')(query, {} as never) as Packet;
      return { ...reply, flags: query.flag_cd ? 0 : 0x0020 };
    });
    const ad = async (flags: number) => (await asker.askPacket('www.example.com A', { flags })).flag_ad;
    expect(await ad(0x0120)).toBe(true);
    expect(await ad(0x0100)).toBe(false);
    expect(await ad(0x0130)).toBe(false);
    expect(disabled).toEqual([false, true]);
  });

  test('a server that refuses -> the next one is asked; all refuse -> REFUSED is passed on', async () => {
    const { net, asker } = setUpForwarding();
    net.servers.set('192.0.2.53:53', refusing);
    net.servers.set('192.0.2.54:53', answering('203.0.113.1'));
    expect(await asker.ask('www.example.com A')).toBe('203.0.113.1');
    net.servers.set('192.0.2.54:53', refusing);
    expect(await asker.ask('other.example.com A')).toBe('REFUSED');
  });

  test('equal questions that wait together -> asked once', async () => {
    const { net, asker } = setUpForwarding();
    let release = () => {};
    const gate = new Promise<void>((resolve) => (release = resolve));
    net.servers.set('192.0.2.53:53', async (query) => {
      await gate;
      return answering('203.0.113.1')(query, {} as never) as Packet;
    });
    const asking = ['a', 'b', 'c'].map(() => asker.ask('www.example.com A'));
    release();
    expect(await Promise.all(asking)).toEqual(['203.0.113.1', '203.0.113.1', '203.0.113.1']);
    expect(net.asked).toHaveLength(1);
  });

  test("random case in questions, if wanted -> the answer comes back in the client's own case", async () => {
    const { net, asker } = setUpForwarding({
      config: { forward: { nameservers: ['192.0.2.53'], hasRandomCase: true } },
    });
    net.servers.set('192.0.2.53:53', answering('203.0.113.1'));
    const reply = await asker.askPacket('www.a-rather-long-name.example.com A');
    expect(net.asked[0]!.question).not.toBe('www.a-rather-long-name.example.com A');
    expect(net.asked[0]!.question.toLowerCase()).toBe('www.a-rather-long-name.example.com a');
    expect(reply.questions![0]!.name).toBe('www.a-rather-long-name.example.com');
  });

  test('no recursion desired -> refused', async () => {
    const { asker } = setUpForwarding();
    expect(await asker.ask('www.example.com A', { flags: 0 })).toBe('REFUSED');
  });

  test('EDNS options of a client -> go no further than this server [001-31]', async () => {
    const { net, asker } = setUpForwarding();
    net.servers.set('192.0.2.53:53', (query) => {
      expect(query.additionals![0]!.options).toEqual([]);
      return answering('203.0.113.1')(query, {} as never) as Packet;
    });
    const options = [
      { code: 65001, data: Buffer.from('east') },
      { code: 8, data: Buffer.from([0, 1, 24, 0, 10, 0, 0]) },
    ];
    expect(await asker.ask('www.example.com A', { edns: { options } })).toBe('203.0.113.1');
  });
});

test.each([
  ['10.0.0.1', { host: '10.0.0.1', port: 53 }],
  ['10.0.0.1:5353', { host: '10.0.0.1', port: 5353 }],
  ['fd00::1', { host: 'fd00::1', port: 53 }],
  ['[fd00::1]:5353', { host: 'fd00::1', port: 5353 }],
])('nameserver %s -> %o', (text, expected) => {
  expect(parseServerAddress(text)).toEqual(expected);
});

test.each(['example.com', '10.0.0.1:0', '10.0.0.1:99999', '[fd00::1', ''])('nameserver %o -> refused', (text) => {
  expect(() => parseServerAddress(text)).toThrow(/nameserver/);
});

// Forwarding, its cache and stub zones, on a virtual clock and a network of functions.

import type { Packet } from 'dns-packet';
import packet from 'dns-packet';
import { describe, expect, test } from 'vitest';
import type { Clock, Random, Timers } from '../base/world.ts';
import { parseServerAddress } from './config/config.ts';
import { decodeSource, encodeSource } from './source/source-option.ts';
import {
  Asker,
  type AskerOptions,
  addService,
  describeAnswer,
  encodeQuestion,
  extendedErrorOf,
  makeCatalog,
  syncAll,
} from './testing/ask.ts';
import type { Exchange, ExchangeOptions } from './upstream/exchange.ts';

type Upstream = (query: Packet, options: ExchangeOptions) => Partial<Packet> | 'silence' | Promise<Partial<Packet>>;

/** A clock that runs on to the next timer when nothing else is left to do, and servers that are functions. */
class TestNet {
  nowMs = 1000;
  readonly asked: { server: string; question: string; isTcp: boolean; source: ReturnType<typeof decodeSource> }[] = [];
  /** Servers that were only asked whether they are there. */
  readonly probed: string[] = [];
  readonly servers = new Map<string, Upstream>();
  readonly clock: Clock = { wallMs: () => this.nowMs, monotonicMs: () => this.nowMs };
  readonly #timers = new Set<{ readonly atMs: number; readonly run: () => void }>();
  readonly timers: Timers = {
    after: (delayMs, run) => {
      const timer = { atMs: this.nowMs + delayMs, run };
      this.#timers.add(timer);
      setImmediate(() => this.#fireNext());
      return { cancel: () => this.#timers.delete(timer) };
    },
  };
  #seed = 7;
  readonly random: Random = {
    float: () => (this.#seed = (this.#seed * 16807) % 2147483647) / 2147483647,
    bytes: (count) => Uint8Array.from({ length: count }, () => Math.floor(this.random.float() * 256)),
    uuid: () => 'uuid',
  };

  #fireNext(): void {
    const [next] = [...this.#timers].sort((a, b) => a.atMs - b.atMs);
    if (!next) return;
    this.#timers.delete(next);
    this.nowMs = Math.max(this.nowMs, next.atMs);
    next.run();
    if (this.#timers.size > 0) setImmediate(() => this.#fireNext());
  }

  readonly exchange: Exchange = {
    ask: async (options) => {
      const query = packet.decode(options.message);
      const question = query.questions![0]!;
      const server = `${options.server.host}:${options.server.port}`;
      const isProbe = question.name === '.' || question.name.includes('.portolan-loop');
      if (isProbe) this.probed.push(server);
      else {
        const option = query.additionals?.[0]?.options?.find(({ code }: { code: number }) => code === 65001);
        const source = option && decodeSource(option.data);
        this.asked.push({ server, question: `${question.name} ${question.type}`, isTcp: options.isTcp, source });
      }
      const timeout = new Promise<'silence'>((resolve) =>
        this.timers.after(options.timeoutMs, () => resolve('silence')),
      );
      const answering = (this.servers.get(server) ?? (() => 'silence'))(query, options);
      const reply = answering === 'silence' ? await timeout : await Promise.race([answering, timeout]);
      if (reply === 'silence') throw new Error('timed out');
      return packet.encode({ type: 'response', id: query.id, questions: query.questions, ...reply });
    },
    close: () => {},
  };

  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.timers.after(delayMs, resolve));
  }

  get world(): AskerOptions['world'] {
    return { clock: this.clock, timers: this.timers, random: this.random };
  }
}

function answering(data: string, ttl = 60): Upstream {
  return (query) => ({ answers: [{ type: 'A', name: query.questions![0]!.name, ttl, class: 'IN', data }] });
}

const refusing: Upstream = () => ({ flags: 5 });
const soa = {
  type: 'SOA',
  name: 'example.com',
  ttl: 300,
  data: { mname: 'a', rname: 'b', serial: 1, refresh: 1, retry: 1, expire: 1, minimum: 20 },
};

function setUp(options: AskerOptions = {}, nameservers = ['192.0.2.53', '192.0.2.54']) {
  const net = new TestNet();
  const catalog = makeCatalog({ cluster: { id: 'west', zone: 'w1', region: 'eu' } });
  addService(catalog, 'shop/web', { ips: ['10.96.0.7'] });
  syncAll(catalog);
  const config: AskerOptions['config'] = { forward: { nameservers }, ...options.config };
  const asker = new Asker(catalog, { world: net.world, exchange: net.exchange, ...options, config });
  return { net, asker, catalog };
}

/** 203.0.113.1 to 3, their owner compressed as servers do. */
function threeAddresses(message: Uint8Array): Buffer {
  const { questions } = packet.decode(Buffer.from(message));
  const head = packet.encode({ type: 'response', questions });
  head.writeUInt16BE(3, 6);
  const records = [1, 2, 3].map((last) => `c00c00010001000000780004cb00710${last}`);
  return Buffer.concat([head, Buffer.from(records.join(''), 'hex')]);
}

describe('dns forwarding', () => {
  test("a name that is nobody's here -> asked upstream once, then from the cache with its TTL counted down", async () => {
    const { net, asker } = setUp({}, ['192.0.2.53']);
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

  test('our own zones -> never asked upstream [001-45]', async () => {
    const { net, asker } = setUp();
    expect(await asker.ask('web.shop.svc.cluster.local A')).toBe('10.96.0.7');
    expect(await asker.ask('no.shop.svc.cluster.local A')).toBe('NXDOMAIN');
    expect(net.asked).toEqual([]);
  });

  test("negative answers -> kept for the smaller of the SOA's TTL and its minimum (RFC 2308)", async () => {
    const { net, asker } = setUp({}, ['192.0.2.53']);
    net.servers.set('192.0.2.53:53', () => ({ flags: 3, authorities: [soa] }));
    expect(await asker.ask('no.example.com A')).toBe('NXDOMAIN');
    net.nowMs += 19_000;
    expect(await asker.ask('no.example.com A')).toBe('NXDOMAIN');
    expect(net.asked).toHaveLength(1);
    net.nowMs += 2000;
    await asker.ask('no.example.com A');
    expect(net.asked).toHaveLength(2);
  });

  test("negative answers from the cache -> clients are never told more than is left of the SOA's minimum", async () => {
    const { net, asker } = setUp({}, ['192.0.2.53']);
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
    const { net, asker } = setUp({}, ['192.0.2.53']);
    net.exchange.ask = async ({ message }) => threeAddresses(message);
    const seen: string[] = [];
    for (let i = 0; i < 4; i++) seen.push(await asker.ask('www.example.com A'));
    expect(seen.map((text) => text.replaceAll('203.0.113.', ''))).toEqual(['1, 2, 3', '2, 3, 1', '3, 1, 2', '1, 2, 3']);
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
    const { net, asker } = setUp({ stubZones }, ['192.0.2.53']);
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
    const { net, asker } = setUp({ stubZones }, ['192.0.2.53']);
    const answers = [
      { name: 'a.fed.test', type: 'CNAME', data: alias, ttl: 60, class: 'IN' },
      { name: alias, type: 'A', data: '6.6.6.6', ttl: 60, class: 'IN' },
    ];
    net.servers.set('192.0.2.99:53', () => ({ answers }));
    expect(await asker.ask('a.fed.test A')).toBe(alias);
  });

  test('addresses of the hosts that an answer names -> stay beside it', async () => {
    const { net, asker } = setUp({}, ['192.0.2.53']);
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
    const { net, asker } = setUp({}, ['192.0.2.53', '192.0.2.54']);
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
    const { net, asker } = setUp();
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
    const { net, asker } = setUp({}, ['192.0.2.53']);
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
    const { net, asker } = setUp({}, ['192.0.2.53']);
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
    const { net, asker } = setUp({ config: { forwardTimes }, stubZones }, ['192.0.2.53']);
    const startedMs = net.nowMs;
    expect(await asker.ask('www.example.com A')).toBe('SERVFAIL');
    expect(net.nowMs - startedMs).toBe(900);
    expect(net.asked).toHaveLength(3);
    const againMs = net.nowMs;
    expect(await asker.ask('web.shop.fed.svc.federation A')).toBe('SERVFAIL');
    expect(net.nowMs - againMs).toBe(900);
  });

  test('one client with more questions than may wait -> told so; others are served', async () => {
    const { net, asker } = setUp({ config: { waitingMax: 1250 } }, ['192.0.2.53']);
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
    const { net, asker } = setUp({ config: { waitingMax: 1000 } }, ['192.0.2.53']);
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
    const { net, asker } = setUp({}, ['192.0.2.53']);
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

  test('failures -> each remembered for five seconds, one after another (RFC 9520)', async () => {
    const { net, asker } = setUp({}, ['192.0.2.53']);
    net.servers.set('192.0.2.53:53', refusing);
    for (let round = 1; round <= 3; round++) {
      for (let i = 0; i < 4; i++) expect(await asker.ask('www.example.com A')).toBe('REFUSED');
      expect(net.asked).toHaveLength(round);
      await net.sleep(5100);
    }
  });

  test('all servers dead and an old answer -> served as stale with extended error 3 and TTL 30 (RFC 8767)', async () => {
    const { net, asker } = setUp();
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
    const { net, asker } = setUp();
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

  test('a truncated reply -> asked again over TCP', async () => {
    const { net, asker } = setUp();
    net.servers.set('192.0.2.53:53', (query, { isTcp }) =>
      isTcp ? (answering('203.0.113.1')(query, {} as never) as Packet) : { flags: 0x0200 },
    );
    expect(await asker.ask('big.example.com A')).toBe('203.0.113.1');
    expect(net.asked.map(({ isTcp }) => isTcp)).toEqual([false, true]);
  });

  test('a truncated reply of a server whose TCP is blocked -> TC is passed on, and the server counts as alive', async () => {
    const { net, asker } = setUp({}, ['192.0.2.53']);
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
    const { net, asker } = setUp({}, ['192.0.2.53']);
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

  test.each([
    [4_294_967_295, 0],
    [2_147_483_648, 0],
    [2_147_483_647, 86_400],
    [60, 60],
  ])('a TTL of %d upstream -> %d (RFC 2181 section 8, a day at most)', async (ttl, expected) => {
    const { net, asker } = setUp({}, ['192.0.2.53']);
    net.servers.set('192.0.2.53:53', answering('203.0.113.1', ttl));
    expect(await asker.askPacket('www.example.com A')).toMatchObject({ answers: [{ ttl: expected }] });
  });

  test("no data behind an alias -> kept no longer than the SOA's minimum", async () => {
    const { net, asker } = setUp({}, ['192.0.2.53']);
    const alias = { type: 'CNAME', name: 'www.example.com', ttl: 3000, data: 'web.example.com' } as never;
    net.servers.set('192.0.2.53:53', () => ({ answers: [alias], authorities: [soa] }));
    await asker.ask('www.example.com AAAA');
    await net.sleep(19_000);
    await asker.ask('www.example.com AAAA');
    expect(net.asked).toHaveLength(1);
    await net.sleep(2000);
    await asker.ask('www.example.com AAAA');
    expect(net.asked).toHaveLength(2);
  });

  test('an answer that the upstream has validated -> AD for those who ask for it; CD is passed on and kept apart', async () => {
    const { net, asker } = setUp({}, ['192.0.2.53']);
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
    const { net, asker } = setUp();
    net.servers.set('192.0.2.53:53', refusing);
    net.servers.set('192.0.2.54:53', answering('203.0.113.1'));
    expect(await asker.ask('www.example.com A')).toBe('203.0.113.1');
    net.servers.set('192.0.2.54:53', refusing);
    expect(await asker.ask('other.example.com A')).toBe('REFUSED');
  });

  test('equal questions that wait together -> asked once', async () => {
    const { net, asker } = setUp();
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

  test('an answer larger than the client takes -> TC, and whole over TCP from the cache', async () => {
    const { net, asker } = setUp();
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

  test("random case in questions, if wanted -> the answer comes back in the client's own case", async () => {
    const { net, asker } = setUp({ config: { forward: { nameservers: ['192.0.2.53'], hasRandomCase: true } } });
    net.servers.set('192.0.2.53:53', answering('203.0.113.1'));
    const reply = await asker.askPacket('www.a-rather-long-name.example.com A');
    expect(net.asked[0]!.question).not.toBe('www.a-rather-long-name.example.com A');
    expect(net.asked[0]!.question.toLowerCase()).toBe('www.a-rather-long-name.example.com a');
    expect(reply.questions![0]!.name).toBe('www.a-rather-long-name.example.com');
  });

  test('the cache -> keeps types, and those who want signatures, apart', async () => {
    const { net, asker } = setUp({}, ['192.0.2.53']);
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

  test('no recursion desired -> refused', async () => {
    const { asker } = setUp();
    expect(await asker.ask('www.example.com A', { flags: 0 })).toBe('REFUSED');
  });

  test('EDNS options of a client -> go no further than this server [001-31]', async () => {
    const { net, asker } = setUp();
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

describe('dns stub zones', () => {
  const federation = {
    zone: 'myfederation.svc.federation',
    nameservers: ['192.0.2.1', '192.0.2.2:5353'],
    sendsSource: true,
  };
  const question = 'myservice.myns.myfederation.svc.federation A';
  const stub = (options: AskerOptions = {}) => setUp({ stubZones: [federation], ...options });
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
    const { net, asker } = setUp();
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

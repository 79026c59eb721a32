// For tests of forwarding: a resolver on a virtual clock, and servers upstream that are functions.

import type { Packet } from 'dns-packet';
import packet from 'dns-packet';
import type { Clock, Random, Timers } from '../../../base/world.ts';
import { decodeSource } from '../../source/source-option.ts';
import type { Exchange, ExchangeOptions } from '../../upstream/exchange.ts';
import { Asker, type AskerOptions, addService, makeCatalog, syncAll } from '../ask.ts';

export type Upstream = (
  query: Packet,
  options: ExchangeOptions,
) => Partial<Packet> | 'silence' | Promise<Partial<Packet>>;

/** A clock that runs on to the next timer when nothing else is left to do, and servers that are functions. */
export class TestNet {
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
      const query = packet.decode(Buffer.from(options.message));
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

export function answering(data: string, ttl = 60): Upstream {
  return (query) => ({ answers: [{ type: 'A', name: query.questions![0]!.name, ttl, class: 'IN', data }] });
}

export const refusing: Upstream = () => ({ flags: 5 });
export const soa = {
  type: 'SOA',
  name: 'example.com',
  ttl: 300,
  data: { mname: 'a', rname: 'b', serial: 1, refresh: 1, retry: 1, expire: 1, minimum: 20 },
};

export function setUpForwarding(options: AskerOptions = {}, nameservers = ['192.0.2.53', '192.0.2.54']) {
  const net = new TestNet();
  const catalog = makeCatalog({ cluster: { id: 'west', zone: 'w1', region: 'eu' } });
  addService(catalog, 'shop/web', { ips: ['10.96.0.7'] });
  syncAll(catalog);
  const config: AskerOptions['config'] = { forward: { nameservers }, ...options.config };
  const asker = new Asker(catalog, { world: net.world, exchange: net.exchange, ...options, config });
  return { net, asker, catalog };
}

/** 203.0.113.1 to 3, their owner compressed as servers do. */
export function threeAddresses(message: Uint8Array): Buffer {
  return replyTo(
    message,
    [1, 2, 3].map((last) => `c00c00010001000000780004cb00710${last}`),
  );
}

/** A reply whose answers are given as they stand in the message, in hex. */
export function replyTo(message: Uint8Array, answers: readonly string[]): Buffer {
  const { questions } = packet.decode(Buffer.from(message));
  const head = packet.encode({ type: 'response', questions });
  head.writeUInt16BE(answers.length, 6);
  return Buffer.concat([head, Buffer.from(answers.join(''), 'hex')]);
}

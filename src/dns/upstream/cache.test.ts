import packet from 'dns-packet';
import { expect, test } from 'vitest';
import { memoryBytes } from '../testing/edge/memory.ts';
import { ReplyCache } from './cache.ts';
import { failureOf, type Reply, readReply } from './reply.ts';

const reply: Reply = { ...failureOf(0, -1, ''), bytes: new Uint8Array(100), recordsEnd: 100, ttlSeconds: 60 };

test('reply cache: full -> never larger than it may be; the oldest go, a hundredth at once', () => {
  const entryBytes = 120 + 'name-0000'.length + 37 + 100;
  const cache = new ReplyCache({ bytesMax: 1000 * entryBytes, ttlSecondsMax: 3600, staleMs: 0 });
  const name = (i: number) => `name-${String(i).padStart(4, '0')}`;
  for (let i = 0; i < 1000; i++) cache.put(name(i), reply, 0);
  expect(cache.size).toBe(1000);
  cache.put(name(1000), reply, 0);
  expect([cache.size, cache.get(name(10), 0), cache.get(name(11), 0)?.ttlSeconds]).toEqual([990, undefined, 60]);
  for (let i = 1001; i < 5000; i++) cache.put(name(i), reply, 0);
  expect(cache.size).toBeLessThanOrEqual(1000);
  expect(cache.get(name(4999), 0)?.ttlSeconds).toBe(60);
});

test('reply cache: a client asks for more names than fit -> the process grows by what the cache may hold, not by a multiple', () => {
  const bytesMax = 8 << 20;
  const before = memoryBytes();
  const cache = new ReplyCache({ bytesMax, ttlSecondsMax: 3600, staleMs: 0 });
  for (let i = 0; i < 100_000; i++) {
    const name = `n${i}.example.com`;
    const answer = { type: 'A', name, ttl: 60, data: '192.0.2.1' } as const;
    // As they come from a socket, each in a buffer of its own.
    const received = Buffer.allocUnsafeSlow(80);
    received.set(packet.encode({ type: 'response', questions: [{ type: 'A', name }], answers: [answer] }));
    cache.put(name, readReply(received)!, 0);
  }
  const grown = memoryBytes() - before;
  expect(cache.size).toBeGreaterThan(20_000);
  expect(grown).toBeGreaterThan(0.5 * bytesMax);
  expect(grown).toBeLessThan(1.4 * bytesMax);
});

// Mutated packets: whatever arrives, there is an answer that a second opinion can read, or silence, and never a fault.

import packet from 'dns-packet';
import { expect, test } from 'vitest';
import { memoryBytes } from './testing/edge/memory.ts';
import { runFuzz } from './testing/fuzz.ts';

/** Ten million, with memory watched all the way, are `npm run chaos:dns`. */
const count = 50_000;
const growthBytesMax = 8 << 20;
const isReadable = (bytes: Buffer) => packet.decode(bytes) !== undefined;

test(`dns: ${count} mutated packets -> FORMERR, an answer or silence, no fault`, { timeout: 60_000 }, async () => {
  const result = await runFuzz({ count, seed: 4711, isReadable });
  expect(result.faults).toEqual([]);
  expect(result.answered).toBeGreaterThan(count / 10);
  expect(result.silent).toBeGreaterThan(0);
  expect(result.byRcode.get(1)).toBeGreaterThan(0);
  expect(result.byRcode.get(0)).toBeGreaterThan(0);
});

test('dns: mutated packets, round after round -> memory stays flat', { timeout: 60_000 }, async () => {
  await runFuzz({ count: 20_000, seed: 1, isReadable });
  const before = memoryBytes();
  for (let seed = 2; seed < 5; seed++) await runFuzz({ count: 10_000, seed, isReadable });
  expect(memoryBytes() - before).toBeLessThan(growthBytesMax);
});

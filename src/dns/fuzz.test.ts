// Mutated packets: whatever arrives, there is an answer that a second opinion can read, or silence, and never a fault.

import packet from 'dns-packet';
import { expect, test } from 'vitest';
import { runFuzz } from './testing/fuzz.ts';

const count = Number(process.env['DNS_FUZZ_PACKETS'] ?? 50_000);

test(`dns: ${count} mutated packets -> FORMERR, an answer or silence, no fault`, { timeout: 3_600_000 }, async () => {
  const result = await runFuzz({ count, seed: 4711, isReadable: (bytes) => packet.decode(bytes) !== undefined });
  expect(result.faults).toEqual([]);
  expect(result.answered).toBeGreaterThan(count / 10);
  expect(result.silent).toBeGreaterThan(0);
  expect(result.byRcode.get(1)).toBeGreaterThan(0);
  expect(result.byRcode.get(0)).toBeGreaterThan(0);
});

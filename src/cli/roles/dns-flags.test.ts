// Flags of the resolver that become numbers.

import { expect, test } from 'vitest';
import { cacheOf } from './dns-flags.ts';

test('dns flags: the largest cache -> so many bytes', () => {
  const flags = { cacheSize: '4096', cacheTtlMax: '60', cacheStale: '30' };
  expect(cacheOf(flags)).toEqual({ bytesMax: 4096 * 1024 * 1024, ttlSecondsMax: 60, staleMs: 30_000 });
  expect(() => cacheOf({ ...flags, cacheSize: '4097' })).toThrow('--cache-size 4097: want a number from 0 to 4096');
});

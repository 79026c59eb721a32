import { expect, test } from 'vitest';
import { BoundedCache } from './bounded-cache.ts';

test('cache: full -> what was not asked for longest is forgotten', () => {
  const cache = new BoundedCache<number>(2);
  cache.set('a', 1);
  cache.set('b', 2);
  expect(cache.get('a')).toBe(1);
  cache.set('c', 3);
  expect([cache.get('a'), cache.get('b'), cache.get('c'), cache.size]).toEqual([1, undefined, 3, 2]);
  cache.delete('a');
  expect([cache.get('a'), cache.size]).toEqual([undefined, 1]);
});

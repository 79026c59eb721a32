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

test('cache: many entries, full -> a hundredth goes at once, the oldest first', () => {
  const cache = new BoundedCache<number>(1000);
  for (let i = 0; i <= 1000; i++) cache.set(`${i}`, i);
  expect([cache.size, cache.get('10'), cache.get('11')]).toEqual([990, undefined, 11]);
  for (let i = 1001; i <= 1010; i++) cache.set(`${i}`, i);
  expect([cache.size, cache.get('12')]).toEqual([1000, 12]);
});

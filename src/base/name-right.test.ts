import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compareRights, type NameRight } from './name-right.ts';

const claim = (key: string, sinceMs: number, more: Partial<NameRight> = {}): NameRight => ({ key, sinceMs, ...more });

test.each<[string, NameRight, NameRight]>([
  ['the older', claim('z', 1), claim('a', 2)],
  ['of one age -> the first by name', claim('z', 1, { name: 'a' }), claim('a', 1, { name: 'b' })],
  ['of one age and name -> the first by key', claim('a', 1, { name: 'x' }), claim('b', 1, { name: 'x' })],
  ['settled before -> goes before an older one', claim('z', 9, { isSettled: true }), claim('a', 1)],
  ['both settled -> the older', claim('z', 1, { isSettled: true }), claim('a', 2, { isSettled: true })],
])('right to a name: %s', (_what, first, second) => {
  expect(compareRights(first, second)).toBeLessThan(0);
  expect(compareRights(second, first)).toBeGreaterThan(0);
});

test('right to a name: any order of the claims -> the same holder', () => {
  const right = fc.record({
    isSettled: fc.boolean(),
    sinceMs: fc.integer({ min: 0, max: 3 }),
    name: fc.constantFrom('', 'a', 'b'),
    key: fc.string({ minLength: 1, maxLength: 2 }),
  });
  fc.assert(
    fc.property(fc.uniqueArray(right, { selector: ({ key }) => key, minLength: 1, maxLength: 8 }), (claims) => {
      expect(claims.toReversed().sort(compareRights)).toEqual(claims.toSorted(compareRights));
    }),
  );
});

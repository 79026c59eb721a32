import fc from 'fast-check';
import { expect, test } from 'vitest';
import { shown } from './walk.ts';

test('shown: any value -> its JSON, whole or the first 1024 characters of it', () => {
  const long = fc.string({ minLength: 900, maxLength: 1200, unit: 'grapheme' });
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 4 }),
    fc.array(fc.jsonValue(), { minLength: 50, maxLength: 200 }),
    fc.dictionary(fc.string(), long, { maxKeys: 3 }),
    fc.array(long, { maxLength: 3 }),
  );
  fc.assert(
    fc.property(value, (any) => {
      const text = JSON.stringify(any);
      const isCut = typeof any === 'object' && any !== null && text.length > 1024;
      if (typeof any !== 'string') expect(shown(any)).toEqual(isCut ? `${text.slice(0, 1024)}...` : any);
    }),
    { numRuns: 300 },
  );
});

test('shown: a large value -> only its beginning is read', () => {
  let reads = 0;
  const item = {
    get a() {
      reads++;
      return 'x'.repeat(100);
    },
  };
  shown(Array(1000).fill(item));
  expect(reads).toBeLessThan(20);
});

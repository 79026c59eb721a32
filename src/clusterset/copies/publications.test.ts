import { expect, test } from 'vitest';
import { Publications } from './publications.ts';

test('publications: set, set to the same, changed, taken away -> told at each change and at no other time', () => {
  const publications = new Publications();
  const told: string[] = [];
  publications.onChange((key) => told.push(`${key} ${publications.get(key)?.kind}`));
  const pending = () => ({ kind: 'pending', message: 'nothing to publish' }) as const;
  publications.set('shop/a', undefined);
  publications.set('shop/a', pending());
  publications.set('shop/a', pending());
  publications.set('shop/a', { kind: 'failed', message: 'not written' });
  publications.set('shop/a', undefined);
  expect(told).toEqual(['shop/a pending', 'shop/a failed', 'shop/a undefined']);
});

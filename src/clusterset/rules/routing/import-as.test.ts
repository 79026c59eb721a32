import { expect, test } from 'vitest';
import { importAsProblem, nameHere, sourceOfImport } from './import-as.ts';

const service = { namespace: 'shop', name: 'checkout' };

test.each<[string | null | undefined, string]>([
  [undefined, 'shop/checkout'],
  [null, 'shop/checkout'],
  ['pay', 'shop/pay'],
  ['bank/pay', 'bank/pay'],
  ['bank/*', 'bank/checkout'],
])('import as: %j -> %s', (importAs, expected) => {
  expect(importAsProblem(importAs)).toBeUndefined();
  const { namespace, name } = nameHere(importAs, service);
  expect(`${namespace}/${name}`).toBe(expected);
});

test.each(['', '*', '/pay', 'bank/', 'a/b/c', 'Pay', 'bank/Pay', '9pay', 'pay.', '-pay', `${'a'.repeat(64)}`, '*/pay'])(
  'import as: %j -> no name, and the service keeps its own',
  (importAs) => {
    expect(importAsProblem(importAs)).toMatch(/is neither NAME nor/);
    expect(nameHere(importAs, service)).toBe(service);
  },
);

test('import as: an annotation that names no service -> the import is of its own name', () => {
  const metadata = { namespace: 'bank', name: 'pay', annotations: { 'portolan.dev/imported-from': 7 } } as never;
  expect(sourceOfImport({ metadata })).toBe('bank/pay');
});

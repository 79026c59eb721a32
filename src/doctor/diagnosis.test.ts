import { describe, expect, test } from 'vitest';
import { withNames } from './diagnosis.ts';

describe('next steps', () => {
  test.each([
    [
      'portolan explain NAMESPACE/NAME shows it',
      'ServiceExport shop/checkout',
      'portolan explain shop/checkout shows it',
    ],
    [
      'portolan peer status NAME; then portolan peer retry NAME.',
      'Peer portolan-system/acme',
      'portolan peer status acme; then portolan peer retry acme.',
    ],
    [
      'portolan dig NAME explains',
      'checkout.shop.svc.clusterset.local (shop/checkout) at dns on n1',
      'portolan dig checkout.shop.svc.clusterset.local explains',
    ],
    [
      'portolan test connectivity NAMESPACE/NAME',
      'shop/checkout from proxy on n1',
      'portolan test connectivity shop/checkout',
    ],
    ['portolan explain NAMESPACE/NAME', 'broker', 'portolan explain NAMESPACE/NAME'],
    ['kubectl -n NAMESPACE describe x NAME', 'ServiceImport shop/cart', 'kubectl -n shop describe x cart'],
    ['portolan broker accept CLUSTER', 'cluster east', 'portolan broker accept east'],
    ['portolan broker accept CLUSTER', 'source ranges', 'portolan broker accept CLUSTER'],
  ])('%s about %s -> %s', (fix, subject, expected) =>
    expect(withNames(fix, { subject, message: 'other/one: why' })).toBe(expected),
  );

  test('about several objects -> with the names of the first', () => {
    const group = { subject: '2 ServiceImports', message: 'shop/cart, shop/db: NotCarried: nothing serves other/one' };
    expect(withNames('kubectl -n NAMESPACE describe x NAME', group)).toBe('kubectl -n shop describe x cart');
    expect(withNames('explain NAMESPACE/NAME', { ...group, message: 'no shop/cart' })).toBe('explain NAMESPACE/NAME');
  });
});

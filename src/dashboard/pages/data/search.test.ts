import { expect, test } from 'vitest';
import { findAll } from './search.ts';

const searched = {
  services: [
    { key: 'shop/checkout', ips: ['243.0.0.1'] },
    { key: 'bank/west-gate', ips: [] },
  ],
  clusters: [{ id: 'west' }, { id: 'northwest' }],
  codes: [{ code: 'PTL0302', title: 'exports are in conflict' }],
  views: [['/', 'Overview'] as const, ['/what-if', 'What if'] as const],
};
const find = (text: string) => findAll(text, searched).map(({ path }) => path);

test('search: nothing typed -> the views', () => {
  expect(find('')).toEqual(['/', '/what-if']);
});

test('search: a service, its name, its address, a cluster, a code, words of a code, a view -> found, beginnings first', () => {
  expect(find('shop/ch')).toEqual(['/services/shop/checkout']);
  expect(find('CHECKOUT')).toEqual(['/services/shop/checkout']);
  expect(find('243.0.0')[0]).toBe('/services/shop/checkout');
  expect(find('west')).toEqual(['/?cluster=west', '/services/bank/west-gate', '/?cluster=northwest']);
  expect(find('ptl03')).toEqual(['/codes/PTL0302']);
  expect(find('conflict')).toEqual(['/codes/PTL0302']);
  expect(find('what')).toEqual(['/what-if']);
});

test('search: a name of DNS -> may be asked; markup and patterns are plain text', () => {
  expect(find('cart.shop.svc.clusterset.local')).toEqual(['/ask?name=cart.shop.svc.clusterset.local']);
  expect(find('<b>(.*')).toEqual([]);
});

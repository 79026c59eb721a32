import { expect, test } from 'vitest';
import { Totals } from './totals.ts';

const owners = {
  serviceAt: (address: string) => (address.startsWith('243.') ? `shop/${address.split('.').pop()}` : undefined),
  ownerOf: (service: string, endpoint: string) => ({
    ...{ service, cluster: endpoint === '10.2.0.2 8080' ? 'west' : '', way: 'direct' as const },
  }),
};

test('totals: sums by service and cluster; an address of no import is left out', () => {
  const totals = new Totals();
  const look = (tried: number) => new Map([['243.0.0.1 10.2.0.2 8080', { tried, answered: 1, refused: 0, reset: 0 }]]);
  totals.count(look(2), owners, 0);
  totals.count(look(3), owners, 500);
  totals.count(new Map([['10.0.0.1 10.2.0.2 8080', { tried: 9 }]]), owners, 500);
  expect(totals.rows()).toEqual([{ service: 'shop/1', cluster: 'west', tried: 5, answered: 2, refused: 0, reset: 0 }]);
});

test('totals: more pairs than there is room for -> the rest is summed, nothing is lost', () => {
  const totals = new Totals(2);
  for (const host of [1, 2, 3, 4, 1]) totals.add(`shop/${host}`, 'west', { tried: 1 });
  expect(totals.rows().map(({ service, tried }) => `${service} ${tried}`)).toEqual(['shop/1 2', 'shop/2 1', 'other 2']);
});

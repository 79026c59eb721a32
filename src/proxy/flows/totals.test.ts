import { expect, test } from 'vitest';
import { type FlowOwner, FlowOwners } from './owners.ts';
import { Totals } from './totals.ts';

const place = { cluster: 'west', region: 'eu', zone: 'eu-1' };
const owners = {
  serviceAt: (address: string) => (address.startsWith('243.') ? `shop/${address.split('.').pop()}` : undefined),
  ownerOf: (service: string, endpoint: string): FlowOwner => ({
    ...(endpoint === '10.2.0.2 8080' ? place : { cluster: '', region: '', zone: '' }),
    ...{ service, way: 'direct' },
  }),
};
const none = { tried: 0, answered: 0, refused: 0, reset: 0, sent: 0, received: 0 };

test('totals: connections and bytes -> sums by service and cluster, bytes by place; an address of no import is left out', () => {
  const totals = new Totals();
  const look = (tried: number) => new Map([['243.0.0.1 10.2.0.2 8080', { tried, answered: 1, refused: 0, reset: 0 }]]);
  totals.count(look(2), owners, 0);
  totals.count(look(3), owners, 500);
  totals.count(new Map([['10.0.0.1 10.2.0.2 8080', { tried: 9 }]]), owners, 500);
  totals.count(new Map([['243.0.0.1 10.2.0.2 8080 1', { sent: 60, received: 500 }]]), owners, 500);
  totals.count(new Map([['243.0.0.2 10.2.0.2 8080 2', { sent: 1, received: 2 }]]), owners, 500);
  expect(totals.rows()).toEqual([
    { ...none, service: 'shop/1', cluster: 'west', tried: 5, answered: 2, sent: 60, received: 500 },
    { ...none, service: 'shop/2', cluster: 'west', sent: 1, received: 2 },
  ]);
  expect(totals.places()).toEqual([{ ...place, sent: 61, received: 502 }]);
});

test('totals: more pairs than there is room for -> the rest is summed, nothing is lost', () => {
  const totals = new Totals({ rowsMax: 2, placesMax: 1 });
  for (const host of [1, 2, 3, 4, 1])
    totals.add(`shop/${host}`, { ...place, zone: `eu-${host}` }, { tried: 1, sent: 9 });
  expect(totals.rows().map(({ service, tried }) => `${service} ${tried}`)).toEqual(['shop/1 2', 'shop/2 1', 'other 2']);
  expect(totals.places().map(({ cluster, zone, sent }) => `${cluster} ${zone} ${sent}`)).toEqual([
    'west eu-1 18',
    'other  27',
  ]);
});

test('totals: bytes that the kernel had no room for -> a row of their own', () => {
  const totals = new Totals();
  totals.count(new Map([['no-room', { sent: 7, received: 8 }]]), owners, 0);
  expect(totals.rows()).toEqual([{ ...none, service: 'other', cluster: '', sent: 7, received: 8 }]);
});

test('owners: an endpoint has gone -> bytes of connections that are still open are those of its cluster', () => {
  const backend = { address: '10.2.0.2', port: 8080, cluster: 'west' };
  let backends = [backend];
  const state = {
    addresses: {},
    view: { locality: { clusters: new Map([['west', { region: 'eu', zone: 'eu-2' }]]) } },
    choiceOf: () => ({ ports: [{ backends }] }),
  };
  const known = new FlowOwners(state as never);
  const found = { service: 'shop/1', cluster: 'west', region: 'eu', zone: 'eu-2', way: 'direct' };
  expect(known.ownerOf('shop/1', '10.2.0.2 8080', 0)).toEqual(found);
  backends = [];
  expect(known.ownerOf('shop/1', '10.2.0.2 8080', 100_000)).toEqual(found);
  backends = [{ ...backend, address: '10.2.0.3' }];
  expect(known.ownerOf('shop/1', '10.2.0.3 8080', 110_000)).toMatchObject({ cluster: 'west' });
  expect(known.ownerOf('shop/1', '10.9.0.1 8080', 110_000)).toMatchObject({ cluster: '' });
});

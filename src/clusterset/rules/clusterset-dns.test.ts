import { expect, test } from 'vitest';
import { type AddressPlan, readAddressPlan } from './address-plan.ts';
import { dnsOptionsManifest, readDnsOptions } from './clusterset-dns.ts';
import { unknownLocality } from './locality.ts';

const options = { zone: 'corp.example', ttlSeconds: 30, clusterNames: 'Served' } as const;
const defaults = { zone: 'clusterset.local', ttlSeconds: 5, clusterNames: 'Hidden' };

test('options of DNS: written and read -> the same', () => {
  expect(readDnsOptions(dnsOptionsManifest(options).object)).toEqual(options);
  const hidden = { ...options, clusterNames: 'Hidden' } as const;
  expect(readDnsOptions(dnsOptionsManifest(hidden).object)).toEqual(hidden);
});

test.each([
  [undefined],
  [{}],
  [{ zone: '', ttlSeconds: '', clusterNames: '' }],
  [{ ttlSeconds: '100000', clusterNames: 'served' }],
  [{ ttlSeconds: '-5' }],
])('options of DNS: %j -> the defaults', (data) => expect(readDnsOptions({ data })).toEqual(defaults));

test('options of DNS: with the addressPlan of the set -> in the same ConfigMap, elsewhere on demand', () => {
  const addressPlan: AddressPlan = {
    federationZones: ['world.federation'],
    authorities: { world: 'UEVN' },
    ranges: { clusterSet: ['243.0.0.0/12'], peers: ['241.0.0.0/12'], external: ['242.0.0.0/8'] },
  };
  const { object: written } = dnsOptionsManifest(options, {
    locality: unknownLocality,
    addressPlan,
    namespace: 'other',
  });
  expect(written.metadata).toMatchObject({ name: 'portolan-clusterset-dns', namespace: 'other' });
  expect(readAddressPlan(written)).toEqual(addressPlan);
  expect(readAddressPlan(dnsOptionsManifest(options).object)).toBeUndefined();
});

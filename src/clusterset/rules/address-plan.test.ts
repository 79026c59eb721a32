import { expect, test } from 'vitest';
import type { ServiceImport } from '../kinds/service-import.ts';
import { type AddressPlan, hasAddressIn, readAddressPlan, withFormerRanges } from './address-plan.ts';

const importWith = (...ips: string[]): ServiceImport => ({
  apiVersion: 'multicluster.x-k8s.io/v1beta1',
  kind: 'ServiceImport',
  metadata: { name: 'checkout', namespace: 'shop' },
  spec: { type: 'ClusterSetIP', ports: [], ips },
});

test.each([
  [['243.0.0.1'], '243.0.0.0/12', true],
  [['243.16.0.1'], '243.0.0.0/12', false],
  [['10.0.0.1', 'fd70::1'], 'fd70::/64', true],
  [['no address', ''], '0.0.0.0/0', false],
  [[], '0.0.0.0/0', false],
  [['243.0.0.1'], 'no range', false],
])('plan of the set: an import with %j -> an address in %s: %s', (ips, range, expected) => {
  expect(hasAddressIn([importWith(...ips)], range)).toBe(expected);
});

test('plan of the set: imports without addresses -> none in any range', () => {
  expect(hasAddressIn([{ ...importWith(), spec: undefined } as unknown as ServiceImport], '0.0.0.0/0')).toBe(false);
});

test('plan of the set: former ranges -> after those of the set, each once', () => {
  const ranges = { clusterSet: ['243.0.0.0/12'], peers: [], external: [] };
  const plan: AddressPlan = { federationZones: [], authorities: {}, ranges };
  expect(withFormerRanges(plan, ['10.9.0.0/16', '243.0.0.0/12']).ranges).toEqual({
    ...ranges,
    clusterSet: ['243.0.0.0/12', '10.9.0.0/16'],
  });
});

test('plan of the set: hostile data -> what can be read', () => {
  const nothing = { clusterSet: [], peers: [], external: [] };
  const read = (data: Record<string, string>) => readAddressPlan({ data: { peersRanges: '', ...data } });
  expect(readAddressPlan({})).toBeUndefined();
  expect(readAddressPlan({ data: { clusterSetRanges: '243.0.0.0/12' } })).toBeUndefined();
  expect(read({})).toEqual({ federationZones: [], authorities: {}, ranges: nothing });
  expect(read({ federationZones: 'a.example,,b.example', clusterSetRanges: 'x,243.0.0.0/12' })).toMatchObject({
    federationZones: ['a.example', 'b.example'],
    ranges: { clusterSet: ['243.0.0.0/12'] },
  });
  for (const federationAuthorities of ['{', 'null', '7', '{"world":7}'])
    expect(read({ federationAuthorities })?.authorities).toEqual({});
});

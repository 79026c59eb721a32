import { expect, test } from 'vitest';
import { clusterSetSpec } from './broker-init.ts';

test('broker init: ranges of the three kinds of addresses -> each in its own field; none given -> none', () => {
  const flags = {
    clustersetRange: ['10.50.0.0/16'],
    peersRange: ['10.60.0.0/16', 'fd00:60::/64'],
    externalRange: ['10.70.0.0/16'],
  };
  expect(clusterSetSpec(flags)).toEqual({
    addressRanges: {
      clusterSet: ['10.50.0.0/16'],
      peers: ['10.60.0.0/16', 'fd00:60::/64'],
      external: ['10.70.0.0/16'],
    },
  });
  expect(clusterSetSpec({})).toEqual({});
});

test('broker init: a range for peers that is none -> refused by its flag', () => {
  expect(() => clusterSetSpec({ peersRange: ['10.60.0.0'] })).toThrow('--peers-range "10.60.0.0": not a range');
});

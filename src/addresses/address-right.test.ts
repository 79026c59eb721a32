import { describe, expect, test } from 'vitest';
import { addressProblem, addressRight, noOthers } from './address-right.ts';

const owner = 'ServiceImport/shop/checkout';
const others = { count: 5, some: ['a/a', 'b/b', 'c/c', 'd/d'] };

describe('address right', () => {
  test.each([
    ['its claim names the import', { claimedBy: owner, isAllocated: true }, undefined],
    ['its claim names it, though others name the address', { claimedBy: owner, isAllocated: false }, undefined],
    [
      'its claim names another import',
      { claimedBy: 'ServiceImport/thief/checkout', isAllocated: false },
      '243.0.0.7 belongs to ServiceImport thief/checkout, as its AddressClaim says',
    ],
    [
      'its claim names a peer service of the same name',
      { claimedBy: 'PeerService/shop/checkout', isAllocated: true },
      '243.0.0.7 belongs to PeerService shop/checkout, as its AddressClaim says',
    ],
    [
      'no claim in a range of agents',
      { claimedBy: undefined, isAllocated: true },
      '243.0.0.7 is in a range of the clusterset, and no AddressClaim gives it to this import',
    ],
    [
      'no claim elsewhere, named by others too',
      { claimedBy: undefined, isAllocated: false },
      '243.0.0.7 is in ServiceImport a/a, b/b, c/c and 2 more too, and no AddressClaim says whose it is: it is served for none',
    ],
  ])('address right: %s -> decided by the claim', (_what, facts, problem) => {
    expect(addressProblem('243.0.0.7', addressRight({ owner, ...facts }), others)).toBe(problem);
  });

  test('address right: no claim elsewhere, and one import names it -> served, as other implementations give it', () => {
    const right = addressRight({ owner, claimedBy: undefined, isAllocated: false });
    expect(addressProblem('243.0.0.7', right, noOthers)).toBeUndefined();
  });
});

import { expect, test } from 'vitest';
import { addressClaimName, addressClaimType, addressOfClaimName } from './address-claim.ts';
import { canonicalAddress, claimFor, isClaimOf } from './claim.ts';

test.each([
  ['243.0.0.7', '243.0.0.7'],
  ['fd70:6f72:74f3::7', 'fd70-6f72-74f3-0-0-0-0-7'],
  ['::1', '0-0-0-0-0-0-0-1'],
])('address claim: %s -> named %s, and back', (address, name) => {
  expect(addressClaimName(address)).toBe(name);
  expect(addressOfClaimName(name)).toBe(address);
});

test('address claim: one address written in two ways -> one name', () => {
  expect(addressClaimName('FD70:6F72:74f3:0::7')).toBe(addressClaimName('fd70:6f72:74f3::7'));
});

test.each(['checkout', 'fd70--7', 'fd70-6f72-74f3-0-0-0-0-0007', '1.2.3'])(
  'address claim: %s -> no name of an address',
  (name) => expect(addressOfClaimName(name)).toBeUndefined(),
);

test('address claim: of owners with and without a namespace -> cluster-scoped, the owner found again, no empty field', () => {
  const spaced = { kind: 'ServiceImport', namespace: 'shop', name: 'checkout' };
  const bare = { kind: 'PeerService', namespace: '', name: 'checkout' };
  expect(addressClaimType.isNamespaced).toBe(false);
  expect(claimFor(spaced, 'FD70::7').spec).toEqual({ address: 'fd70::7', owner: spaced });
  expect(claimFor(bare, '243.0.0.7').spec.owner).toEqual({ kind: 'PeerService', name: 'checkout' });
  expect(isClaimOf(claimFor(bare, '243.0.0.7'), bare)).toBe(true);
  expect(isClaimOf(claimFor(bare, '243.0.0.7'), spaced)).toBe(false);
  expect(canonicalAddress('nonsense')).toBe('nonsense');
});

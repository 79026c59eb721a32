import { expect, test } from 'vitest';
import { hasOtherAddress } from './other-address.ts';

test.each([
  ['the same', ['243.0.0.1'], ['243.0.0.1'], false],
  ['another one', ['243.0.0.1'], ['243.0.0.2'], true],
  ['none published', ['243.0.0.1'], undefined, false],
  ['none published of that family', ['243.0.0.1'], ['fdee::1'], false],
  ['the same, written otherwise', ['fdee::1'], ['fdee:0::1'], false],
  ['the same in one family, another one in the other', ['243.0.0.1', 'fdee::1'], ['243.0.0.1', 'fdee::2'], true],
  ['none here', [], ['243.0.0.1'], false],
  ['no list', ['243.0.0.1'], null, false],
  ['no addresses in it', ['243.0.0.1'], [7, null] as unknown as string[], false],
])('other address: %s -> told apart', (_what, ours, theirs, isOther) => {
  expect(hasOtherAddress(ours, theirs)).toBe(isOther);
});

test('other address: asked for one family -> the other one does not matter', () => {
  const [ours, theirs] = [
    ['243.0.0.1', 'fdee::1'],
    ['243.0.0.1', 'fdee::2'],
  ];
  expect(['IPv4', 'IPv6'].map((family) => hasOtherAddress(ours, theirs, family))).toEqual([false, true]);
});

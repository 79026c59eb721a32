import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatAddress, parseAddress } from '../net/ip.ts';
import {
  dashedAddress,
  dashedGroups,
  decodeName,
  encodeName,
  isName,
  isWithin,
  NameEncoder,
  NameError,
  reverseName,
  tryEncodeName,
} from './name.ts';

test.each([
  ['checkout.shop.svc.clusterset.local', 'checkout.shop.svc.clusterset.local'],
  ['Checkout.SHOP.', 'checkout.shop'],
  ['.', '.'],
  ['a\\.b.c', 'a\\.b.c'],
  ['a\\032b.c', 'a\\032b.c'],
])('name %s: encoded and decoded -> %s', (text, expected) => {
  expect(decodeName(encodeName(text))).toBe(expected);
});

test.each([
  ['an empty label', 'a..b'],
  ['a label over 63 bytes', `${'a'.repeat(64)}.b`],
  ['a name over 255 bytes', Array.from({ length: 64 }, () => 'abc').join('.')],
])('name: %s -> refused', (_what, text) => {
  expect(() => encodeName(text)).toThrow(NameError);
});

test('name: the longest allowed one -> 255 bytes', () => {
  const text = [...Array.from({ length: 3 }, () => 'a'.repeat(63)), 'b'.repeat(61)].join('.');
  expect(encodeName(text)).toHaveLength(255);
});

test.each([
  ['shop.svc.cluster.local', 'cluster.local', true],
  ['cluster.local', 'cluster.local', true],
  ['mycluster.local', 'cluster.local', false],
  ['local', 'cluster.local', false],
])('name: is %s within %s -> %s', (name, zone, expected) => {
  const bytes = encodeName(name);
  expect(isWithin(bytes, bytes.length, encodeName(zone))).toBe(expected);
});

test('name: label bytes that look like the zone at no label boundary -> outside', () => {
  // The first label's text holds the zone's own bytes, its length bytes included.
  const zone = encodeName('cluster.local');
  const label = Uint8Array.from([zone.length + 1, 0x78, ...zone]);
  expect(isWithin(label, label.length, zone)).toBe(false);
});

test.each([
  ['10.2.0.7', '10.2.0.7'],
  ['fd00::1', 'fd00::1'],
  ['FD00:0:0:1:0:0:0:1', 'fd00:0:0:1::1'],
  ['::ffff:10.0.0.1', '::ffff:a00:1'],
  ['::', '::'],
  ['10.2.0', undefined],
  ['10.2.0.256', undefined],
  ['010.2.0.1', undefined],
  ['fd00::1::2', undefined],
  ['None', undefined],
  ['1:2:3:4:5:6:7:8:9', undefined],
])('address %s -> %s', (text, expected) => {
  const bytes = parseAddress(text);
  expect(bytes && formatAddress(bytes)).toBe(expected);
});

test('address: dashed and reverse names', () => {
  expect(dashedAddress(parseAddress('10.2.0.7')!)).toBe('10-2-0-7');
  expect(dashedAddress(parseAddress('fd00::7')!)).toBe('fd00--7');
  expect(dashedAddress(parseAddress('fd00::')!)).toBe('fd00--0');
  expect(dashedGroups(parseAddress('fd00::7')!)).toBe('fd00-0-0-0-0-0-0-7');
  expect(reverseName(parseAddress('10.2.0.7')!)).toBe('7.0.2.10.in-addr.arpa');
  expect(reverseName(parseAddress('fd00::7')!)).toMatch(/^7\.0\.0.*0\.0\.d\.f\.ip6\.arpa$/);
});

test('names: encoded one after the other into the same memory -> the same bytes, and the same refusals', () => {
  const encoder = new NameEncoder();
  const label = fc.stringMatching(/^[a-zA-Z0-9_-]{1,70}$/);
  const odd = fc.constantFrom('', '.', 'a..b', 'a.b.', '.a', 'a\\.b.c', 'größe.x', 'a\\046b', 'x'.repeat(64));
  const name = fc.oneof(
    { weight: 4, arbitrary: fc.array(label, { minLength: 1, maxLength: 6 }).map((labels) => labels.join('.')) },
    odd,
  );
  fc.assert(
    fc.property(name, (text) => {
      const expected = tryEncodeName(text);
      const found = encoder.tryEncode(text);
      expect(found && [...found]).toEqual(expected && [...expected]);
      expect(isName(text)).toBe(expected !== undefined);
      if (expected) expect([...encoder.encode(text)]).toEqual([...expected]);
      else expect(() => encoder.encode(text)).toThrow(NameError);
    }),
  );
});

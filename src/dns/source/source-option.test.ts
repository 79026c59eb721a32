// The option by which one server tells another who asks: its bytes, and what is made of bytes that are not ours.

import { expect, test } from 'vitest';
import { decodeSource, encodeSource } from './source-option.ts';

const bytes = (...parts: (number | string)[]) =>
  Uint8Array.from(parts.flatMap((part) => (typeof part === 'string' ? [...Buffer.from(part)] : [part])));

test('source option: cluster, zone, region and hops -> a version byte, then type, length and value of each', () => {
  const source = { cluster: 'east', zone: 'a', region: 'eu', hops: 2 };
  const encoded = encodeSource(source);
  expect(encoded).toEqual(bytes(1, 1, 4, 'east', 2, 1, 'a', 3, 2, 'eu', 4, 1, 2));
  expect(decodeSource(encoded)).toEqual(source);
});

test('source option: marks of servers that passed it on -> behind the rest, the last eight of them, and read back', () => {
  const source = { cluster: 'east', hops: 2, passed: ['0a0b0c0d', '01020304'] };
  const encoded = encodeSource(source);
  expect(encoded).toEqual(bytes(1, 1, 4, 'east', 4, 1, 2, 5, 8, 0x0a, 0x0b, 0x0c, 0x0d, 1, 2, 3, 4));
  expect(decodeSource(encoded)).toEqual(source);
  const many = Array.from({ length: 10 }, (_, i) => `0000000${i}`);
  expect(decodeSource(encodeSource({ ...source, passed: many }))?.passed).toEqual(many.slice(2));
});

test.each([
  ['a name that begins with a space', bytes(' x'), { cluster: ' x', hops: 0 }],
  ['hops without a value', bytes(1, 4, 0), { cluster: '', hops: 0 }],
  ['a mark and half of another', bytes(1, 5, 6, 1, 2, 3, 4, 5, 6), { cluster: '', hops: 0, passed: ['01020304'] }],
  ['half a mark', bytes(1, 5, 2, 1, 2), { cluster: '', hops: 0 }],
  ['a value that ends with the bytes', bytes(1, 2, 1, 'a', 1, 1, 'x'), { cluster: 'x', zone: 'a', hops: 0 }],
  ['a bare name', bytes('east'), { cluster: 'east', hops: 0 }],
  ['a bare name beyond ASCII', bytes('öst'), { cluster: 'öst', hops: 0 }],
  ['a field of a later version', bytes(1, 9, 2, 'xx', 1, 4, 'east'), { cluster: 'east', hops: 0 }],
  ['no cluster, only hops', bytes(1, 4, 1, 7), { cluster: '', hops: 7 }],
  ['nothing', bytes(), undefined],
  ['another version', bytes(2, 1, 4, 'east'), undefined],
  ['a length beyond the end', bytes(1, 1, 9, 'east'), undefined],
  ['a type without a length', bytes(1, 1), undefined],
  ['a bare name that is no UTF-8', bytes('e', 0xff), undefined],
])('source option: %s -> %o', (_what, payload, expected) => {
  expect(decodeSource(payload)).toEqual(expected);
});

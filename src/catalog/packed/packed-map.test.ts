import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hashBytes } from '../../base/dns/name.ts';
import { PackedMap, PackedReader } from './packed-map.ts';

const bytes = (text: string) => Buffer.from(text);
const text = (value: Uint8Array | undefined) => value && Buffer.from(value).toString();

test('packed map: any sequence of sets and deletes -> the same content as a Map', () => {
  const key = fc.integer({ min: 0, max: 40 }).map((n) => `key-${n}`);
  const step = fc.oneof(
    fc.record({ kind: fc.constant('set' as const), key, value: fc.string({ maxLength: 40 }) }),
    fc.record({ kind: fc.constant('delete' as const), key, value: fc.constant('') }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const packed = new PackedMap();
      const plain = new Map<string, string>();
      for (const { kind, key, value } of steps) {
        if (kind === 'set') {
          packed.set(bytes(key), bytes(value));
          plain.set(key, value);
        } else {
          expect(packed.delete(bytes(key))).toBe(plain.delete(key));
        }
      }
      expect(packed.size).toBe(plain.size);
      expect([...packed.keys()].map(text).sort()).toEqual([...plain.keys()].sort());
      for (const [key, value] of plain) expect(text(packed.get(bytes(key)))).toBe(value);
    }),
    { numRuns: 50 },
  );
});

test('packed map: grows over many generations -> every entry survives and each generation is told', () => {
  let generations = 0;
  const packed = new PackedMap({ onGeneration: () => generations++ });
  for (let i = 0; i < 20_000; i++) packed.set(bytes(`name-${i}`), bytes(`value-${i}`));
  expect(generations).toBeGreaterThan(3);
  expect(packed.size).toBe(20_000);
  for (let i = 0; i < 20_000; i += 7) expect(text(packed.get(bytes(`name-${i}`)))).toBe(`value-${i}`);
});

test('packed map: one key replaced for ever -> memory stays flat', () => {
  const packed = new PackedMap();
  for (let i = 0; i < 200_000; i++) packed.set(bytes('name'), bytes(`value-${i}`));
  expect(packed.memoryBytes).toBeLessThan(200_000);
  expect(text(packed.get(bytes('name')))).toBe('value-199999');
});

test('packed map: names that come and go -> deleted slots do not pile up', () => {
  const packed = new PackedMap();
  for (let i = 0; i < 50_000; i++) {
    packed.set(bytes(`pod-${i}`), bytes('10.0.0.1'));
    packed.delete(bytes(`pod-${i}`));
  }
  expect(packed.size).toBe(0);
  expect(packed.memoryBytes).toBeLessThan(200_000);
});

test('packed map: a reader of the old generation -> still finds what was there when it was replaced', () => {
  const packed = new PackedMap();
  packed.set(bytes('old'), bytes('1'));
  const reader = new PackedReader(packed.memory);
  for (let i = 0; i < 5000; i++) packed.set(bytes(`new-${i}`), bytes('2'));
  expect(text(reader.get(bytes('old')))).toBe('1');
  reader.adopt(packed.memory);
  expect(text(reader.get(bytes('new-4999')))).toBe('2');
});

test('packed map: two keys with one hash -> both are found', () => {
  const [a, b] = collidingKeys();
  const packed = new PackedMap();
  packed.set(a, bytes('a'));
  packed.set(b, bytes('b'));
  expect(text(packed.get(a))).toBe('a');
  expect(text(packed.get(b))).toBe('b');
  packed.delete(a);
  expect(packed.get(a)).toBeUndefined();
  expect(text(packed.get(b))).toBe('b');
});

/** The birthday paradox finds a pair among some hundred thousand texts. */
function collidingKeys(): [Uint8Array, Uint8Array] {
  const seen = new Map<number, Uint8Array>();
  for (let i = 0; i < 1_000_000; i++) {
    const key = bytes(`k${i}`);
    const hash = hashBytes(key, 0, key.length);
    const other = seen.get(hash);
    if (other) return [other, key];
    seen.set(hash, key);
  }
  throw new Error('no collision found');
}

test('packed map: keys as text, beyond ASCII and long ones too -> the same entries as their bytes', () => {
  const packed = new PackedMap();
  const keys = ['shop/db', 'größe/ß', 'x'.repeat(1000), ''];
  for (const key of keys) packed.setText(key, bytes(`of ${key}`));
  for (const key of keys) {
    expect(text(packed.get(bytes(key)))).toBe(`of ${key}`);
    expect(packed.buffer.toString('utf8', packed.locateText(key)).startsWith(`of ${key}`)).toBe(true);
  }
  expect([...packed.textKeys()]).toEqual(keys);
  expect(packed.deleteText('größe/ß')).toBe(true);
  expect(packed.deleteText('größe/ß')).toBe(false);
  expect(packed.locateText('größe/ß')).toBe(-1);
  expect(packed.size).toBe(3);
});

test('packed map: keys while it changes and moves -> those of the beginning, in the order they came', () => {
  const packed = new PackedMap();
  for (let i = 0; i < 1000; i++) packed.setText(`first-${i}`, bytes('old'));
  const seen: string[] = [];
  for (const key of packed.textKeys()) {
    seen.push(key);
    packed.deleteText(`first-${(7 * seen.length) % 1000}`);
    for (let i = 0; i < 20; i++) packed.setText(`later-${20 * seen.length + i}`, bytes('x'.repeat(100)));
  }
  expect(seen).toEqual(Array.from({ length: 1000 }, (_, i) => `first-${i}`));
});

test('packed map: the same key as text, set, replaced, deleted and set again, ASCII or not -> as asked each time', () => {
  const packed = new PackedMap();
  const valueAt = (key: string) => {
    const at = packed.locateText(key);
    return at < 0 ? undefined : String.fromCharCode(packed.bytes[at]!);
  };
  for (const key of ['', 'ns/checkout', 'ns/größe']) {
    expect(valueAt(key)).toBeUndefined();
    packed.setText(key, bytes('a'));
    expect(valueAt(key)).toBe('a');
    packed.setText(key, bytes('b'));
    expect(valueAt(key)).toBe('b');
    expect(packed.deleteText(key)).toBe(true);
    expect(packed.deleteText(key)).toBe(false);
    packed.setText(key, bytes('c'));
    expect(valueAt(key)).toBe('c');
  }
  expect([...packed.textKeys()]).toEqual(['', 'ns/checkout', 'ns/größe']);
});

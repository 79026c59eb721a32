import fc from 'fast-check';
import { expect, test } from 'vitest';
import { scanJson } from './duplicate-keys.ts';

function scan(text: string, depthMax = 256) {
  return scanJson(Buffer.from(text).toString('latin1'), { depthMax, valuesMax: 1_000_000 });
}

test.each<[string, string, string[]]>([
  ['no repetition', '{"a":1,"b":{"a":2}}', []],
  ['at the top', '{"a":1,"a":2}', ['a']],
  ['inside', '{"spec":{"a":1,"b":2,"a":3}}', ['spec.a']],
  ['in an item', '{"spec":{"ports":[{"n":1},{"n":1,"n":2}]}}', ['spec.ports[1].n']],
  ['three times', '{"a":1,"a":2,"a":3}', ['a', 'a']],
  ['written with an escape', '{"a":1,"\\u0061":2}', ['a']],
  ['not ASCII, written in two ways', '{"é":1,"\\u00e9":2}', ['é']],
  ['ends in a backslash', '{"a\\\\":1,"b":"\\\\","a\\\\":2}', ['a\\']],
  ['after many others', `{${Array.from({ length: 50 }, (_, index) => `"k${index}":1`).join()},"k3":2}`, ['k3']],
  ['same text as key and as value', '{"a":"a","b":"a"}', []],
  ['braces, commas and quotes in strings', '{"a":"{\\"a\\":1,\\"a\\":2}","b":"x,y"}', []],
  ['beside strings in an array', '{"l":["a","a"],"m":[["a"],{"k":1,"k":1}]}', ['m[1].k']],
  ['with space around', '{ "a" : 1 ,\n "a" : 2 }', ['a']],
  ['key of an object that ended before', '{"a":{"x":1},"b":{"x":1},"a":{}}', ['a']],
  ['key named like Object.prototype', '{"__proto__":1,"__proto__":2}', ['__proto__']],
])('scanJson: %s -> %j', (_, text, expected) => {
  expect(scan(text).duplicates).toEqual(expected);
});

test('scanJson: any value that was serialized -> no repetition', () => {
  fc.assert(fc.property(fc.json(), (text) => scan(text).duplicates.length === 0));
});

test('scanJson: any bytes -> ends without an error', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 200 }),
      (bytes) => scanJson(Buffer.from(bytes).toString('latin1'), { depthMax: 9, valuesMax: 1_000_000 }) !== undefined,
    ),
  );
});

test('scanJson: nesting beyond the bound -> said, at once', () => {
  expect(scan('[[[1]]]', 3).excess).toBeUndefined();
  expect(scan('[[[[1]]]]', 3).excess).toBe('depth');
  expect(scan('['.repeat(3_000_000)).excess).toBe('depth');
});

test('scanJson: 100,000 repetitions -> 100 named', () => {
  expect(scan(`{${'"a":1,'.repeat(100_000)}"a":1}`).duplicates).toHaveLength(100);
});

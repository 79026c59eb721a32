import { describe, expect, test } from 'vitest';
import { canonicalJson, isSameJson } from './json.ts';

describe('same json', () => {
  const same: [unknown, unknown][] = [
    [
      { a: 1, b: [1, { c: null }] },
      { b: [1, { c: null }], a: 1 },
    ],
    [{ a: undefined }, {}],
    [{}, { a: undefined }],
    [[], []],
  ];
  const different: [unknown, unknown][] = [
    [{ a: 1 }, { a: 1, b: 2 }],
    [{ a: 1, b: 2 }, { a: 1 }],
    [{}, { constructor: 'x' }],
    [{ toString: 'x' }, {}],
    [JSON.parse('{"__proto__":{}}'), {}],
    [
      [1, 2],
      [2, 1],
    ],
    [[1], [1, 2]],
    [{}, []],
    [null, {}],
    ['1', 1],
  ];
  for (const [a, b] of same)
    test(`${JSON.stringify(a)} and ${JSON.stringify(b)} -> same`, () => expect(isSameJson(a, b)).toBe(true));
  for (const [a, b] of different)
    test(`${JSON.stringify(a)} and ${JSON.stringify(b)} -> different`, () => expect(isSameJson(a, b)).toBe(false));
});

test('canonicalJson: an undefined member -> the same text as without it', () => {
  expect(canonicalJson({ b: undefined, a: [1, { c: undefined }] })).toBe(canonicalJson({ a: [1, {}] }));
});

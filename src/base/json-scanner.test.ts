import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JsonScanError, JsonScanner } from './json-scanner.ts';

/** Everything there is, by asking for it piece by piece. */
function readAll(text: string): unknown {
  const scanner = new JsonScanner(Buffer.from(text));
  const value = readValue(scanner, text);
  scanner.end();
  return value;
}

function readValue(scanner: JsonScanner, text: string): unknown {
  const first = Buffer.from(text).toString('latin1').slice(scanner.at).trimStart()[0] ?? '';
  if (first === '{') return readObject(scanner, text);
  if (first === '[') {
    const items: unknown[] = [];
    scanner.enterArray();
    while (scanner.nextItem()) items.push(readValue(scanner, text));
    return items;
  }
  if (first === '"') return scanner.text();
  if (first === 't' || first === 'f') return scanner.boolean();
  if (first === 'n') return scanner.skip() ?? null;
  return scanner.number();
}

function readObject(scanner: JsonScanner, text: string): object {
  const entries: [string, unknown][] = [];
  const bytes = Buffer.from(text);
  scanner.enterObject();
  while (scanner.nextKey()) {
    const key = /"([^"]*)"\s*:$/.exec(bytes.toString('utf8', 0, scanner.at))![1]!;
    expect(scanner.isKey(Buffer.from(key))).toBe(true);
    expect(scanner.isKey(Buffer.from(`${key}x`))).toBe(false);
    entries.push([key, readValue(scanner, text)]);
  }
  return Object.fromEntries(entries);
}

const plainKey = fc.stringMatching(/^[a-z./ß-]{0,12}$/).filter((key) => key !== '__proto__');
const { value: someJson } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, false, 0, -1, 80, 65_535, 1.5, -2e-7, 1e21, 1_705_526_118_079_383_800),
    fc.double({ noNaN: true, noDefaultInfinity: true }).filter((n) => !Object.is(n, -0)),
    fc.string({ unit: 'grapheme', maxLength: 50 }),
    fc.constantFrom('tab\t', 'quote " and \\ and \n', 'größe', '\u{1f600}', ''),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(plainKey, tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
}));

describe('JSON scanner', () => {
  test('any JSON, with or without spaces -> what JSON.parse makes of it', () => {
    fc.assert(
      fc.property(someJson, fc.constantFrom(undefined, 1, '\t', '\r\n '), (value, space) => {
        const text = JSON.stringify(value, null, space);
        expect(readAll(text)).toEqual(JSON.parse(text));
      }),
      { numRuns: 500 },
    );
  });

  test('what is skipped -> is found to end where it ends', () => {
    fc.assert(
      fc.property(someJson, (value) => {
        const scanner = new JsonScanner(Buffer.from(JSON.stringify([value, 'behind'], null, 1)));
        scanner.enterArray();
        expect(scanner.nextItem()).toBe(true);
        scanner.skip();
        expect(scanner.nextItem()).toBe(true);
        expect(scanner.text()).toBe('behind');
        expect(scanner.nextItem()).toBe(false);
        scanner.end();
      }),
      { numRuns: 300 },
    );
  });

  test('text that ends too soon -> an error, wherever it ends', () => {
    const text = '{"a":[1,{"b":"c\\u0041"},true],"d":{"e":null},"f":"größe"}';
    for (let end = 0; end < text.length; end++) expect(() => readAll(text.slice(0, end))).toThrow(JsonScanError);
    for (let end = 1; end < text.length; end++) {
      const scanner = new JsonScanner(Buffer.from(text.slice(0, end)));
      expect(() => scanner.skip()).toThrow(JsonScanError);
    }
  });

  test.each([
    '[1 2]',
    '[,1]',
    '[1,]',
    '{"a" 1}',
    '{"a":1 "b":2}',
    '{,"a":1}',
    '{"a":1,}',
    '{a:1}',
    '{"a":}',
    '1 2',
    '{"\\u0061":1}',
    '["\\q"]',
  ])('%s -> an error', (text) => {
    expect(() => readAll(text)).toThrow(JsonScanError);
  });

  test('a value of another kind than was asked for -> nothing, and on to the next', () => {
    const scanner = new JsonScanner(Buffer.from('[{"a":1},"x",null,7,[1],true]'));
    const seen: unknown[] = [];
    scanner.enterArray();
    for (const read of ['text', 'number', 'boolean', 'text', 'enterObject', 'enterArray'] as const) {
      scanner.nextItem();
      seen.push(scanner[read]());
    }
    expect(seen).toEqual([undefined, undefined, undefined, undefined, false, false]);
    expect(scanner.nextItem()).toBe(false);
  });
});

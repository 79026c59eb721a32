// The published rules of structured merge, one line for each case. All are on one kind: a text, a map, lists of every kind,
// values taken whole, and values that the schema leaves open.

import { describe, expect, test } from 'vitest';
import type { Schema } from '../schema/schema.ts';
import {
  difference,
  type FieldSet,
  formatFieldsV1,
  formatPath,
  intersection,
  parseFieldsV1,
  pathsOf,
  union,
  unionOf,
} from './field-set.ts';
import { formatManagers, parseManagers } from './managers.ts';
import { type MapType, typeOfKind } from './merge-type.ts';
import { applyInPieces } from './ownership.ts';
import { asTyped, checkApplied, compareValues, fieldsOf, mergeValues, withoutFields } from './values.ts';

const text: Schema = { type: 'string' };
const whole = { 'x-kubernetes-map-type': 'atomic' } as const;
const port: Schema = {
  type: 'object',
  properties: { port: { type: 'integer' }, protocol: { type: 'string', default: 'TCP' }, name: text },
};
const schema: Schema = {
  type: 'object',
  properties: {
    text,
    struct: { type: 'object', properties: { a: text, b: text, in: { type: 'object', properties: { c: text } } } },
    map: { type: 'object', additionalProperties: text },
    maps: { type: 'object', additionalProperties: { type: 'object', properties: { a: text, b: text } } },
    set: { type: 'array', 'x-kubernetes-list-type': 'set', items: text },
    ports: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['port', 'protocol'],
      items: port,
    },
    list: { type: 'array', items: port },
    wholeMap: { type: 'object', ...whole, additionalProperties: text },
    wholeStruct: { type: 'object', ...whole, properties: { a: text, b: text } },
    any: { 'x-kubernetes-preserve-unknown-fields': true },
    either: { 'x-kubernetes-int-or-string': true },
  },
};
const type: MapType = typeOfKind(schema, undefined);

function shown(set: FieldSet): string {
  return pathsOf(set).map(formatPath).join(' ');
}

const tcp = (number: number) => `.ports[port=${number},protocol="TCP"]`;

describe('merge', () => {
  const cases: [what: string, live: object, applied: object, merged: object][] = [
    ['a text that is not there', {}, { text: 'x' }, { text: 'x' }],
    ['a text that is there', { text: 'x' }, { text: 'y' }, { text: 'y' }],
    ['nothing', { text: 'x' }, {}, { text: 'x' }],
    ['null for a text', { text: 'x' }, { text: null }, { text: null }],
    ['a key beside another', { map: { a: '1' } }, { map: { b: '2' } }, { map: { a: '1', b: '2' } }],
    ['a key over itself', { map: { a: '1', b: '1' } }, { map: { a: '2' } }, { map: { a: '2', b: '1' } }],
    ['an empty map', { map: { a: '1' } }, { map: {} }, { map: { a: '1' } }],
    ['null for a map', { map: { a: '1' } }, { map: null }, { map: { a: '1' } }],
    ['an empty map where none is', {}, { map: {} }, { map: {} }],
    ['a map over null', { map: null }, { map: { a: '1' } }, { map: { a: '1' } }],
    ['a field of a struct', { struct: { a: '1' } }, { struct: { b: '2' } }, { struct: { a: '1', b: '2' } }],
    ['two levels', { struct: { in: { c: '1' } } }, { struct: { a: '2' } }, { struct: { in: { c: '1' }, a: '2' } }],
    ['maps in a map', { maps: { x: { a: '1' } } }, { maps: { x: { b: '2' } } }, { maps: { x: { a: '1', b: '2' } } }],
    ['a map taken whole', { wholeMap: { a: '1' } }, { wholeMap: { b: '2' } }, { wholeMap: { b: '2' } }],
    ['a struct taken whole', { wholeStruct: { a: '1' } }, { wholeStruct: { b: '2' } }, { wholeStruct: { b: '2' } }],
    ['a list taken whole', { list: [{ port: 1 }, { port: 2 }] }, { list: [{ port: 3 }] }, { list: [{ port: 3 }] }],
    ['a whole list emptied', { list: [{ port: 1 }] }, { list: [] }, { list: [] }],
    ['a number or a text', { either: 1 }, { either: 'http' }, { either: 'http' }],
    ['open objects', { any: { a: { b: 1 } } }, { any: { a: { c: 2 } } }, { any: { a: { b: 1, c: 2 } } }],
    ['open lists', { any: { a: [1, 2] } }, { any: { a: [3] } }, { any: { a: [3] } }],
    ['an open list for an object', { any: { a: 1 } }, { any: [1] }, { any: [1] }],
    ['a set with one more', { set: ['p'] }, { set: ['q'] }, { set: ['p', 'q'] }],
    ['a set in front of a shared item', { set: ['p', 'q'] }, { set: ['r', 'p'] }, { set: ['r', 'p', 'q'] }],
    ['a set behind a shared item', { set: ['p', 'q'] }, { set: ['p', 'r'] }, { set: ['p', 'q', 'r'] }],
    ['a set in another order', { set: ['p', 'q', 'r'] }, { set: ['r', 'q', 'p'] }, { set: ['r', 'q', 'p'] }],
    ['a set around a live item', { set: ['l', 'p'] }, { set: ['p', 'n'] }, { set: ['l', 'p', 'n'] }],
    ['two shared items reversed', { set: ['a', 'x', 'b'] }, { set: ['b', 'a'] }, { set: ['x', 'b', 'a'] }],
    ['an empty set', { set: ['p'] }, { set: [] }, { set: ['p'] }],
    ['null for a set', { set: ['p'] }, { set: null }, { set: ['p'] }],
    ['a set over null', { set: null }, { set: ['p'] }, { set: ['p'] }],
    ['a set that has an item twice', { set: ['p', 'p', 'q'] }, { set: ['p'] }, { set: ['p', 'q'] }],
    ['other items twice', { set: ['p', 'p'] }, { set: ['q'] }, { set: ['p', 'p', 'q'] }],
    [
      'a field of an item',
      { ports: [{ port: 1, protocol: 'TCP' }] },
      { ports: [{ port: 1, name: 'n' }] },
      { ports: [{ port: 1, protocol: 'TCP', name: 'n' }] },
    ],
    [
      'an item of another key',
      { ports: [{ port: 1, protocol: 'TCP' }] },
      { ports: [{ port: 1, protocol: 'UDP' }] },
      {
        ports: [
          { port: 1, protocol: 'TCP' },
          { port: 1, protocol: 'UDP' },
        ],
      },
    ],
    [
      'an item that is live twice',
      {
        ports: [
          { port: 1, name: 'a' },
          { port: 1, name: 'b' },
        ],
      },
      { ports: [{ port: 1 }] },
      { ports: [{ port: 1 }] },
    ],
  ];
  test.each(cases)('%s', (_what, live, applied, merged) => {
    const before = structuredClone([live, applied]);
    expect(mergeValues(type, live, applied)).toEqual(merged);
    expect([live, applied]).toEqual(before);
  });

  test.each(cases)('%s, twice -> as once', (_what, live, applied) => {
    const once = mergeValues(type, live, applied);
    expect(mergeValues(type, once, applied)).toEqual(once);
  });
});

describe('fields that a configuration owns', () => {
  const cases: [what: string, applied: object, owned: string][] = [
    ['nothing', {}, ''],
    ['a text', { text: 'x' }, '.text'],
    ['null', { text: null }, '.text'],
    ['a struct: its leaves', { struct: { a: '1', in: { c: '2' } } }, '.struct.a .struct.in.c'],
    ['an empty struct: itself', { struct: {} }, '.struct'],
    ['a map: its keys', { map: { a: '1', b: '2' } }, '.map.a .map.b'],
    ['an empty map', { map: {} }, '.map'],
    ['maps in a map: the key and what is below', { maps: { x: { a: '1' } } }, '.maps.x .maps.x.a'],
    ['a map taken whole', { wholeMap: { a: '1' } }, '.wholeMap'],
    ['a struct taken whole', { wholeStruct: { a: '1' } }, '.wholeStruct'],
    ['a list taken whole', { list: [{ port: 1 }] }, '.list'],
    ['an empty list taken whole', { list: [] }, '.list'],
    ['a set: its items', { set: ['q', 'p'] }, '.set[="p"] .set[="q"]'],
    ['an empty set: nothing', { set: [] }, ''],
    ['null for a set', { set: null }, '.set'],
    ['an item: itself and its fields', { ports: [{ port: 1 }] }, `${tcp(1)} ${tcp(1)}.port`],
    [
      'items in order of their keys',
      { ports: [{ port: 10 }, { port: 9 }] },
      `${tcp(9)} ${tcp(10)} ${tcp(9)}.port ${tcp(10)}.port`,
    ],
    ['open objects', { any: { a: { b: 1 } } }, '.any.a .any.a.b'],
    ['an open list', { any: { a: [1] } }, '.any.a'],
  ];
  test.each(cases)('%s', (_what, applied, owned) => expect(shown(fieldsOf(type, applied))).toBe(owned));
});

describe('compare', () => {
  const cases: [what: string, before: object, after: object, changes: string][] = [
    ['the same', { text: 'x', set: ['p'] }, { text: 'x', set: ['p'] }, ''],
    ['a text', { text: 'x' }, { text: 'y' }, '~ .text'],
    ['a text that came', {}, { text: 'x' }, '+ .text'],
    ['a text that went', { text: 'x' }, {}, '- .text'],
    ['a map that came: itself and its keys', {}, { map: { a: '1' } }, '+ .map .map.a'],
    ['a map that went', { map: { a: '1' } }, {}, '- .map .map.a'],
    ['a key that came', { map: { a: '1' } }, { map: { a: '1', b: '2' } }, '+ .map.b'],
    ['a key that went', { map: { a: '1', b: '2' } }, { map: { a: '1' } }, '- .map.b'],
    ['all at once', { map: { a: '1', b: '1' } }, { map: { a: '2', c: '1' } }, '+ .map.c ~ .map.a - .map.b'],
    ['a whole map', { wholeMap: { a: '1' } }, { wholeMap: { a: '1', b: '2' } }, '~ .wholeMap'],
    [
      'a whole list in another order',
      { list: [{ port: 1 }, { port: 2 }] },
      { list: [{ port: 2 }, { port: 1 }] },
      '~ .list',
    ],
    ['a set in another order', { set: ['p', 'q'] }, { set: ['q', 'p'] }, ''],
    ['an item of a set', { set: ['p'] }, { set: ['q'] }, '+ .set[="q"] - .set[="p"]'],
    ['a set emptied', { set: ['p'] }, { set: [] }, '- .set[="p"]'],
    [
      'a field of an item',
      { ports: [{ port: 1, name: 'a' }] },
      { ports: [{ port: 1, name: 'b' }] },
      `~ ${tcp(1)}.name`,
    ],
    [
      'a default key that is written out',
      { ports: [{ port: 1 }] },
      { ports: [{ port: 1, protocol: 'TCP' }] },
      `+ ${tcp(1)}.protocol`,
    ],
    ['an item that went', { ports: [{ port: 1 }] }, { ports: [] }, `- ${tcp(1)} ${tcp(1)}.port`],
    ['an item of a set twice, then once', { set: ['p', 'p'] }, { set: ['p'] }, '~ .set[="p"]'],
    ['an item of a set twice, then never', { set: ['p', 'p'] }, { set: [] }, '- .set[="p"]'],
    ['keys of an object in another order', { any: { a: { b: 1, c: 2 } } }, { any: { a: { c: 2, b: 1 } } }, ''],
    ['an open object that becomes a list', { any: { a: 1 } }, { any: [1] }, '~ .any .any.a'],
    ['null and empty', { map: null }, { map: {} }, '~ .map'],
    ['null and content', { map: null }, { map: { a: '1' } }, '+ .map.a'],
  ];
  test.each(cases)('%s', (_what, before, after, changes) => {
    const { added, modified, removed } = compareValues(type, before, after);
    const parts = [`+ ${shown(added)}`, `~ ${shown(modified)}`, `- ${shown(removed)}`];
    expect(parts.filter((part) => part.length > 2).join(' ')).toBe(changes);
  });

  test.each(cases)('%s, the other way round -> what came went', (_what, before, after) => {
    const there = compareValues(type, before, after);
    const back = compareValues(type, after, before);
    expect([shown(back.added), shown(back.removed)]).toEqual([shown(there.removed), shown(there.added)]);
  });
});

describe('removal', () => {
  const cases: [what: string, value: object, fields: object, left: object][] = [
    ['of nothing', { text: 'x' }, {}, { text: 'x' }],
    ['of a text', { text: 'x', map: { a: '1' } }, { 'f:text': {} }, { map: { a: '1' } }],
    ['of a field that is not there', { text: 'x' }, { 'f:map': { 'f:a': {} } }, { text: 'x' }],
    ['of a key', { map: { a: '1', b: '2' } }, { 'f:map': { 'f:a': {} } }, { map: { b: '2' } }],
    ['of the last key of a map', { map: { a: '1' } }, { 'f:map': { 'f:a': {} } }, {}],
    ['of the last field of a struct', { struct: { a: '1' } }, { 'f:struct': { 'f:a': {} } }, { struct: {} }],
    ['of a map as a whole', { map: { a: '1' } }, { 'f:map': {} }, {}],
    ['below a map that is whole', { wholeMap: { a: '1' } }, { 'f:wholeMap': { 'f:a': {} } }, { wholeMap: { a: '1' } }],
    ['of an item of a set', { set: ['p', 'q'] }, { 'f:set': { 'v:"p"': {} } }, { set: ['q'] }],
    ['of the last item of a set', { set: ['p'] }, { 'f:set': { 'v:"p"': {} } }, {}],
    [
      'of an item by keys in any order',
      { ports: [{ port: 1 }, { port: 2 }] },
      { 'f:ports': { 'k:{"protocol":"TCP", "port":1}': {} } },
      { ports: [{ port: 2 }] },
    ],
    [
      'of a field of an item',
      { ports: [{ port: 1, name: 'n' }] },
      { 'f:ports': { 'k:{"port":1,"protocol":"TCP"}': { 'f:name': {} } } },
      { ports: [{ port: 1 }] },
    ],
    ['of an open key', { any: { a: { b: 1, c: 2 } } }, { 'f:any': { 'f:a': { 'f:b': {} } } }, { any: { a: { c: 2 } } }],
  ];
  test.each(cases)('%s', (_what, value, fields, left) => {
    expect(withoutFields(type, value, parseFieldsV1(fields)!)).toEqual(left);
  });
});

describe('sets', () => {
  const of = (fields: object) => parseFieldsV1(fields)!;
  const cases: [what: string, a: object, b: object, union: string, both: string, rest: string][] = [
    ['nothing and nothing', {}, {}, '', '', ''],
    ['one and nothing', { 'f:a': {} }, {}, '.a', '', '.a'],
    ['nothing and one', {}, { 'f:a': {} }, '.a', '', ''],
    ['the same', { 'f:a': {} }, { 'f:a': {} }, '.a', '.a', ''],
    ['different', { 'f:a': {} }, { 'f:b': {} }, '.a .b', '', '.a'],
    ['above and below', { 'f:a': {} }, { 'f:a': { 'f:b': {} } }, '.a .a.b', '', '.a'],
    ['below and above', { 'f:a': { 'f:b': {} } }, { 'f:a': {} }, '.a .a.b', '', '.a.b'],
    ['both and above', { 'f:a': { '.': {}, 'f:b': {} } }, { 'f:a': {} }, '.a .a.b', '.a', '.a.b'],
    ['siblings', { 'f:a': { 'f:b': {} } }, { 'f:a': { 'f:c': {} } }, '.a.b .a.c', '', '.a.b'],
    ['a field and a value', { 'f:a': {} }, { 'v:"a"': {} }, '.a [="a"]', '', '.a'],
  ];
  test.each(cases)('%s', (_what, a, b, all, both, rest) => {
    expect(shown(union(of(a), of(b)))).toBe(all);
    expect(shown(unionOf([of(a), of(b)]))).toBe(all);
    expect(shown(intersection(of(a), of(b)))).toBe(both);
    expect(shown(difference(of(a), of(b)))).toBe(rest);
  });

  const written: [what: string, fields: object, again: string][] = [
    ['fields by name', { 'f:b': {}, 'f:a': {} }, '{"f:a":{},"f:b":{}}'],
    ['itself and below', { 'f:a': { 'f:b': {}, '.': {} } }, '{"f:a":{".":{},"f:b":{}}}'],
    ['itself alone', { 'f:a': { '.': {} } }, '{"f:a":{}}'],
    ['numbers as numbers', { 'v:10': {}, 'v:9': {} }, '{"v:9":{},"v:10":{}}'],
    ['keys sorted, spaces gone', { 'k:{ "b": 1, "a": "x" }': {} }, '{"k:{\\"a\\":\\"x\\",\\"b\\":1}":{}}'],
    [
      'fields, keys, values, positions',
      { 'i:0': {}, 'v:1': {}, 'k:{"a":1}': {}, 'f:z': {} },
      '{"f:z":{},"k:{\\"a\\":1}":{},"v:1":{},"i:0":{}}',
    ],
    ['a name with every sign', { 'f:a.b/c:d[0]': {} }, '{"f:a.b/c:d[0]":{}}'],
    ['an empty name', { 'f:': {} }, '{"f:":{}}'],
  ];
  test.each(written)('written: %s', (_what, fields, again) => {
    expect(JSON.stringify(formatFieldsV1(of(fields)))).toBe(again);
  });

  test.each([
    ['a list', []],
    ['a text', 'f:a'],
    ['null below', { 'f:a': null }],
    ['a text below', { 'f:a': 'x' }],
    ['an element of no kind', { a: {} }],
    ['keys that are no object', { 'k:[1]': {} }],
    ['keys that are no JSON', { 'k:{': {} }],
    ['a value that is no JSON', { 'v:x': {} }],
    ['a position that is no number', { 'i:-1': {} }],
    ['too deep', JSON.parse(`${'{"f:a":'.repeat(300)}{}${'}'.repeat(300)}`)],
  ])('not a set: %s', (_what, fields) => expect(parseFieldsV1(fields)).toBeUndefined());
});

describe('sets under a schema that has changed', () => {
  test.each([
    ['a map that is whole now', { 'f:wholeMap': { 'f:a': {} } }, '.wholeMap'],
    ['a list that is whole now', { 'f:list': { 'k:{"port":1}': { '.': {}, 'f:port': {} } } }, '.list'],
    ['a text that was a struct', { 'f:text': { 'f:a': {} } }, '.text'],
    ['an open value that was a list by keys', { 'f:any': { 'f:l': { 'k:{"a":1}': {} } } }, '.any.l'],
    ['a map that is granular now', { 'f:map': {} }, '.map'],
    ['a field that the schema has no longer', { 'f:gone': { 'f:a': {} } }, '.gone.a'],
  ])('%s', (_what, fields, now) => expect(shown(asTyped(type, parseFieldsV1(fields)!))).toBe(now));
});

describe('configurations', () => {
  test.each([
    ['an unknown field', { nope: 1 }, '.nope: field not declared in schema'],
    ['an unknown field below', { struct: { in: { d: 1 } } }, '.struct.in.d: field not declared in schema'],
    ['a text for a map', { map: 'x' }, '.map: expected map, got scalar'],
    ['a list for a struct', { struct: [] }, '.struct: expected map, got list'],
    ['a map for a set', { set: {} }, '.set: expected list, got map'],
    ['a value twice', { set: ['p', 'p'] }, '.set: duplicate entries for key [="p"]'],
    [
      'an item twice by a default',
      { ports: [{ port: 1 }, { port: 1, protocol: 'TCP' }] },
      `.ports: duplicate entries for key [port=1,protocol="TCP"]`,
    ],
    ['an item that is no map', { ports: ['x'] }, '.ports[0]: expected map, got scalar'],
    ['a null item', { ports: [null] }, '.ports[0]: an item of this list needs its keys port, protocol'],
    ['an unknown field in a whole list', { list: [{ nope: 1 }] }, '.list[0].nope: field not declared in schema'],
  ])('refused: %s', (_what, applied, why) => expect(() => checkApplied(type, applied)).toThrow(why));

  test.each([
    ['items twice in a whole list', { list: [{ port: 1 }, { port: 1 }] }],
    ['null for a map', { map: null }],
    ['anything where the schema is open', { any: [{ a: [null] }, 'x'] }],
    ['the same port of another protocol', { ports: [{ port: 1 }, { port: 1, protocol: 'UDP' }] }],
  ])('accepted: %s', (_what, applied) => expect(() => checkApplied(type, applied)).not.toThrow());
});

describe('managers', () => {
  const entry = (manager: string, rest: object = {}) => ({
    ...{ manager, operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: { 'f:text': {} } },
    ...rest,
  });
  const names = (entries: object[]) => formatManagers(parseManagers(entries)!).map(({ manager }) => manager);
  const apply = { operation: 'Apply' };

  test.each<[string, object[], string[]]>([
    ['appliers before updaters', [entry('a'), entry('b', apply)], ['b', 'a']],
    ['without a time first', [entry('a', { time: '2026-01-01T00:00:00Z' }), entry('b')], ['b', 'a']],
    ['by time, then by name', [entry('c'), entry('a'), entry('b')], ['a', 'b', 'c']],
    ['without fields: gone', [entry('a', { fieldsV1: {} }), entry('b')], ['b']],
    ['an applier in two versions: one', [entry('a', apply), entry('a', { ...apply, apiVersion: 'v2' })], ['a']],
    ['an updater in two versions: two', [entry('a'), entry('a', { apiVersion: 'v2' })], ['a', 'a']],
    ['a subresource: another manager', [entry('a'), entry('a', { subresource: 'status' })], ['a', 'a']],
    ['ten updaters', Array.from('abcdefghij', (name) => entry(name)), [...'abcdefghij']],
    ['eleven updaters', Array.from('abcdefghijk', (name) => entry(name)), ['ancient-changes', ...'cdefghijk']],
    [
      'one of an old version and ten others',
      [entry('a', { apiVersion: 'v0' }), ...Array.from('bcdefghijk', (name) => entry(name))],
      ['a', 'ancient-changes', ...'defghijk'],
    ],
  ])('%s', (_what, entries, listed) => expect(names(entries)).toEqual(listed));

  test('a thousand that own little beside one that owns much -> their cost is that of all together', () => {
    const fieldsV1 = (count: number, name: string) => ({
      'f:map': Object.fromEntries(Array.from({ length: count }, (_, at) => [`f:${name}${at}`, {}])),
    });
    const entries = [entry('u', { fieldsV1: fieldsV1(20_000, 'k') })];
    for (let at = 0; at < 1000; at++) entries.push(entry('u', { fieldsV1: fieldsV1(1, `q${at}-`) }));
    const { user } = process.cpuUsage();
    const [all] = formatManagers(parseManagers(entries)!);
    expect((process.cpuUsage().user - user) / 1000).toBeLessThan(1000);
    expect(Object.keys(all!.fieldsV1!['f:map']!)).toHaveLength(21_000);
  });
});

test.each(['__proto__', 'constructor', 'toString'])(
  'an item without its key %s -> refused; with it -> told apart',
  (key) => {
    const list: Schema = {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': [key],
      items: {},
    };
    const keyed = typeOfKind({ type: 'object', properties: { list } }, undefined);
    expect(() => checkApplied(keyed, { list: [{ a: 1 }] })).toThrow('needs its keys');
    expect(shown(fieldsOf(keyed, JSON.parse(`{"list":[{"${key}":"x"}]}`)))).toContain(`.list[${key}="x"]`);
  },
);

test('an apply on a large object -> each walk over it is a piece of its own', () => {
  const object = (map: object) => ({ apiVersion: 'ex.io/v1', kind: 'Thing', metadata: { name: 'x' }, map });
  const applier = { manager: 'a', operation: 'Apply', apiVersion: 'ex.io/v1', subresource: '' } as const;
  const pieces = applyInPieces({
    type,
    live: object({ a: '1', b: '1' }),
    managers: [{ ...applier, fields: fieldsOf(type, { map: { a: '1', b: '1' } }) }],
    applier,
    configuration: object({ a: '1' }),
    isForced: false,
    time: '2026-01-01T00:00:00Z',
    complete: (made) => made,
  });
  let count = 1;
  let piece = pieces.next();
  for (; !piece.done; piece = pieces.next()) count++;
  expect([count, piece.value.object['map']]).toEqual([13, { a: '1' }]);
});

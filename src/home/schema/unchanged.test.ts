import { expect, test } from 'vitest';
import type { Schema } from './schema.ts';
import { errorsOfChanges } from './unchanged.ts';
import { validateSchema } from './validate.ts';

const red: Schema = { type: 'string', enum: ['red'] };
const boat: Schema = { type: 'object', properties: { name: { type: 'string' }, color: red }, required: ['name'] };
const keyed: Schema = {
  ...{ type: 'array', items: boat },
  ...{ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] },
};
const schema: Schema = {
  type: 'object',
  properties: {
    label: { type: 'string' },
    color: red,
    boat,
    whole: { ...boat, 'x-kubernetes-map-type': 'atomic' },
    keyed,
    set: { type: 'array', items: red, 'x-kubernetes-list-type': 'set' },
    map: { type: 'object', additionalProperties: boat },
  },
};

const blue = { name: 'a', color: 'blue' };

/** What counts when `before` becomes `value`; both have another label. */
function counting(before: object, value: object): string[] {
  const [old, now] = [
    { ...before, label: 'old' },
    { ...value, label: 'new' },
  ];
  return errorsOfChanges(validateSchema(schema, now), { schema, value: now, before: old }).map(({ field }) => field);
}

test.each<[string, object]>([
  ['a field', { color: 'blue' }],
  ['an object', { boat: blue }],
  ['an atomic object', { whole: blue }],
  ['a member that is missing', { boat: { color: 'red' } }],
  ['items of a list by key', { keyed: [blue, { name: 'b', color: 'green' }] }],
  ['a set', { set: ['blue', 'red'] }],
  ['members of a map', { map: { one: blue, two: blue } }],
  ['members of a map whose names have dots', { map: { 'a.b': blue } }],
])('errors in %s that did not change -> do not count', (_what, object) => {
  expect(validateSchema(schema, object)).not.toEqual([]);
  expect(counting(object, object)).toEqual([]);
});

test.each<[string, object, object, string[]]>([
  ['a field', { color: 'blue' }, { color: 'green' }, ['color']],
  ['a new field', {}, { color: 'blue' }, ['color']],
  ['one field of two', { boat: blue, color: 'blue' }, { boat: blue, color: 'green' }, ['color']],
  ['a neighbour in an object', { boat: blue }, { boat: { ...blue, name: 'b' } }, []],
  ['a neighbour in an atomic object', { whole: blue }, { whole: { ...blue, name: 'b' } }, ['whole.color']],
  ['the object that misses a member', { boat: { color: 'red' } }, { boat: {} }, ['boat.name']],
  ['the order of items', { keyed: [blue, { name: 'b', color: 'red' }] }, { keyed: [{ name: 'b' }, blue] }, []],
  ['the key of an item', { keyed: [blue] }, { keyed: [{ ...blue, name: 'z' }] }, ['keyed[0].color']],
  ['a set', { set: ['blue'] }, { set: ['blue', 'red'] }, ['set[0]']],
  ['another member', { map: { one: blue } }, { map: { one: blue, two: blue } }, ['map.two.color']],
  // Its path begins as that of the member that did not change.
  ['a name with dots', { map: { a: blue } }, { map: { a: blue, 'a.b': blue } }, ['map.a.color', 'map.a.b.color']],
  ['an item instead of a list', { set: 'blue' }, { set: ['blue'] }, ['set[0]']],
])('errors when what changes is %s -> count where it changed', (_what, before, value, fields) => {
  expect(counting(before, value)).toEqual(fields);
});

test('more errors than are told -> all count', () => {
  const map = Object.fromEntries(Array.from({ length: 600 }, (_, index) => [`m${index}`, blue]));
  expect(counting({ map }, { map }).length).toBe(500);
});

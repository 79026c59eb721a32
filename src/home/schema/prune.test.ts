import { expect, test } from 'vitest';
import { pruneUnknownFields } from './prune.ts';
import type { Schema } from './schema.ts';

const text: Schema = { type: 'string' };
const open: Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

function spec(schema: Schema): Schema {
  return { type: 'object', properties: { spec: schema } };
}

test.each<[string, Schema, unknown, unknown, string[]]>([
  ['unknown field -> removed', { properties: { a: text } }, { a: 'x', b: 1 }, { a: 'x' }, ['spec.b']],
  [
    'unknown field in an item -> path with index',
    { items: { properties: { a: text } } },
    [{ a: 'x' }, { a: 'y', c: 1 }],
    [{ a: 'x' }, { a: 'y' }],
    ['spec[1].c'],
  ],
  ['map -> every key known', { additionalProperties: text }, { k: 'v' }, { k: 'v' }, []],
  [
    'map of objects -> pruned inside',
    { additionalProperties: { properties: {} } },
    { k: { z: 1 } },
    { k: {} },
    ['spec.k.z'],
  ],
  ['object without properties -> nothing known', { type: 'object' }, { z: 1 }, {}, ['spec.z']],
  ['preserved -> kept whole', open, { z: { y: 1 } }, { z: { y: 1 } }, []],
  [
    'preserved, with a property -> pruned inside it alone',
    { ...open, properties: { a: { properties: {} } } },
    { a: { z: 1 }, b: { z: 1 } },
    { a: {}, b: { z: 1 } },
    ['spec.a.z'],
  ],
  [
    'embedded object -> its apiVersion, kind and metadata are known',
    { properties: { data: text }, 'x-kubernetes-embedded-resource': true },
    { apiVersion: 'v1', kind: 'K', metadata: { name: 'n', odd: 1 }, data: 'x', z: 1 },
    { apiVersion: 'v1', kind: 'K', metadata: { name: 'n' }, data: 'x' },
    ['spec.metadata.odd', 'spec.z'],
  ],
  ['names of Object.prototype -> unknown', { properties: { a: text } }, { constructor: 1 }, {}, ['spec.constructor']],
])('pruneUnknownFields: %s', (_, schema, value, left, removed) => {
  const object = { spec: structuredClone(value) };
  expect(pruneUnknownFields(spec(schema), object)).toEqual(removed);
  expect(object).toEqual({ spec: left });
});

test('pruneUnknownFields: root -> apiVersion, kind and known metadata stay', () => {
  const object = { apiVersion: 'v1', kind: 'K', metadata: { name: 'n', labels: { a: 'b' }, odd: 1 }, data: 1 };
  expect(pruneUnknownFields({ type: 'object' }, object)).toEqual(['metadata.odd', 'data']);
  expect(object).toEqual({ apiVersion: 'v1', kind: 'K', metadata: { name: 'n', labels: { a: 'b' } } });
});

test('pruneUnknownFields: definition constrains metadata.name -> the rest of metadata is still known', () => {
  const schema: Schema = { type: 'object', properties: { metadata: { type: 'object', properties: { name: text } } } };
  const object = { metadata: { name: 'n', labels: { a: 'b' } } };
  expect(pruneUnknownFields(schema, object)).toEqual([]);
});

test('pruneUnknownFields: 10,000 unknown fields -> all removed, 100 named', () => {
  const object = { spec: Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`f${index}`, 1])) };
  expect(pruneUnknownFields(spec({ type: 'object' }), object)).toHaveLength(100);
  expect(object).toEqual({ spec: {} });
});

import { expect, test } from 'vitest';
import { applySchemaDefaults } from './defaults.ts';
import type { Schema } from './schema.ts';

function withDefaults(schema: Schema, value: unknown): unknown {
  applySchemaDefaults(schema, value);
  return value;
}

const inner: Schema = { type: 'object', properties: { mode: { type: 'string', default: 'fast' } } };

test.each<[string, Schema, unknown, unknown]>([
  ['absent -> set', inner, {}, { mode: 'fast' }],
  ['present -> kept', inner, { mode: 'slow' }, { mode: 'slow' }],
  ['parent absent -> not made', { properties: { a: inner } }, {}, {}],
  ['parent present -> set inside', { properties: { a: inner } }, { a: {} }, { a: { mode: 'fast' } }],
  [
    'default of the parent -> completed by those inside',
    { properties: { a: { ...inner, default: {} } } },
    {},
    { a: { mode: 'fast' } },
  ],
  ['items -> each one', { items: inner }, [{}, { mode: 'x' }], [{ mode: 'fast' }, { mode: 'x' }]],
  ['values of a map -> each one', { additionalProperties: inner }, { k: {} }, { k: { mode: 'fast' } }],
  ['null, not nullable -> the default', inner, { mode: null }, { mode: 'fast' }],
  ['null, not nullable, no default -> gone', { properties: { a: { type: 'string' } } }, { a: null }, {}],
  ['null, nullable -> kept', { properties: { a: { nullable: true, default: 'x' } } }, { a: null }, { a: null }],
  ['null item with a default -> the default', { items: { type: 'string', default: 'x' } }, [null, 'y'], ['x', 'y']],
  ['unknown null -> left for pruning', { properties: {} }, { b: null }, { b: null }],
  ['value of another type -> left for validation', inner, 'text', 'text'],
])('applySchemaDefaults: %s', (_, schema, value, expected) => {
  expect(withDefaults(schema, value)).toEqual(expected);
});

test('applySchemaDefaults: twice -> objects do not share their defaults', () => {
  const schema: Schema = { properties: { list: { type: 'array', default: [] } } };
  const first = withDefaults(schema, {}) as { list: string[] };
  first.list.push('x');
  expect(withDefaults(schema, {})).toEqual({ list: [] });
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { inOneGo } from '../../base/turns.ts';
import { applySchemaDefaults } from './defaults.ts';
import { keywordSchema } from './keywords.ts';
import { pruneUnknownFields } from './prune.ts';
import type { Schema } from './schema.ts';
import { validateStructural } from './structural.ts';
import { validateSchema } from './validate.ts';

const root = 'spec.versions[0].schema.openAPIV3Schema';

function check(spec: unknown): string[] {
  const schema = { type: 'object', properties: { spec } } as Schema;
  return inOneGo(validateStructural(schema, root)).map(({ field, message }) => {
    const inside = `${root}.properties[spec]`;
    return `${field.startsWith(inside) ? `~${field.slice(inside.length)}` : field}: ${message}`;
  });
}

const text = { type: 'string' };
const port = { type: 'object', required: ['port'], properties: { port: { type: 'integer' }, name: text } };

test.each<[string, unknown]>([
  [
    'nested objects, arrays, maps',
    {
      type: 'object',
      properties: { a: { type: 'array', items: text }, b: { type: 'object', additionalProperties: text } },
    },
  ],
  [
    'int-or-string with the anyOf of generators',
    { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
  ],
  ['unknown fields kept, no type', { 'x-kubernetes-preserve-unknown-fields': true }],
  [
    'a choice between specified fields',
    { type: 'object', properties: { a: text, b: text }, oneOf: [{ required: ['a'] }, { required: ['b'] }] },
  ],
  [
    'a branch about specified fields',
    { type: 'object', properties: { a: text }, not: { properties: { a: { pattern: '^x' } } } },
  ],
  [
    'a list map by a required key',
    { type: 'array', items: port, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['port'] },
  ],
  ['a default that fits', { type: 'object', default: { a: 'x' }, properties: { a: text } }],
  ['rules in CEL', { type: 'object', properties: { a: text }, 'x-kubernetes-validations': [{ rule: 'self.a != ""' }] }],
])('structural: %s -> taken', (_, spec) => {
  expect(check(spec)).toEqual([]);
});

test.each<[string, unknown, string[]]>([
  ['no type', {}, ['~.type: Required value: must not be empty for specified object fields']],
  [
    'no type of items',
    { type: 'array', items: {} },
    ['~.items.type: Required value: must not be empty for specified array items'],
  ],
  ['no items', { type: 'array' }, ['~.items: Required value: must be specified']],
  [
    'unknown type',
    { type: 'text' },
    [
      '~.type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"',
    ],
  ],
  ['reference', { type: 'object', $ref: '#/x' }, ['~.$ref: Forbidden: $ref is not supported']],
  ['unknown keyword', { type: 'string', patern: 'x' }, ['~.patern: Forbidden: no such keyword in a structural schema']],
  [
    'keyword of the wrong type',
    { type: 'string', minLength: 'x' },
    [
      '~.minLength: Invalid value: "string": spec.versions[0].schema.openAPIV3Schema.properties[spec].minLength in body must be of type integer: "string"',
    ],
  ],
  [
    'additionalProperties beside properties',
    { type: 'object', properties: { a: text }, additionalProperties: text },
    ['~.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive'],
  ],
  [
    'additionalProperties false',
    { type: 'object', additionalProperties: false },
    ['~.additionalProperties: Forbidden: additionalProperties cannot be set to false'],
  ],
  [
    'uniqueItems',
    { type: 'array', items: text, uniqueItems: true },
    ['~.uniqueItems: Forbidden: takes time quadratic in the length; x-kubernetes-list-type: set does the same'],
  ],
  [
    'pattern that RE2 does not have',
    { type: 'string', pattern: '(?=a)' },
    [
      '~.pattern: Invalid value: "(?=a)": must be a valid regular expression: error parsing regexp: invalid or unsupported Perl syntax: `(?=`',
    ],
  ],
  [
    'type in a branch',
    { type: 'object', properties: { a: text }, anyOf: [{ type: 'object' }] },
    ['~.anyOf[0].type: Forbidden: must be empty to be structural'],
  ],
  [
    'field specified in a branch alone',
    { type: 'object', allOf: [{ properties: { a: { minLength: 1 } } }] },
    [
      '~.properties[a]: Required value: because it is defined in spec.versions[0].schema.openAPIV3Schema.properties[spec].allOf[0].properties[a]',
    ],
  ],
  [
    'unknown fields kept: false',
    { type: 'object', 'x-kubernetes-preserve-unknown-fields': false },
    ['~.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined'],
  ],
  [
    'type beside int-or-string',
    { type: 'string', 'x-kubernetes-int-or-string': true },
    ['~.type: Invalid value: "string": must be empty if x-kubernetes-int-or-string is true'],
  ],
  [
    'embedded object of nothing',
    { type: 'object', 'x-kubernetes-embedded-resource': true },
    [
      '~.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields',
    ],
  ],
  [
    'list map by an optional key',
    { type: 'array', items: port, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] },
    ['~.x-kubernetes-list-map-keys[0]: Invalid value: "name": the property must have a default or be required'],
  ],
  [
    'list map without keys',
    { type: 'array', items: port, 'x-kubernetes-list-type': 'map' },
    ['~.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map'],
  ],
  [
    'set of objects',
    { type: 'array', items: port, 'x-kubernetes-list-type': 'set' },
    [
      '~.items.x-kubernetes-map-type: Invalid value: "": must be atomic as item of a list with x-kubernetes-list-type=set',
    ],
  ],
  [
    'default of the wrong type',
    { type: 'string', default: 1 },
    [
      '~.default: Invalid value: "integer": spec.versions[0].schema.openAPIV3Schema.properties[spec].default in body must be of type string: "integer"',
    ],
  ],
  [
    'default with an unknown field',
    { type: 'object', default: { z: 1 }, properties: { a: text } },
    ['~.default: Invalid value: {"z":1}: must not have unknown fields: z'],
  ],
  [
    'default that misses what is required',
    { type: 'object', default: {}, required: ['a'], properties: { a: { ...text, default: 'x' } } },
    ['~.default.a: Required value'],
  ],
])('structural: %s -> refused with its path', (_, spec, expected) => {
  expect(check(spec)).toEqual(expected);
});

test('structural: root of another type, fields of metadata -> refused', () => {
  const schema: Schema = {
    type: 'array',
    nullable: true,
    items: { type: 'string' },
    properties: { metadata: { type: 'object', properties: { labels: { type: 'object' } } }, kind: { type: 'integer' } },
  };
  expect(inOneGo(validateStructural(schema, root)).map(({ field }) => field.slice(root.length))).toEqual([
    '.type',
    '.nullable',
    '.properties[kind].type',
    '.properties[metadata]',
  ]);
});

test('structural: schema nested without end -> one error', () => {
  let schema: Schema = { type: 'string' };
  for (let level = 0; level < 100_000; level++) schema = { type: 'array', items: schema };
  expect(inOneGo(validateStructural(schema, root))).toHaveLength(1);
});

test('structural: wrong pattern beside a default -> the pattern is named, the default not looked at', () => {
  expect(check({ type: 'string', pattern: '(', default: 'x' })).toEqual([expect.stringMatching(/^~\.pattern: /)]);
});

// Schemas of the right shape with anything in them, to shake what the table above does not think of.
const keyword = fc.constantFrom(...Object.keys(keywordSchema.properties!));
const { schema: anySchema } = fc.letrec<{ schema: unknown }>((tie) => ({
  schema: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom({ type: 'string' }, { type: 'integer' }, null, true, 'object', 3),
    fc.record({
      type: fc.constant('object'),
      properties: fc.dictionary(fc.constantFrom('a', 'metadata', '__proto__'), tie('schema')),
    }),
    fc.record({ type: fc.constant('array'), items: tie('schema') }),
    fc.dictionary(keyword, fc.oneof(fc.jsonValue(), tie('schema'), fc.array(tie('schema'), { maxLength: 2 })), {
      maxKeys: 4,
    }),
  ),
}));

test('structural: any schema and any value -> answers, never exceptions; what is taken can be used', () => {
  fc.assert(
    fc.property(anySchema, fc.jsonValue(), (schema, value) => {
      const root = { type: 'object', properties: { spec: schema } } as Schema;
      if (inOneGo(validateStructural(root, 'schema')).length > 0) return;
      const object = { spec: structuredClone(value) };
      pruneUnknownFields(root, object);
      applySchemaDefaults(root, object);
      validateSchema(root, object);
      expect(pruneUnknownFields(root, object)).toEqual([]);
    }),
    { numRuns: 500 },
  );
});

test('structural: patterns that take long to compile -> refused before they are; one pattern in many fields -> taken', () => {
  const fields = (patternOf: (at: number) => string) =>
    Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`f${at}`, { type: 'string', pattern: patternOf(at) }]));
  const errorsOf = (properties: object) =>
    inOneGo(validateStructural({ type: 'object', properties } as Schema, root)).map(({ message }) => message);
  const refused = ['Invalid value: "": must not have so many and such large patterns: they take too long to compile'];
  expect(errorsOf({ one: { type: 'string', pattern: '.{1000}'.repeat(1400) } })).toEqual(refused);
  expect(errorsOf(fields((at) => `^[a-z]{1,100}${at}$`))).toEqual(refused);
  expect(errorsOf(fields(() => '^[a-z]{1,100}$'))).toEqual([]);
});

test('structural: many fields -> checked in many pieces; few -> in few', () => {
  const piecesOf = (fieldCount: number) => {
    const properties = Object.fromEntries(Array.from({ length: fieldCount }, (_, at) => [`f${at}`, text]));
    return [...validateStructural({ type: 'object', properties } as Schema, root)].length;
  };
  expect(piecesOf(10)).toBe(1);
  expect(piecesOf(10_000)).toBeGreaterThan(100);
});

test('structural: costly patterns -> about one of them in a piece', () => {
  const properties = Object.fromEntries(
    Array.from({ length: 10 }, (_, at) => [`f${at}`, { type: 'string', pattern: `${at}(a?){900}` }]),
  );
  const schema = { type: 'object', properties } as Schema;
  expect([...validateStructural(schema, root)].length).toBeGreaterThan(3);
  expect(inOneGo(validateStructural(schema, root))).toEqual([]);
});

test('structural: deep in a schema -> looked at a few times, not once for each level around it', () => {
  let reads = 0;
  let schema: unknown = {
    type: 'string',
    get description() {
      reads++;
      return 'x';
    },
  };
  for (let level = 0; level < 100; level++) schema = { type: 'object', properties: { n: schema } };
  expect(inOneGo(validateStructural(schema as Schema, root))).toEqual([]);
  expect(reads).toBeLessThan(20);
});

test('structural: defaults at every level around a large list of choices -> the choices are read a few times', () => {
  let reads = 0;
  const choices = Array.from({ length: 10 }, (_, at) => ({ a: at }));
  Object.defineProperty(choices[0], 'b', { enumerable: true, get: () => `${++reads}` });
  let schema: unknown = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, enum: choices };
  for (let level = 0; level < 50; level++) schema = { type: 'object', default: {}, properties: { n: schema } };
  expect(inOneGo(validateStructural(schema as Schema, root))).toEqual([]);
  expect(reads).toBeLessThan(20);
});

test('structural: defaults that take long to match, together -> refused; one of them -> taken', () => {
  const errorsOf = (count: number) => {
    const field = { type: 'string', pattern: '^(a?){300}$', default: 'a'.repeat(100) };
    const properties = Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, field]));
    return inOneGo(validateStructural({ type: 'object', properties } as Schema, root)).map(({ message }) => message);
  };
  expect(errorsOf(1)).toEqual([]);
  expect(errorsOf(200)).toContainEqual(expect.stringContaining('take too long'));
});

test('structural: a branch inside a branch names what is not specified -> the path of the place outside', () => {
  const spec = {
    type: 'object',
    properties: { 'a.not': { type: 'object', properties: { b: text } } },
    allOf: [{ properties: { 'a.not': { properties: { c: { minLength: 1 } } } } }],
  };
  const missing = `${root}.properties[spec].allOf[0].properties[a.not].properties[c]`;
  expect(check(spec)).toEqual([
    `~.properties[a.not].properties[c]: Required value: because it is defined in ${missing}`,
  ]);
});

import { describe, expect, test } from 'vitest';
import { compileSchema } from './compile.ts';
import type { Schema } from './schema.ts';
import { validateSchema } from './validate.ts';
import { nestingDepthMax } from './walk.ts';

function messages(schema: Schema, value: unknown, path = ''): string[] {
  return validateSchema(schema, value, path).map(({ field, message }) => `${field}: ${message}`);
}

function specOf(schema: Schema, value: unknown): string[] {
  return messages({ type: 'object', properties: { spec: schema } }, { spec: value });
}

describe('validateSchema', () => {
  const cases: { situation: string; schema: Schema; bad: unknown; good: unknown; says: string[] }[] = [
    {
      situation: 'string where an integer is wanted',
      schema: { type: 'integer' },
      bad: 'x',
      good: 3,
      says: ['spec: Invalid value: "string": spec in body must be of type integer: "string"'],
    },
    {
      situation: 'fraction where an integer is wanted',
      schema: { type: 'integer' },
      bad: 1.5,
      good: 2.0,
      says: ['spec: Invalid value: "number": spec in body must be of type integer: "number"'],
    },
    {
      situation: 'null where it is not allowed',
      schema: { type: 'string' },
      bad: null,
      good: '',
      says: ['spec: Invalid value: "null": spec in body must be of type string: "null"'],
    },
    {
      situation: 'array where an object is wanted',
      schema: { type: 'object' },
      bad: [],
      good: {},
      says: ['spec: Invalid value: "array": spec in body must be of type object: "array"'],
    },
    {
      situation: 'boolean for an int-or-string',
      schema: { 'x-kubernetes-int-or-string': true },
      bad: true,
      good: '80%',
      says: ['spec: Invalid value: "boolean": spec in body must be of type integer,string: "boolean"'],
    },
    {
      situation: 'missing field',
      schema: { type: 'object', required: ['a', 'b'], properties: { a: { type: 'string' } } },
      bad: { a: 'x' },
      good: { a: 'x', b: null },
      says: ['spec.b: Required value'],
    },
    {
      situation: 'not in the enum',
      schema: { type: 'string', enum: ['A', 'B'] },
      bad: 'C',
      good: 'A',
      says: ['spec: Unsupported value: "C": supported values: "A", "B"'],
    },
    {
      situation: 'object not in the enum',
      schema: { enum: [{ a: 1, b: 2 }] },
      bad: { a: 1 },
      good: { b: 2, a: 1 },
      says: ['spec: Unsupported value: {"a":1}: supported values: "{\\"a\\":1,\\"b\\":2}"'],
    },
    {
      situation: 'pattern not found',
      schema: { type: 'string', pattern: '^[a-z]+$' },
      bad: 'A1',
      good: 'abc',
      says: [`spec: Invalid value: "A1": spec in body should match '^[a-z]+$'`],
    },
    {
      situation: 'below the minimum',
      schema: { type: 'integer', minimum: 1 },
      bad: 0,
      good: 1,
      says: ['spec: Invalid value: 0: spec in body should be greater than or equal to 1'],
    },
    {
      situation: 'at an exclusive minimum',
      schema: { type: 'number', minimum: 1, exclusiveMinimum: true },
      bad: 1,
      good: 1.1,
      says: ['spec: Invalid value: 1: spec in body should be greater than 1'],
    },
    {
      situation: 'above the maximum',
      schema: { type: 'integer', maximum: 9 },
      bad: 10,
      good: 9,
      says: ['spec: Invalid value: 10: spec in body should be less than or equal to 9'],
    },
    {
      situation: 'at an exclusive maximum',
      schema: { type: 'integer', maximum: 9, exclusiveMaximum: true },
      bad: 9,
      good: 8,
      says: ['spec: Invalid value: 9: spec in body should be less than 9'],
    },
    {
      situation: 'not a multiple',
      schema: { type: 'number', multipleOf: 0.1 },
      bad: 0.25,
      good: 0.3,
      says: ['spec: Invalid value: 0.25: spec in body should be a multiple of 0.1'],
    },
    {
      situation: 'too short',
      schema: { type: 'string', minLength: 2 },
      bad: '😀',
      good: '😀a',
      says: ['spec: Invalid value: "😀": spec in body should be at least 2 chars long'],
    },
    {
      situation: 'too long, counted in code points',
      schema: { type: 'string', maxLength: 2 },
      bad: '😀😀😀',
      good: '😀😀',
      says: ['spec: Too long: may not be more than 2 bytes'],
    },
    {
      situation: 'too few items',
      schema: { type: 'array', minItems: 1, items: { type: 'string' } },
      bad: [],
      good: ['a'],
      says: ['spec: Invalid value: 0: spec in body should have at least 1 items'],
    },
    {
      situation: 'too many items',
      schema: { type: 'array', maxItems: 1, items: { type: 'string' } },
      bad: ['a', 'b'],
      good: ['a'],
      says: ['spec: Too many: 2: must have at most 1 items'],
    },
    {
      situation: 'too few properties',
      schema: { type: 'object', minProperties: 1 },
      bad: {},
      good: { a: 1 },
      says: ['spec: Invalid value: {}: spec in body should have at least 1 properties'],
    },
    {
      situation: 'too many properties',
      schema: { type: 'object', maxProperties: 1 },
      bad: { a: 1, b: 2 },
      good: { a: 1 },
      says: ['spec: Too many: 2: must have at most 1 items'],
    },
    {
      situation: 'equal items',
      schema: { type: 'array', uniqueItems: true },
      bad: [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      good: [{ a: 1 }, { a: 2 }],
      says: [`spec: Invalid value: [{"a":1,"b":2},{"b":2,"a":1}]: spec in body shouldn't contain duplicates`],
    },
    {
      situation: 'repeated member of a set',
      schema: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
      bad: ['a', 'b', 'a'],
      good: ['a', 'b'],
      says: ['spec[2]: Duplicate value: "a"'],
    },
    {
      situation: 'repeated key of a list map, one by default',
      schema: {
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['port', 'protocol'],
        items: {
          type: 'object',
          properties: { port: { type: 'integer' }, protocol: { type: 'string', default: 'TCP' } },
        },
      },
      bad: [{ port: 80 }, { port: 80, protocol: 'TCP' }],
      good: [{ port: 80 }, { port: 80, protocol: 'UDP' }],
      says: ['spec[1]: Duplicate value: {"port":80,"protocol":"TCP"}'],
    },
    {
      situation: 'wrong value of a map',
      schema: { type: 'object', additionalProperties: { type: 'string' } },
      bad: { a: 'x', b: 1 },
      good: { a: 'x' },
      says: ['spec.b: Invalid value: "integer": spec.b in body must be of type string: "integer"'],
    },
    {
      situation: 'every branch of anyOf fails',
      schema: { anyOf: [{ required: ['a'] }, { required: ['b', 'c'] }] },
      bad: {},
      good: { b: 1, c: 2 },
      says: ['spec: Invalid value: "": "spec" must validate at least one schema (anyOf)', 'spec.a: Required value'],
    },
    {
      situation: 'two branches of oneOf hold',
      schema: { oneOf: [{ required: ['a'] }, { required: ['b'] }] },
      bad: { a: 1, b: 2 },
      good: { a: 1 },
      says: [
        'spec: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives',
      ],
    },
    {
      situation: 'no branch of oneOf holds',
      schema: { oneOf: [{ required: ['a'] }, { required: ['b'] }] },
      bad: {},
      good: { b: 1 },
      says: [
        'spec: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found none valid',
        'spec.a: Required value',
      ],
    },
    {
      situation: 'a branch of allOf fails',
      schema: { allOf: [{ minimum: 2 }, { maximum: 4 }] },
      bad: 5,
      good: 3,
      says: ['spec: Invalid value: 5: spec in body should be less than or equal to 4'],
    },
    {
      situation: 'what must not be is',
      schema: { not: { required: ['a'] } },
      bad: { a: 1 },
      good: { b: 1 },
      says: ['spec: Invalid value: "": "spec" must not validate the schema (not)'],
    },
    {
      situation: 'embedded object without a type',
      schema: {
        type: 'object',
        'x-kubernetes-embedded-resource': true,
        'x-kubernetes-preserve-unknown-fields': true,
      },
      bad: { kind: '' },
      good: { apiVersion: 'v1', kind: 'Pod' },
      says: ['spec.apiVersion: Required value: must not be empty', 'spec.kind: Required value: must not be empty'],
    },
    {
      situation: 'int32 out of range',
      schema: { type: 'integer', format: 'int32' },
      bad: 2 ** 31,
      good: -(2 ** 31),
      says: ['spec: Invalid value: 2147483648: spec in body must be of type integer with format int32'],
    },
    {
      situation: 'wrong format',
      schema: { type: 'string', format: 'cidr' },
      bad: '10.0.0.0/33',
      good: '10.0.0.0/8',
      says: ['spec: Invalid value: "10.0.0.0/33": spec in body must be of type cidr: "10.0.0.0/33"'],
    },
  ];
  test.each(cases)('validateSchema: $situation -> named with its path', ({ schema, bad, good, says }) => {
    expect(specOf(schema, bad)).toEqual(says);
    expect(specOf(schema, good)).toEqual([]);
  });

  test('validateSchema: null where nullable -> fine, whatever else the schema says', () => {
    expect(specOf({ type: 'string', nullable: true, enum: ['a'] }, null)).toEqual([]);
  });

  test('validateSchema: several things wrong at several depths -> all of them at once', () => {
    const port: Schema = {
      type: 'object',
      required: ['port'],
      properties: { port: { type: 'integer', maximum: 65535 }, name: { type: 'string', maxLength: 3 } },
    };
    const schema: Schema = { type: 'object', properties: { ports: { type: 'array', items: port } } };
    expect(messages(schema, { ports: [{ port: 70000, name: 'long' }, {}, { port: '80' }] }, 'spec')).toEqual([
      'spec.ports[0].port: Invalid value: 70000: spec.ports[0].port in body should be less than or equal to 65535',
      'spec.ports[0].name: Too long: may not be more than 3 bytes',
      'spec.ports[1].port: Required value',
      'spec.ports[2].port: Invalid value: "string": spec.ports[2].port in body must be of type integer: "string"',
    ]);
  });

  test('validateSchema: names of Object.prototype as keys -> keys like any other', () => {
    const schema: Schema = {
      type: 'object',
      required: ['toString'],
      properties: { ['constructor' as string]: { type: 'string' } },
    };
    expect(messages(schema, JSON.parse('{"constructor": 1, "__proto__": {}}'))).toEqual([
      'toString: Required value',
      'constructor: Invalid value: "integer": constructor in body must be of type string: "integer"',
    ]);
  });

  test('validateSchema: value nested a million levels deep -> one error, no broken stack', () => {
    let value: unknown = {};
    for (let level = 0; level < 1_000_000; level++) value = level % 2 === 0 ? { value } : [value];
    const schema: Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    expect(messages(schema, value, 'spec')).toEqual([
      `spec: Invalid value: "": must not be nested more than ${nestingDepthMax} levels deep`,
    ]);
  });

  test('validateSchema: 100,000 wrong items -> a bounded number of errors', () => {
    const schema: Schema = { type: 'array', items: { type: 'string' } };
    expect(validateSchema(schema, Array(100_000).fill(1)).length).toBe(500);
  });

  test('validateSchema: a huge value is wrong -> the message shows its beginning', () => {
    const [error] = validateSchema({ type: 'string', pattern: '^b' }, 'a'.repeat(1_000_000));
    expect(error!.message.length).toBeLessThan(1200);
  });

  test('validateSchema: none of ten thousand choices -> the message lists the first ones', () => {
    const choices = Array.from({ length: 10_000 }, (_, at) => `choice-${at}`);
    const [error] = validateSchema({ type: 'string', enum: choices }, 'x');
    expect(error!.message).toMatch(/: supported values: "choice-0", "choice-1", .* and \d+ more$/);
    expect(error!.message.length).toBeLessThan(5000);
  });

  test('validateSchema: a field that an object does not have -> its pattern is not compiled', () => {
    const compiled = compileSchema({ type: 'object', properties: { a: { type: 'string', pattern: '(' } } });
    expect(validateSchema(compiled, { b: 1 })).toEqual([]);
    expect(() => validateSchema(compiled, { a: 'x' })).toThrow('pattern (');
  });

  test('validateSchema: compiled once -> the same answers', () => {
    const compiled = compileSchema({ type: 'string', pattern: '^a+$' });
    expect(validateSchema(compiled, 'aaa')).toEqual([]);
    expect(validateSchema(compiled, 'b')).toHaveLength(1);
  });
});

test('validate: costly patterns and choices on a large object -> one error that says so, soon', () => {
  const text = { type: 'string', pattern: '^(a|aa|aaa)*(b?a){0,100}$' } as const;
  const startMs = performance.now();
  expect(validateSchema(text, 'a'.repeat(3_000_000)).map(({ message }) => message)).toEqual([
    expect.stringContaining('take too long on an object of this size'),
  ]);
  const choices = Array.from({ length: 50 }, (_, at) => ({ pattern: `^x{1,${at + 1}}y$` }));
  const items = { type: 'array', items: { type: 'string', anyOf: choices } } as const;
  const found = validateSchema(items, Array(50_000).fill('i'));
  expect(found.some(({ message }) => message.includes('take too long'))).toBe(true);
  // Half a minute when every character was matched.
  expect(performance.now() - startMs).toBeLessThan(5_000);
});

// The keywords that a schema in a definition may have, and what their values look like. One level: schemas inside
// schemas are visited one by one.

import type { Schema } from './schema.ts';

const flag: Schema = { type: 'boolean' };
const text: Schema = { type: 'string' };
const texts: Schema = { type: 'array', items: text };
const number: Schema = { type: 'number' };
const count: Schema = { type: 'integer', format: 'int64', minimum: 0 };
const anything: Schema = { 'x-kubernetes-preserve-unknown-fields': true };
const schema: Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
const schemas: Schema = { type: 'array', items: schema };

const rule: Schema = {
  type: 'object',
  required: ['rule'],
  properties: {
    rule: text,
    message: text,
    messageExpression: text,
    reason: text,
    fieldPath: text,
    optionalOldSelf: flag,
  },
};

const schemaTypes = ['array', 'boolean', 'integer', 'number', 'object', 'string'] as const;

export const keywordSchema: Schema = {
  type: 'object',
  properties: {
    type: { type: 'string', enum: schemaTypes },
    format: text,
    description: text,
    title: text,
    externalDocs: { type: 'object', properties: { description: text, url: text } },
    example: anything,
    nullable: flag,
    default: anything,
    enum: { type: 'array', items: anything, minItems: 1 },
    properties: { type: 'object', additionalProperties: schema },
    additionalProperties: anything,
    required: texts,
    items: schema,
    minItems: count,
    maxItems: count,
    uniqueItems: flag,
    minProperties: count,
    maxProperties: count,
    minLength: count,
    maxLength: count,
    pattern: text,
    minimum: number,
    maximum: number,
    exclusiveMinimum: flag,
    exclusiveMaximum: flag,
    multipleOf: { type: 'number', minimum: 0, exclusiveMinimum: true },
    allOf: schemas,
    anyOf: schemas,
    oneOf: schemas,
    not: schema,
    'x-kubernetes-int-or-string': flag,
    'x-kubernetes-preserve-unknown-fields': flag,
    'x-kubernetes-embedded-resource': flag,
    'x-kubernetes-list-type': { type: 'string', enum: ['atomic', 'set', 'map'] },
    'x-kubernetes-list-map-keys': texts,
    'x-kubernetes-map-type': { type: 'string', enum: ['atomic', 'granular'] },
    'x-kubernetes-validations': { type: 'array', items: rule },
  },
};

/** Known from JSON schema and OpenAPI, and not allowed; the reason goes to who wrote it. */
export const forbiddenKeywords: ReadonlyMap<string, string> = new Map([
  ['$ref', '$ref is not supported'],
  ['$schema', 'not supported'],
  ['id', 'id is not supported'],
  ['definitions', 'definitions is not supported'],
  ['dependencies', 'dependencies is not supported'],
  ['patternProperties', 'patternProperties is not supported'],
  ['additionalItems', 'additionalItems is not supported'],
  ['deprecated', 'deprecated is not supported'],
  ['discriminator', 'discriminator is not supported'],
  ['readOnly', 'readOnly is not supported'],
  ['writeOnly', 'writeOnly is not supported'],
  ['xml', 'xml is not supported'],
]);

/** Keywords that a schema inside allOf, anyOf, oneOf or not must leave to the schema around it. */
export const structureKeywords = [
  'type',
  'description',
  'title',
  'default',
  'nullable',
  'additionalProperties',
  'x-kubernetes-int-or-string',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-embedded-resource',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
] as const;

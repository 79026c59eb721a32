// Declares the values of a schema as types of the Common Expression Language, and turns JSON into values of them. What a schema
// leaves open (unknown fields) has no type, and rules cannot see it.

import { type Environment, parse } from '@marcbachmann/cel-js';
import { isSameJson } from '../../base/json.ts';
import type { JsonValue, Schema } from '../schema/schema.ts';
import { identifierOf } from './names.ts';

export interface Declared {
  /** As the environment knows it: `string`, `list<Object3>`. */
  readonly type: string;
  toCel(value: JsonValue): unknown;
}

const text: Schema = { type: 'string' };
const metadata: Schema = { type: 'object', properties: { name: text, generateName: text } };
const parseDuration = parse('duration(text)');
const plain: Declared['toCel'] = (value) => value;

export class Declarations {
  readonly #environment: Environment;
  readonly #known = new Map<Schema, Declared | undefined>();
  #objects = 0;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /** The whole object: rules see its type, and of its metadata the name alone. */
  root(schema: Schema): Declared | undefined {
    return this.of({ ...schema, 'x-kubernetes-embedded-resource': true });
  }

  /** Undefined if the schema does not say what the value is. */
  of(schema: Schema): Declared | undefined {
    if (this.#known.has(schema)) return this.#known.get(schema);
    const declared = this.#declare(schema);
    this.#known.set(schema, declared);
    return declared;
  }

  #declare(schema: Schema): Declared | undefined {
    if (schema['x-kubernetes-int-or-string'] === true) return { type: 'dyn', toCel: numberOrText };
    switch (schema.type) {
      case 'boolean':
        return { type: 'bool', toCel: plain };
      case 'integer':
        return { type: 'int', toCel: (value) => BigInt(Math.trunc(Number(value))) };
      case 'number':
        return { type: 'double', toCel: Number };
      case 'string':
        return declareText(schema.format);
      case 'array':
        return this.#declareList(schema);
      case 'object':
        return typeof schema.additionalProperties === 'object'
          ? this.#declareMap(schema.additionalProperties)
          : this.#declareObject(schema);
      default:
        return undefined;
    }
  }

  #declareList({ items }: Schema): Declared | undefined {
    const item = items && this.of(items);
    if (item === undefined) return undefined;
    return { type: `list<${item.type}>`, toCel: (value) => (value as JsonValue[]).map((each) => item.toCel(each)) };
  }

  #declareMap(values: Schema): Declared | undefined {
    const value = this.of(values);
    if (value === undefined) return undefined;
    return {
      type: `map<string, ${value.type}>`,
      toCel: (map) => new Map(Object.entries(map as object).map(([key, each]) => [key, value.toCel(each)])),
    };
  }

  #declareObject(schema: Schema): Declared | undefined {
    const isResource = schema['x-kubernetes-embedded-resource'] === true;
    const properties = { ...schema.properties, ...(isResource && { apiVersion: text, kind: text, metadata }) };
    if (Object.keys(properties).length === 0) return undefined;
    const fields = new Map<string, { readonly identifier: string; readonly declared: Declared }>();
    for (const [name, property] of Object.entries(properties)) {
      const identifier = identifierOf(name);
      const declared = this.of(property);
      if (identifier !== undefined && declared !== undefined) fields.set(name, { identifier, declared });
    }
    const ctor = class {};
    const type = `Object${this.#objects++}`;
    const types = [...fields.values()].map(({ identifier, declared }) => [identifier, declared.type]);
    this.#environment.registerType(type, { ctor, fields: Object.fromEntries(types) });
    this.#environment.registerOperator(`${type} == ${type}`, (one: unknown, other: unknown) => isSameValue(one, other));
    return {
      type,
      toCel: (value) => {
        const object = new ctor() as Record<string, unknown>;
        for (const [name, each] of Object.entries(value as { [name: string]: JsonValue })) {
          const field = fields.get(name);
          // A null is a field that is not there.
          if (field !== undefined && each !== null) object[field.identifier] = field.declared.toCel(each);
        }
        return object;
      },
    };
  }
}

function declareText(format: string | undefined): Declared {
  if (format === 'date-time' || format === 'date')
    return { type: 'google.protobuf.Timestamp', toCel: (value) => new Date(String(value)) };
  if (format === 'duration')
    return { type: 'google.protobuf.Duration', toCel: (value) => parseDuration({ text: value }) };
  if (format === 'byte') return { type: 'bytes', toCel: (value) => Buffer.from(String(value), 'base64') };
  return { type: 'string', toCel: plain };
}

function numberOrText(value: JsonValue): unknown {
  return typeof value === 'number' ? BigInt(Math.trunc(value)) : value;
}

function isSameValue(one: unknown, other: unknown): boolean {
  return isSameJson(comparable(one), comparable(other));
}

/** Integers, times and maps in a form that can be compared as JSON. */
function comparable(value: unknown): unknown {
  if (typeof value === 'bigint') return { int: String(value) };
  if (value instanceof Date) return { ms: value.getTime() };
  if (value instanceof Uint8Array) return { bytes: Buffer.from(value).toString('base64') };
  if (Array.isArray(value)) return value.map(comparable);
  if (value instanceof Map) return { map: comparable(Object.fromEntries(value)) };
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, comparable(each)]));
}

// How large a value may be that a rule works on: as far as a schema bounds it, or as large as the values of an object are.

import type { JsonValue, Schema } from '../schema/schema.ts';
import { identifierOf } from './names.ts';

export interface Extent {
  /** Characters of a text, items of a list, entries of a map; 1 for anything else. */
  readonly length: number;
  readonly isMap: boolean;
  /** The schema bounds it by nothing but the size of a request. */
  readonly isOpen: boolean;
  /** A field of an object, by its identifier. */
  field(identifier: string): Extent;
  /** An item of a list, a value of a map. */
  item(): Extent;
}

/** As Kubernetes takes it for the largest request. */
const requestBytes = 3 * 1024 * 1024;
const timeLength = 30;
/** Length of the name of a map's entry. */
const keyLength = 63;

export function scalar(length = 1): Extent {
  const extent: Extent = { length, isMap: false, isOpen: false, field: () => extent, item: () => scalar() };
  return extent;
}

export const mapKey = scalar(keyLength);

export function listOf(length: number, item: Extent): Extent {
  return { length, isMap: false, isOpen: false, field: () => item, item: () => item };
}

/** The larger of both in every respect. */
export function larger(one: Extent, other: Extent): Extent {
  return {
    length: Math.max(one.length, other.length),
    isMap: one.isMap || other.isMap,
    isOpen: one.isOpen && other.isOpen,
    field: (identifier) => larger(one.field(identifier), other.field(identifier)),
    item: () => larger(one.item(), other.item()),
  };
}

/** What the schema allows. */
export function extentOfSchema(schema: Schema | undefined): Extent {
  if (schema === undefined) return scalar(keyLength);
  const values = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;
  return {
    length: lengthMax(schema),
    isMap: values !== undefined,
    isOpen: schema.type === 'string' && lengthMax(schema) === requestBytes,
    field: (identifier) => extentOfSchema(propertyOf(schema, identifier)),
    item: () => extentOfSchema(schema.items ?? values),
  };
}

/** How many items or entries the schema allows, or how many characters. */
export function lengthMax(schema: Schema): number {
  const { type, items, additionalProperties } = schema;
  if (type === 'array') return schema.maxItems ?? Math.floor(requestBytes / (bytesMin(items) + 1));
  if (type === 'object' && typeof additionalProperties === 'object')
    return schema.maxProperties ?? Math.floor(requestBytes / (bytesMin(additionalProperties) + 5));
  if (type !== 'string') return 1;
  if (schema.maxLength !== undefined) return schema.maxLength;
  if (schema.enum !== undefined) return Math.max(1, ...schema.enum.map((value) => String(value).length));
  return schema.format === 'date-time' || schema.format === 'date' || schema.format === 'duration'
    ? timeLength
    : requestBytes;
}

/** The least that a value takes in a request. */
function bytesMin(schema: Schema | undefined): number {
  if (schema === undefined) return 1;
  const { type, properties = {}, required = [] } = schema;
  if (type === 'string') return 2 + (schema.minLength ?? 0);
  if (type === 'array') return 2 + (schema.minItems ?? 0) * (bytesMin(schema.items) + 1);
  if (type !== 'object') return 1;
  return required.reduce((bytes, name) => bytes + name.length + 4 + bytesMin(properties[name]), 2);
}

function propertyOf({ properties = {} }: Schema, identifier: string): Schema | undefined {
  if (Object.hasOwn(properties, identifier)) return properties[identifier];
  const name = Object.keys(properties).find((each) => identifierOf(each) === identifier);
  return name === undefined ? undefined : properties[name];
}

/** What these values of one field are. */
export function extentOfValues(values: readonly (JsonValue | undefined)[]): Extent {
  return {
    length: values.reduce<number>((most, value) => Math.max(most, lengthOf(value)), 0),
    isMap: values.some(isObject),
    isOpen: false,
    field: (identifier) =>
      extentOfValues(values.flatMap((value) => (isObject(value) ? valueAt(value, identifier) : []))),
    item: () =>
      extentOfValues(
        values.flatMap((value) => (Array.isArray(value) ? value : isObject(value) ? Object.values(value) : [])),
      ),
  };
}

function valueAt(object: { readonly [name: string]: JsonValue }, identifier: string): JsonValue[] {
  if (Object.hasOwn(object, identifier)) return [object[identifier]!];
  const name = Object.keys(object).find((each) => identifierOf(each) === identifier);
  return name === undefined ? [] : [object[name]!];
}

function lengthOf(value: JsonValue | undefined): number {
  if (typeof value === 'string' || Array.isArray(value)) return value.length;
  return isObject(value) ? Object.keys(value).length : 1;
}

function isObject(value: JsonValue | undefined): value is { [name: string]: JsonValue } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

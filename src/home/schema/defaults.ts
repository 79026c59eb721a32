// Fills in the defaults of a schema, in place, as structural defaulting does: a default is set where its parent exists;
// a null where the schema allows none gives way to the default, or goes.

import type { JsonValue, Schema } from './schema.ts';

type JsonObject = Record<string, unknown>;

export function applySchemaDefaults(schema: Schema, value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) defaultItems(schema.items, value);
  else defaultProperties(schema, value as JsonObject);
}

function defaultItems(items: Schema | undefined, list: unknown[]): void {
  if (items === undefined) return;
  for (let index = 0; index < list.length; index++) {
    if (isUnwantedNull(items, list[index]) && items.default !== undefined) list[index] = copy(items.default);
    applySchemaDefaults(items, list[index]);
  }
}

function defaultProperties(schema: Schema, object: JsonObject): void {
  const { properties, additionalProperties } = schema;
  for (const [name, value] of defaultsOf(schema)) if (!Object.hasOwn(object, name)) object[name] = copy(value);
  const others = typeof additionalProperties === 'object' ? additionalProperties : undefined;
  for (const name of Object.keys(object)) {
    const property = properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : others;
    if (property !== undefined) defaultMember(property, object, name);
  }
}

type Default = readonly [name: string, value: JsonValue];

// A memo of constants: most schemas have no defaults among many properties.
const known = new WeakMap<Schema, readonly Default[]>();

function defaultsOf(schema: Schema): readonly Default[] {
  let defaults = known.get(schema);
  if (defaults !== undefined) return defaults;
  defaults = Object.entries(schema.properties ?? {}).flatMap(([name, property]): Default[] =>
    property.default === undefined ? [] : [[name, property.default]],
  );
  known.set(schema, defaults);
  return defaults;
}

function defaultMember(property: Schema, object: JsonObject, name: string): void {
  if (isUnwantedNull(property, object[name])) {
    if (property.default === undefined) {
      delete object[name];
      return;
    }
    object[name] = copy(property.default);
  }
  applySchemaDefaults(property, object[name]);
}

function isUnwantedNull(schema: Schema, value: unknown): boolean {
  return value === null && schema.nullable !== true;
}

function copy(value: JsonValue): JsonValue {
  return typeof value === 'object' && value !== null ? structuredClone(value) : value;
}

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
  for (const name in properties) {
    const property = properties[name]!;
    if (property.default === undefined) continue;
    if (!Object.hasOwn(object, name)) object[name] = copy(property.default);
  }
  const others = typeof additionalProperties === 'object' ? additionalProperties : undefined;
  for (const name of Object.keys(object)) {
    const property = properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : others;
    if (property !== undefined) defaultMember(property, object, name);
  }
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

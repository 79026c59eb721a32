// Removes what a schema does not specify, in place, and says where it was. The root of an object, and of an object
// embedded in another, always has apiVersion, kind and metadata.

import { objectMetaSchema } from './object-meta.ts';
import type { Schema } from './schema.ts';
import { joinPath } from './walk.ts';

type JsonObject = Record<string, unknown>;

interface Pruning {
  readonly path: (string | number)[];
  readonly removed: string[];
}

/** Names of removed fields are listed up to this number. */
const removedNamesMax = 100;

/** Paths of what was removed: `spec.foo`, `spec.ports[0].foo`. */
export function pruneUnknownFields(schema: Schema, value: unknown, options: { isRoot?: boolean } = {}): string[] {
  const pruning: Pruning = { path: [], removed: [] };
  prune(schema, value, pruning, options.isRoot ?? true);
  return pruning.removed;
}

function prune(schema: Schema, value: unknown, pruning: Pruning, isResource: boolean): void {
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) pruneItems(schema, value, pruning);
  else pruneObject(schema, value as JsonObject, pruning, isResource);
}

function pruneItems(schema: Schema, list: unknown[], pruning: Pruning): void {
  const { items } = schema;
  if (items === undefined) return;
  for (let index = 0; index < list.length; index++) {
    pruning.path.push(index);
    prune(items, list[index], pruning, isEmbedded(items));
    pruning.path.pop();
  }
}

function pruneObject(schema: Schema, object: JsonObject, pruning: Pruning, isResource: boolean): void {
  for (const name of Object.keys(object)) {
    const known = memberSchema(schema, name, isResource);
    if (known === 'any') continue;
    pruning.path.push(name);
    if (known === undefined) {
      delete object[name];
      if (pruning.removed.length < removedNamesMax) pruning.removed.push(pruning.path.reduce<string>(joinPath, ''));
    } else prune(known, object[name], pruning, isEmbedded(known));
    pruning.path.pop();
  }
}

/** The schema of a member; `any` if it may be whatever it is; undefined if it is not specified. */
function memberSchema(schema: Schema, name: string, isResource: boolean): Schema | 'any' | undefined {
  const { properties, additionalProperties } = schema;
  const property = properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined;
  if (isResource && name === 'metadata') return hasProperties(property) ? property : objectMetaSchema;
  if (property !== undefined) return property;
  if (isResource && (name === 'apiVersion' || name === 'kind')) return 'any';
  if (typeof additionalProperties === 'object') return additionalProperties;
  if (additionalProperties === true || schema['x-kubernetes-preserve-unknown-fields'] === true) return 'any';
  return undefined;
}

// A definition may constrain metadata.name alone; that does not make every other field of metadata unknown.
function hasProperties(schema: Schema | undefined): schema is Schema {
  return schema?.properties?.['labels'] !== undefined;
}

function isEmbedded(schema: Schema): boolean {
  return schema['x-kubernetes-embedded-resource'] === true;
}

// Checks of objects and arrays: what must be there, how many, which items repeat, and the values inside.

import { canonicalJson } from '../../base/json.ts';
import { duplicate, invalid, required, tooMany, wrongType } from '../../kube/objects/field-error.ts';
import type { Schema } from './schema.ts';
import { type Check, type Compile, joinPath, pathOf, report, shown, type Walk } from './walk.ts';

type JsonObject = Record<string, unknown>;

export function objectChecks(schema: Schema, compile: Compile): Check[] {
  const checks = [requiredCheck(schema), sizeCheck(schema), propertiesCheck(schema, compile), embeddedCheck(schema)];
  return checks.filter((check) => check !== undefined);
}

function requiredCheck({ required: names = [] }: Schema): Check | undefined {
  if (names.length === 0) return undefined;
  return (value, walk) => {
    for (const name of names) {
      if (!Object.hasOwn(value as JsonObject, name)) report(walk, required(joinPath(pathOf(walk), name)));
    }
  };
}

function sizeCheck({ minProperties = 0, maxProperties = Number.POSITIVE_INFINITY }: Schema): Check | undefined {
  if (minProperties === 0 && maxProperties === Number.POSITIVE_INFINITY) return undefined;
  return (value, walk) => {
    const count = Object.keys(value as JsonObject).length;
    if (count > maxProperties) report(walk, tooMany(pathOf(walk), count, maxProperties));
    if (count >= minProperties) return;
    const path = pathOf(walk);
    report(walk, invalid(path, shown(value), `${path} in body should have at least ${minProperties} properties`));
  };
}

function propertiesCheck(schema: Schema, compile: Compile): Check | undefined {
  const { properties = {}, additionalProperties } = schema;
  const others = typeof additionalProperties === 'object' ? compile(additionalProperties) : undefined;
  if (others === undefined && Object.keys(properties).length === 0) return undefined;
  // Compiled when first used: a kind may have ten thousand fields, and an object three of them.
  const byName = new Map<string, Check>();
  const compiled = (name: string) => {
    const check = compile(properties[name]!);
    byName.set(name, check);
    return check;
  };
  return (value, walk) => {
    const object = value as JsonObject;
    for (const name in object) {
      const check = byName.get(name) ?? (Object.hasOwn(properties, name) ? compiled(name) : others);
      if (check !== undefined) descend(check, name, object[name], walk);
    }
  };
}

function descend(check: Check, step: string | number, value: unknown, walk: Walk): void {
  walk.path.push(step);
  check(value, walk);
  walk.path.pop();
}

// A whole object inside another one names its own type; its other metadata is checked when it is created.
function embeddedCheck(schema: Schema): Check | undefined {
  if (schema['x-kubernetes-embedded-resource'] !== true) return undefined;
  return (value, walk) => {
    const path = pathOf(walk);
    for (const name of ['apiVersion', 'kind']) {
      const found = (value as JsonObject)[name];
      if (found === undefined || found === '') report(walk, required(joinPath(path, name), 'must not be empty'));
      else if (typeof found !== 'string') report(walk, wrongType(joinPath(path, name), found, 'must be a string'));
    }
  };
}

export function arrayChecks(schema: Schema, compile: Compile): Check[] {
  const checks = [countCheck(schema), uniqueCheck(schema), listTypeCheck(schema), itemsCheck(schema, compile)];
  return checks.filter((check) => check !== undefined);
}

function countCheck({ minItems = 0, maxItems = Number.POSITIVE_INFINITY }: Schema): Check | undefined {
  if (minItems === 0 && maxItems === Number.POSITIVE_INFINITY) return undefined;
  return (value, walk) => {
    const count = (value as unknown[]).length;
    if (count > maxItems) report(walk, tooMany(pathOf(walk), count, maxItems));
    if (count >= minItems) return;
    const path = pathOf(walk);
    report(walk, invalid(path, count, `${path} in body should have at least ${minItems} items`));
  };
}

function uniqueCheck(schema: Schema): Check | undefined {
  if (schema.uniqueItems !== true) return undefined;
  return (value, walk) => {
    const items = value as unknown[];
    if (new Set(items.map(canonicalJson)).size === items.length) return;
    const path = pathOf(walk);
    report(walk, invalid(path, shown(value), `${path} in body shouldn't contain duplicates`));
  };
}

function itemsCheck({ items }: Schema, compile: Compile): Check | undefined {
  if (items === undefined) return undefined;
  const check = compile(items);
  return (value, walk) => {
    const list = value as unknown[];
    for (let index = 0; index < list.length; index++) descend(check, index, list[index], walk);
  };
}

function listTypeCheck(schema: Schema): Check | undefined {
  const listType = schema['x-kubernetes-list-type'];
  if (listType === 'set') return repeatedCheck({ textOf: canonicalJson, identityOf: (item) => item });
  if (listType !== 'map') return undefined;
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const defaults = keys.map((key) => schema.items?.properties?.[key]?.default);
  const valueAt = (item: unknown, at: number) => asObject(item)[keys[at]!] ?? defaults[at];
  return repeatedCheck({
    textOf: (item) => keys.map((_, at) => canonicalJson(valueAt(item, at))).join(),
    identityOf: (item) => Object.fromEntries(keys.map((key, at) => [key, valueAt(item, at)])),
  });
}

function asObject(item: unknown): JsonObject {
  return typeof item === 'object' && item !== null ? (item as JsonObject) : {};
}

interface Identity {
  /** Equal for items that are the same. */
  readonly textOf: (item: unknown) => string;
  /** The part of a repeated item that messages show. */
  readonly identityOf: (item: unknown) => unknown;
}

function repeatedCheck({ textOf, identityOf }: Identity): Check {
  return (value, walk) => {
    const items = value as unknown[];
    if (items.length < 2) return;
    const seen = new Set<string>();
    for (let index = 0; index < items.length; index++) {
      const text = textOf(items[index]);
      if (seen.has(text)) report(walk, duplicate(joinPath(pathOf(walk), index), shown(identityOf(items[index]))));
      seen.add(text);
    }
  };
}

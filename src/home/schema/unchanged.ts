// On an update, an error in a part that did not change is no reason to refuse it, as in Kubernetes: the definition may have
// become stricter since. Parts are found again by their names, and items by the keys of their list. Pure.

import { isObject, isSameJson, type JsonObject } from '../../base/json.ts';
import type { FieldError } from '../../kube/objects/field-error.ts';
import type { Schema } from './schema.ts';
import { errorsMax, joinPath } from './walk.ts';

/** Those of `errors` that count. Errors of the whole, or more than are told, all count. */
export function errorsOfChanges(
  errors: readonly FieldError[],
  { schema, value, before }: { readonly schema: Schema; readonly value: unknown; readonly before: unknown },
): readonly FieldError[] {
  if (errors.length === 0 || errors.length >= errorsMax || errors.some(({ field }) => field === '')) return errors;
  const comparison = new Comparison();
  if (comparison.isSame(schema, { value, before, path: '' })) return [];
  return errors.filter(({ field }) => !comparison.isUnchanged(field));
}

interface Pair<Value = unknown> {
  readonly value: Value;
  readonly before: Value;
  readonly path: string;
}

class Comparison {
  readonly #unchanged = new Set<string>();

  isUnchanged(field: string): boolean {
    for (let end = 1; end <= field.length; end++) {
      const isWhole = end === field.length || field[end] === '.' || field[end] === '[';
      if (isWhole && this.#unchanged.has(field.slice(0, end))) return true;
    }
    return false;
  }

  /** If not, the parts of it that are have been noted. */
  isSame(schema: Schema | undefined, { value, before, path }: Pair): boolean {
    if (schema !== undefined && isObject(value) && isObject(before))
      return this.#isSameObject(schema, { value, before, path });
    if (schema?.['x-kubernetes-list-type'] === 'map' && Array.isArray(value) && Array.isArray(before))
      return this.#isSameList(schema, { value, before, path });
    return isSameJson(value, before);
  }

  #isSameObject(schema: Schema, { value, before, path }: Pair<JsonObject>): boolean {
    const names = Object.keys(value);
    // The path of one member could read like that of a part of another.
    if (schema['x-kubernetes-map-type'] === 'atomic' || names.some((name) => /[.[]/.test(name)))
      return isSameJson(value, before);
    const same: string[] = [];
    for (const name of names) {
      if (!Object.hasOwn(before, name)) continue;
      const pair = { value: value[name], before: before[name], path: joinPath(path, name) };
      if (this.isSame(memberOf(schema, name), pair)) same.push(pair.path);
    }
    const isWhole = same.length === names.length && Object.keys(before).length === names.length;
    if (!isWhole) for (const each of same) this.#unchanged.add(each);
    return isWhole;
  }

  #isSameList(schema: Schema, { value, before, path }: Pair<readonly unknown[]>): boolean {
    const keys = schema['x-kubernetes-list-map-keys'] ?? [];
    const old = new Map(before.map((item, index) => [keyOf(item, keys), { item, index }]));
    const same: string[] = [];
    let isInOrder = value.length === before.length;
    for (const [index, item] of value.entries()) {
      const found = old.get(keyOf(item, keys));
      const place = joinPath(path, index);
      if (found !== undefined && this.isSame(schema.items, { value: item, before: found.item, path: place })) {
        same.push(place);
        isInOrder &&= found.index === index;
      } else isInOrder = false;
    }
    if (!isInOrder) for (const each of same) this.#unchanged.add(each);
    return isInOrder;
  }
}

function memberOf({ properties, additionalProperties }: Schema, name: string): Schema | undefined {
  if (properties !== undefined && Object.hasOwn(properties, name)) return properties[name];
  return typeof additionalProperties === 'object' ? additionalProperties : undefined;
}

function keyOf(item: unknown, keys: readonly string[]): string {
  return JSON.stringify(keys.map((key) => (isObject(item) && Object.hasOwn(item, key) ? item[key] : null)));
}

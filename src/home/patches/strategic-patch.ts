// Strategic merge patch, of built-in kinds: a merge patch that knows by which key the items of a list are told apart,
// from the same table that schemas and protobuf come from. Changes the target where it can. The work grows with the
// lengths of the lists, never with their product.

import { isObject, type JsonObject, setMember } from '../../base/json.ts';
import { type Field, flatFields } from '../messages/messages.ts';
import { specialSchemas } from '../messages/schemas.ts';
import { PatchError } from './json-patch.ts';

/** `message` is the name of the target's message in the table of built-in kinds. */
export function applyStrategicPatch(target: unknown, patch: unknown, message: string): unknown {
  return mergeObject(isObject(target) ? target : {}, patch as JsonObject, message);
}

const listDirective = /^\$(setElementOrder|deleteFromPrimitiveList)\/(.+)$/;

/** Undefined says that the patch has deleted the object. */
function mergeObject(target: JsonObject, patch: JsonObject, message: string | undefined): JsonObject | undefined {
  const { $patch: directive, $retainKeys: retained, ...members } = patch;
  if (directive === 'delete') return undefined;
  if (directive === 'replace') return members;
  if (directive !== undefined && directive !== 'merge') throw new PatchError(`unknown $patch directive: ${directive}`);
  if (Array.isArray(retained)) retainKeys(target, new Set(retained));
  const fields = message === undefined ? undefined : fieldsOf(message);
  for (const key of Object.keys(members)) {
    if (!listDirective.test(key)) mergeMember(target, key, members[key], fields?.get(key));
  }
  for (const key of Object.keys(members)) applyListDirective(target, key, members[key], fields);
  return target;
}

function retainKeys(target: JsonObject, retained: ReadonlySet<unknown>): void {
  for (const key of Object.keys(target)) if (!retained.has(key)) delete target[key];
}

// A memo of constants: the table of built-in kinds does not change.
const fieldsByMessage = new Map<string, ReadonlyMap<string, Field>>();

function fieldsOf(message: string): ReadonlyMap<string, Field> {
  let fields = fieldsByMessage.get(message);
  if (fields === undefined) {
    fields = new Map(flatFields(message).map((field) => [field.name, field]));
    fieldsByMessage.set(message, fields);
  }
  return fields;
}

function mergeMember(target: JsonObject, key: string, value: unknown, field: Field | undefined): void {
  const before = Object.hasOwn(target, key) ? target[key] : undefined;
  if (value === null) delete target[key];
  else if (isObject(value)) {
    const merged = mergeObject(isObject(before) ? before : {}, value, messageOfMember(field));
    if (merged === undefined) delete target[key];
    else setMember(target, key, merged);
  } else if (Array.isArray(value)) setMember(target, key, mergeList(before, value, field));
  else setMember(target, key, value);
}

/** The message of an object's members or of a list's items; of a map's values it is that of each value. */
function messageOfMember(field: Field | undefined): string | undefined {
  if (field === undefined || 'scalar' in field.type || field.shape === 'map') return undefined;
  return specialSchemas[field.type.message] === undefined ? field.type.message : undefined;
}

function mergeList(before: unknown, patch: readonly unknown[], field: Field | undefined): unknown[] {
  const isReplaced = patch.some((item) => isObject(item) && item['$patch'] === 'replace');
  if (isReplaced) return patch.filter((item) => !isObject(item) || item['$patch'] === undefined);
  const current = Array.isArray(before) ? before : [];
  if (field?.patchMergeKey !== undefined) return mergeKeyed(current, patch, field, field.patchMergeKey);
  if (!isMergedSet(field)) return [...patch];
  return inOrder([...new Set([...current, ...patch])], { patch, current, identity: (item) => item });
}

// Kubernetes merges lists of plain values that are sets, such as finalizers, and replaces all others.
function isMergedSet(field: Field | undefined): boolean {
  return field !== undefined && 'scalar' in field.type && field.listType === 'set';
}

function mergeKeyed(current: unknown[], patch: readonly unknown[], field: Field, mergeKey: string): unknown[] {
  const merged = new KeyedList(current, mergeKey);
  for (const item of patch) {
    if (!isObject(item)) throw new PatchError(`${field.name}: an item of the patch is not an object`);
    const key = item[mergeKey];
    if (key === undefined)
      throw new PatchError(
        `${field.name}: an item has no ${mergeKey}, by which items are told apart: ${JSON.stringify(item).slice(0, 200)}`,
      );
    const found = merged.find(key);
    const result = mergeObject(found ?? {}, item, messageOfMember(field));
    if (result !== undefined) merged.set(key, result);
    else if (found !== undefined) merged.remove(key);
  }
  const identity = (item: unknown) => (isObject(item) ? item[mergeKey] : item);
  return inOrder(merged.items(), { patch, current, identity });
}

/** A list whose items are found by their key. Among duplicates of a key, the first counts until it is removed. */
class KeyedList {
  readonly #items: unknown[];
  readonly #removed = new Set<number>();
  /** Places of the items by key, the first one last. */
  readonly #places = new Map<unknown, number[]>();

  constructor(items: readonly unknown[], mergeKey: string) {
    this.#items = [...items];
    for (let place = items.length - 1; place >= 0; place--) {
      const item = items[place];
      if (isObject(item)) this.#placesOf(item[mergeKey]).push(place);
    }
  }

  find(key: unknown): JsonObject | undefined {
    const place = this.#places.get(key)?.at(-1);
    return place === undefined ? undefined : (this.#items[place] as JsonObject);
  }

  set(key: unknown, item: JsonObject): void {
    const places = this.#placesOf(key);
    if (places.length === 0) places.push(this.#items.length);
    this.#items[places.at(-1)!] = item;
  }

  remove(key: unknown): void {
    const place = this.#places.get(key)?.pop();
    if (place !== undefined) this.#removed.add(place);
  }

  items(): unknown[] {
    return this.#removed.size === 0 ? this.#items : this.#items.filter((_, place) => !this.#removed.has(place));
  }

  #placesOf(key: unknown): number[] {
    let places = this.#places.get(key);
    if (places === undefined) this.#places.set(key, (places = []));
    return places;
  }
}

interface Orders {
  readonly patch: readonly unknown[];
  readonly current: readonly unknown[];
  readonly identity: (item: unknown) => unknown;
}

// As Kubernetes orders a merged list: what the patch names, in its order; what it does not name comes before one of
// those only if it stood before it. New items thus come first.
function inOrder(merged: readonly unknown[], { patch, current, identity }: Orders): unknown[] {
  const places = new Map(current.map((item, index) => [identity(item), index]));
  const named = new Map(patch.map((item, index) => [identity(item), index]));
  const placeOf = (item: unknown) => places.get(identity(item)) ?? -1;
  const others = merged.filter((item) => !named.has(identity(item))).toReversed();
  const result: unknown[] = [];
  const namedItems = merged.filter((item) => named.has(identity(item)));
  for (const item of namedItems.sort((a, b) => named.get(identity(a))! - named.get(identity(b))!)) {
    while (others.length > 0 && placeOf(others.at(-1)) < placeOf(item)) result.push(others.pop());
    result.push(item);
  }
  return [...result, ...others.reverse()];
}

function applyListDirective(
  target: JsonObject,
  directive: string,
  value: unknown,
  fields: ReadonlyMap<string, Field> | undefined,
): void {
  const [, kind, name] = listDirective.exec(directive) ?? [];
  if (name === undefined || !Array.isArray(value) || !Array.isArray(target[name])) return;
  const list: unknown[] = target[name];
  if (kind === 'deleteFromPrimitiveList') {
    const deleted = new Set(value);
    target[name] = list.filter((item) => !deleted.has(item));
  } else target[name] = reorder(list, value, fields?.get(name)?.patchMergeKey);
}

/** Those in the order come in that order; each of the others stays behind the one it stood behind. */
function reorder(list: readonly unknown[], order: readonly unknown[], mergeKey: string | undefined): unknown[] {
  const identity = (item: unknown) => (mergeKey !== undefined && isObject(item) ? item[mergeKey] : item);
  const places = new Map(order.map((item, index) => [identity(item), index]));
  const groups: { place: number; items: unknown[] }[] = [{ place: -1, items: [] }];
  for (const item of list) {
    const place = places.get(identity(item));
    if (place === undefined) groups.at(-1)!.items.push(item);
    else groups.push({ place, items: [item] });
  }
  return groups.toSorted((a, b) => a.place - b.place).flatMap((group) => group.items);
}

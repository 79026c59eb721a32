// Values walked by their merge type: which fields a value has, what differs between two values, two values merged into one,
// a value without some of its fields. Pure; no value that is given is changed.

import { isSameJson } from '../../base/json.ts';
import {
  type FieldSet,
  FieldSetBuilder,
  fieldElement,
  formatPath,
  isEmptySet,
  keyElement,
  memberOnly,
  valueElement,
} from './field-set.ts';
import { type ListType, type MapType, type MergeType, untypedType } from './merge-type.ts';

type JsonMap = Readonly<Record<string, unknown>>;

/** What was applied does not fit the type of its kind. */
export class FieldsError extends Error {}

const untypedMap: MapType = { kind: 'map', isAtomic: false, fieldOf: () => undefined, elementOf: () => untypedType };

type Shape = { readonly kind: 'leaf' } | MapType | ListType;

const leaf: Shape = { kind: 'leaf' };

/** A leaf is owned and replaced as a whole: scalars, atomic maps and lists, and values that are all empty. */
function shapeOf(type: MergeType, a: unknown, b?: unknown): Shape {
  if (type.kind === 'scalar' || (type.kind === 'map' && type.isAtomic)) return leaf;
  if (type.kind === 'list') return type.relation !== 'atomic' && areAll(isList, a, b) ? type : leaf;
  if (!areAll(isMap, a, b)) return leaf;
  return type.kind === 'untyped' ? untypedMap : type;
}

/** Values that are absent or null take the form of the other; at least one has content. */
function areAll(is: (value: unknown) => boolean, a: unknown, b: unknown): boolean {
  return (isNothing(a) || is(a)) && (isNothing(b) || is(b)) && (hasContent(a) || hasContent(b));
}

function isNothing(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

function isMap(value: unknown): value is JsonMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

function hasContent(value: unknown): boolean {
  if (isList(value)) return value.length > 0;
  if (isMap(value)) for (const _ in value) return true;
  return false;
}

function typeOfEntry(type: MapType, name: string): MergeType {
  return type.fieldOf(name) ?? type.elementOf() ?? untypedType;
}

function entriesOf(value: unknown): JsonMap {
  return isMap(value) ? value : {};
}

interface Item {
  readonly element: string;
  readonly value: unknown;
}

function itemsOf(type: ListType, value: unknown): Item[] {
  if (!isList(value)) return [];
  return value.map((item, index) => ({ element: elementOf(type, item) ?? `i:${index}`, value: item }));
}

/** Undefined for an item without its keys. */
function elementOf(type: ListType, item: unknown): string | undefined {
  if (type.relation === 'set') return valueElement(item);
  if (!isMap(item)) return undefined;
  const keys = new Map<string, unknown>();
  for (const key of type.keys) {
    const value = own(item, key) ?? type.defaultOf(key);
    if (value !== undefined) keys.set(key, value);
  }
  return keys.size === 0 ? undefined : keyElement(Object.fromEntries(keys));
}

/** Fields that a configuration owns when it is applied: its leaves, keys of maps, and items of lists. */
export function fieldsOf(type: MergeType, value: unknown): FieldSet {
  const set = new FieldSetBuilder();
  visitFields(set, type, value);
  return set.build();
}

function visitFields(set: FieldSetBuilder, type: MergeType, value: unknown): void {
  const shape = shapeOf(type, value);
  if (shape.kind === 'leaf') {
    // A list of items without one names no field.
    const isEmptyList = type.kind === 'list' && type.relation !== 'atomic' && isList(value);
    if (!set.isAtRoot && !isEmptyList) set.mark();
  } else if (shape.kind === 'map') {
    for (const [name, child] of Object.entries(entriesOf(value))) {
      set.enter(fieldElement(name));
      visitFields(set, typeOfEntry(shape, name), child);
      if (shape.fieldOf(name) === undefined) set.mark();
      set.leave();
    }
  } else {
    for (const { element, value: item } of itemsOf(shape, value)) {
      set.enter(element);
      visitFields(set, shape.itemOf(), item);
      set.mark();
      set.leave();
    }
  }
}

export interface Difference {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

export function isNoDifference({ added, modified, removed }: Difference): boolean {
  return isEmptySet(added) && isEmptySet(modified) && isEmptySet(removed);
}

/** Added and removed name the maps and lists that came and went too, not only their content. */
export function compareValues(type: MergeType, before: unknown, after: unknown): Difference {
  const comparison = new Comparison();
  comparison.visit(type, before, after);
  return comparison.build();
}

class Comparison {
  readonly #added = new FieldSetBuilder();
  readonly #modified = new FieldSetBuilder();
  readonly #removed = new FieldSetBuilder();

  visit(type: MergeType, a: unknown, b: unknown): void {
    if (a === undefined && b === undefined) return;
    const isEnd = this.#noteEnd(a, b);
    const shape = shapeOf(type, a, b);
    if (shape.kind === 'leaf') {
      if (isEnd || this.#modified.isAtRoot || isSameJson(a, b)) return;
      this.#modified.mark();
      // Where the schema leaves the form open, another form takes the place of every field below.
      if (type.kind === 'untyped') this.#modified.include(fieldsOf(type, a));
    } else if (shape.kind === 'map') {
      const [left, right] = [entriesOf(a), entriesOf(b)];
      for (const name of namesOf(left, right)) {
        this.#enter(fieldElement(name));
        this.visit(typeOfEntry(shape, name), own(left, name), own(right, name));
        this.#leave();
      }
    } else this.#visitItems(shape, a, b);
  }

  #visitItems(type: ListType, a: unknown, b: unknown): void {
    const [left, right] = [grouped(itemsOf(type, a)), grouped(itemsOf(type, b))];
    for (const element of new Set([...left.keys(), ...right.keys()])) {
      const [one, other] = [left.get(element), right.get(element)];
      this.#enter(element);
      // Of items that stand there twice nobody can say which is which: they are compared together.
      if ((one?.length ?? 0) > 1 || (other?.length ?? 0) > 1) {
        if (!this.#noteEnd(one, other) && !isSameJson(one, other)) this.#modified.mark();
      } else this.visit(type.itemOf(), one?.[0], other?.[0]);
      this.#leave();
    }
  }

  /** Whether the field is there once only. */
  #noteEnd(a: unknown, b: unknown): boolean {
    if (this.#added.isAtRoot) return false;
    if (a === undefined) this.#added.mark();
    else if (b === undefined) this.#removed.mark();
    return a === undefined || b === undefined;
  }

  #enter(element: string): void {
    this.#added.enter(element);
    this.#modified.enter(element);
    this.#removed.enter(element);
  }

  #leave(): void {
    this.#added.leave();
    this.#modified.leave();
    this.#removed.leave();
  }

  build(): Difference {
    return { added: this.#added.build(), modified: this.#modified.build(), removed: this.#removed.build() };
  }
}

function namesOf(a: JsonMap, b: JsonMap): Set<string> {
  return new Set([...Object.keys(a), ...Object.keys(b)]);
}

function own(map: JsonMap, name: string): unknown {
  return Object.hasOwn(map, name) ? map[name] : undefined;
}

function grouped(items: readonly Item[]): Map<string, unknown[]> {
  const groups = new Map<string, unknown[]>();
  for (const { element, value } of items) {
    const group = groups.get(element);
    if (group === undefined) groups.set(element, [value]);
    else group.push(value);
  }
  return groups;
}

/** `live` with what `applied` says put into it. */
export function mergeValues(type: MergeType, live: unknown, applied: unknown): unknown {
  if (applied === undefined) return live;
  if (live === undefined) return applied;
  const shape = shapeOf(type, live, applied);
  if (shape.kind === 'leaf') return applied;
  // Nothing names no field: those of others stay.
  if (isNothing(applied)) return live;
  if (shape.kind === 'list') return mergeLists(shape, live, applied);
  const merged = new Map(Object.entries(entriesOf(live)));
  for (const [name, value] of Object.entries(entriesOf(applied)))
    merged.set(name, mergeValues(typeOfEntry(shape, name), merged.get(name), value));
  return Object.fromEntries(merged);
}

/**
 * Items that are applied come in their order. Items that are only live stay where they were, before the next item that
 * both have.
 */
function mergeLists(type: ListType, live: unknown, applied: unknown): unknown[] {
  const left = itemsOf(type, live);
  const right = itemsOf(type, applied);
  const wanted = new Set(right.map(({ element }) => element));
  // Items that are live twice give way to the one that is applied.
  const known = grouped(left);
  const shared = right.map(({ element }) => element).filter((element) => known.has(element));
  const merged: unknown[] = [];
  let at = 0;
  let nextShared = 0;
  for (const { element, value } of right) {
    for (; at < left.length && left[at]!.element !== element; at++) {
      const each = left[at]!;
      if (!wanted.has(each.element)) merged.push(each.value);
      // A shared item waits for its turn in the applied order, and holds back nothing behind it.
      else if (each.element === shared[nextShared]) break;
    }
    const twins = known.get(element);
    merged.push(twins?.length === 1 ? mergeValues(type.itemOf(), twins[0], value) : value);
    if (left[at]?.element === element) at++;
    if (shared[nextShared] === element) nextShared++;
  }
  for (; at < left.length; at++) if (!wanted.has(left[at]!.element)) merged.push(left[at]!.value);
  return merged;
}

/** Maps of named fields stay as empty ones; other maps and lists that lose everything are gone. */
export function withoutFields(type: MergeType, value: unknown, set: FieldSet): unknown {
  if (set.children.size === 0) return value;
  const shape = shapeOf(type, value);
  if (shape.kind === 'leaf') return value;
  if (shape.kind === 'list') {
    const kept: unknown[] = [];
    for (const { element, value: item } of itemsOf(shape, value)) {
      const below = set.children.get(element);
      if (below?.isMember) continue;
      kept.push(below === undefined ? item : withoutFields(shape.itemOf(), item, below));
    }
    return kept.length === 0 ? undefined : kept;
  }
  const kept = new Map<string, unknown>();
  for (const [name, child] of Object.entries(entriesOf(value))) {
    const below = set.children.get(fieldElement(name));
    if (below?.isMember) continue;
    const left = below === undefined ? child : withoutFields(typeOfEntry(shape, name), child, below);
    if (left !== undefined) kept.set(name, left);
  }
  return kept.size === 0 && shape.elementOf() !== undefined ? undefined : Object.fromEntries(kept);
}

/** The same set with each named field as a member that has something below it. */
export function withNamedFields(type: MergeType, set: FieldSet): FieldSet {
  if (set.children.size === 0) return set;
  const children = new Map<string, FieldSet>();
  for (const [element, child] of set.children) {
    const isField = element.startsWith('f:');
    const name = element.slice(2);
    const field = type.kind === 'map' && isField ? type.fieldOf(name) : undefined;
    const below = field ?? typeBelow(type, isField ? name : undefined);
    const named = withNamedFields(below, child);
    children.set(element, field !== undefined && !named.isMember ? { ...named, isMember: true } : named);
  }
  return { isMember: set.isMember, children };
}

/** The same set as the type has it today: fields below one that has become whole are that one. */
export function asTyped(type: MergeType, set: FieldSet): FieldSet {
  if (set.children.size === 0) return set;
  if (isWhole(type, set)) return memberOnly;
  let children: Map<string, FieldSet> | undefined;
  for (const [element, child] of set.children) {
    const typed = asTyped(typeBelow(type, element.startsWith('f:') ? element.slice(2) : undefined), child);
    if (typed !== child) (children ??= new Map(set.children)).set(element, typed);
  }
  return children === undefined ? set : { isMember: set.isMember, children };
}

function isWhole(type: MergeType, { children }: FieldSet): boolean {
  if (type.kind === 'scalar') return true;
  if (type.kind === 'map') return type.isAtomic;
  if (type.kind === 'list') return type.relation === 'atomic';
  return children.keys().some((element) => !element.startsWith('f:'));
}

function typeBelow(type: MergeType, name: string | undefined): MergeType {
  if (type.kind === 'list') return type.itemOf();
  return type.kind === 'map' && name !== undefined ? typeOfEntry(type, name) : untypedType;
}

/** Throws FieldsError: an unknown field, a map or list where another form belongs, an item twice or without its keys. */
export function checkApplied(type: MergeType, value: unknown, path = ''): void {
  if (isNothing(value) || type.kind === 'scalar' || type.kind === 'untyped') return;
  const at = path === '' ? '.' : path;
  if (type.kind === 'map') {
    if (!isMap(value)) throw new FieldsError(`${at}: expected map, got ${formOf(value)}`);
    for (const [name, child] of Object.entries(value)) {
      const below = type.fieldOf(name) ?? type.elementOf();
      if (below === undefined) throw new FieldsError(`${path}.${name}: field not declared in schema`);
      checkApplied(below, child, `${path}.${name}`);
    }
    return;
  }
  if (!isList(value)) throw new FieldsError(`${at}: expected list, got ${formOf(value)}`);
  const seen = new Set<string>();
  for (const [index, item] of value.entries()) {
    checkApplied(type.itemOf(), item, `${path}[${index}]`);
    if (type.relation === 'atomic') continue;
    const element = elementOf(type, item);
    if (element === undefined)
      throw new FieldsError(`${path}[${index}]: an item of this list needs its keys ${type.keys.join(', ')}`);
    if (seen.has(element)) throw new FieldsError(`${at}: duplicate entries for key ${formatPath([element])}`);
    seen.add(element);
  }
}

function formOf(value: unknown): string {
  return isList(value) ? 'list' : isMap(value) ? 'map' : 'scalar';
}

// A set of fields of an object, as a tree of path elements, and its form in managedFields (`fieldsV1`). Sets are never
// changed after they were made; a FieldSetBuilder makes them.
//
// Path elements: `f:name` a field, `k:{"port":80}` an item of a list by its keys, `v:"x"` an item of a set, `i:0` an item by
// its index.

import { isSameJson } from '../../base/json.ts';

export interface FieldSet {
  /** The field itself is in the set; those below it are in it only if they say so. */
  readonly isMember: boolean;
  readonly children: ReadonlyMap<string, FieldSet>;
}

const noChildren: ReadonlyMap<string, FieldSet> = new Map();
export const emptySet: FieldSet = { isMember: false, children: noChildren };
const memberOnly: FieldSet = { isMember: true, children: noChildren };

export function isEmptySet(set: FieldSet): boolean {
  return !set.isMember && set.children.size === 0;
}

export class FieldSetBuilder {
  readonly #root: MutableSet = { isMember: false, children: new Map() };

  insert(path: readonly string[]): void {
    let node = this.#root;
    for (const element of path) {
      let next = node.children.get(element);
      if (next === undefined) node.children.set(element, (next = { isMember: false, children: new Map() }));
      node = next;
    }
    node.isMember = true;
  }

  build(): FieldSet {
    return this.#root;
  }
}

interface MutableSet {
  isMember: boolean;
  readonly children: Map<string, MutableSet>;
}

export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmptySet(a)) return b;
  if (isEmptySet(b)) return a;
  const children = new Map(a.children);
  for (const [element, child] of b.children) {
    const own = children.get(element);
    children.set(element, own === undefined ? child : union(own, child));
  }
  return { isMember: a.isMember || b.isMember, children };
}

/** Of both. */
export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  return combine(a, b, (isInA, isInB) => isInA && isInB, false);
}

/** Of the first, not of the second. A field stays although the one above it goes. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmptySet(b)) return a;
  return combine(a, b, (isInA, isInB) => isInA && !isInB, true);
}

function combine(
  a: FieldSet,
  b: FieldSet,
  isKept: (isInA: boolean, isInB: boolean) => boolean,
  keepsOwn: boolean,
): FieldSet {
  const children = new Map<string, FieldSet>();
  for (const [element, child] of a.children) {
    const other = b.children.get(element);
    const kept = other === undefined ? (keepsOwn ? child : emptySet) : combine(child, other, isKept, keepsOwn);
    if (!isEmptySet(kept)) children.set(element, kept);
  }
  return { isMember: isKept(a.isMember, b.isMember), children };
}

export function isSameSet(a: FieldSet, b: FieldSet): boolean {
  if (a.isMember !== b.isMember || a.children.size !== b.children.size) return false;
  for (const [element, child] of a.children) {
    const other = b.children.get(element);
    if (other === undefined || !isSameSet(child, other)) return false;
  }
  return true;
}

/** Every path in the set, fields that end at a level before those that go deeper. */
export function pathsOf(set: FieldSet): string[][] {
  const paths: string[][] = [];
  const visit = (node: FieldSet, path: readonly string[]) => {
    const sorted = [...node.children].sort(([a], [b]) => compareElements(a, b));
    for (const [element, child] of sorted) if (child.isMember) paths.push([...path, element]);
    for (const [element, child] of sorted) visit(child, [...path, element]);
  };
  visit(set, []);
  return paths;
}

/** As people read it: `.spec.ports[port=80,protocol="TCP"].name`. */
export function formatPath(path: readonly string[]): string {
  return path.map(formatElement).join('');
}

function formatElement(element: string): string {
  const text = element.slice(2);
  if (element.startsWith('f:')) return `.${text}`;
  if (element.startsWith('i:')) return `[${text}]`;
  if (element.startsWith('v:')) return `[=${text}]`;
  const keys = JSON.parse(text) as Record<string, unknown>;
  return `[${Object.entries(keys)
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(',')}]`;
}

export type FieldsV1 = { readonly [element: string]: FieldsV1 };

export function formatFieldsV1(set: FieldSet): FieldsV1 {
  const fields: Record<string, FieldsV1> = {};
  if (set.isMember && set.children.size > 0) fields['.'] = {};
  for (const [element, child] of [...set.children].sort(([a], [b]) => compareElements(a, b)))
    fields[element] = formatFieldsV1(child);
  return fields;
}

/** Deeper than any schema; a longer path is not an object's. */
const depthMax = 200;

/** Undefined if it is not the form that managers write. */
export function parseFieldsV1(value: unknown, depth = 0): FieldSet | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || depth > depthMax) return undefined;
  const entries = Object.entries(value);
  if (depth > 0 && entries.length === 0) return memberOnly;
  const children = new Map<string, FieldSet>();
  let isMember = false;
  for (const [element, below] of entries) {
    if (element === '.') isMember = true;
    else {
      const child = isElement(element) ? parseFieldsV1(below, depth + 1) : undefined;
      if (child === undefined) return undefined;
      children.set(canonical(element), child);
    }
  }
  return { isMember, children };
}

function isElement(element: string): boolean {
  if (element.startsWith('f:')) return true;
  const text = element.slice(2);
  if (element.startsWith('i:')) return /^\d{1,9}$/.test(text);
  if (!element.startsWith('k:') && !element.startsWith('v:')) return false;
  try {
    const value: unknown = JSON.parse(text);
    return element.startsWith('v:') || (typeof value === 'object' && value !== null && !Array.isArray(value));
  } catch {
    return false;
  }
}

/** One text for one item, whatever spaces and order its writer chose. */
function canonical(element: string): string {
  if (element.startsWith('k:')) return keyElement(JSON.parse(element.slice(2)) as Record<string, unknown>);
  return element.startsWith('v:') ? valueElement(JSON.parse(element.slice(2))) : element;
}

export function fieldElement(name: string): string {
  return `f:${name}`;
}

export function keyElement(keys: Readonly<Record<string, unknown>>): string {
  const sorted = Object.keys(keys).sort();
  return `k:{${sorted.map((name) => `${JSON.stringify(name)}:${JSON.stringify(keys[name])}`).join(',')}}`;
}

export function valueElement(value: unknown): string {
  return `v:${JSON.stringify(value)}`;
}

const kindOrder = 'fkvi';

/** As Kubernetes orders them: fields by name, then items by key, by value, by index. */
function compareElements(a: string, b: string): number {
  if (a[0] !== b[0]) return kindOrder.indexOf(a[0]!) - kindOrder.indexOf(b[0]!);
  if (a.startsWith('f:')) return compareTexts(a, b);
  if (a.startsWith('i:')) return Number(a.slice(2)) - Number(b.slice(2));
  return compareValues(JSON.parse(a.slice(2)), JSON.parse(b.slice(2)));
}

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function compareValues(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'string' && typeof b === 'string') return compareTexts(a, b);
  if (typeof a === 'object' && typeof b === 'object' && a !== null && b !== null && !isSameJson(a, b)) {
    const [left, right] = [Object.entries(a), Object.entries(b)];
    for (const [index, [name, value]] of left.entries()) {
      const [otherName = '', otherValue] = right[index] ?? [];
      const order = compareTexts(name, otherName) || compareValues(value, otherValue);
      if (order !== 0) return order;
    }
  }
  return compareTexts(JSON.stringify(a) ?? '', JSON.stringify(b) ?? '');
}

// A set of fields of an object, as a tree of path elements, and its form in managedFields (`fieldsV1`). Sets are never
// changed after they were made; a FieldSetBuilder makes them.
//
// Path elements: `f:name` a field, `k:{"port":80}` an item of a list by its keys, `v:"x"` an item of a set, `i:0` an item by
// its index.

import { canonicalJson } from '../../base/json.ts';

export interface FieldSet {
  /** The field itself is in the set; those below it are in it only if they say so. */
  readonly isMember: boolean;
  readonly children: ReadonlyMap<string, FieldSet>;
}

const noChildren: ReadonlyMap<string, FieldSet> = new Map();
export const emptySet: FieldSet = { isMember: false, children: noChildren };
export const memberOnly: FieldSet = { isMember: true, children: noChildren };

export function isEmptySet(set: FieldSet): boolean {
  return !set.isMember && set.children.size === 0;
}

/** Is led through a value, into each field and out again. Fields with nothing in the set below them leave no trace. */
export class FieldSetBuilder {
  readonly #path: string[] = [];
  /** The root, and the nodes that exist along the path. */
  readonly #nodes: MutableSet[] = [{ isMember: false, children: new Map() }];

  get isAtRoot(): boolean {
    return this.#path.length === 0;
  }

  enter(element: string): void {
    this.#path.push(element);
  }

  leave(): void {
    this.#path.pop();
    if (this.#nodes.length > this.#path.length + 1) this.#nodes.pop();
  }

  /** The field here is in the set. */
  mark(): void {
    this.#here().isMember = true;
  }

  /** The fields of a set are in this one, below here. */
  include(set: FieldSet): void {
    if (!isEmptySet(set)) include(this.#here(), set);
  }

  #here(): MutableSet {
    for (let depth = this.#nodes.length; depth <= this.#path.length; depth++)
      this.#nodes.push(childOf(this.#nodes[depth - 1]!, this.#path[depth - 1]!));
    return this.#nodes.at(-1)!;
  }

  build(): FieldSet {
    return this.#nodes[0]!;
  }
}

interface MutableSet {
  isMember: boolean;
  readonly children: Map<string, MutableSet>;
}

function include(into: MutableSet, set: FieldSet): void {
  if (set.isMember) into.isMember = true;
  for (const [element, child] of set.children) {
    include(childOf(into, element), child);
  }
}

function childOf({ children }: MutableSet, element: string): MutableSet {
  let child = children.get(element);
  if (child === undefined) children.set(element, (child = { isMember: false, children: new Map() }));
  return child;
}

/** As `[['f:a', 'f:b']]` for the field `.a.b`. */
export function setOf(paths: Iterable<readonly string[]>): FieldSet {
  const set = new FieldSetBuilder();
  for (const path of paths) {
    for (const element of path) set.enter(element);
    set.mark();
    for (const _ of path) set.leave();
  }
  return set.build();
}

/** Fields in any of them, at the cost of all of them together. */
export function unionOf(sets: Iterable<FieldSet>): FieldSet {
  const all = new FieldSetBuilder();
  for (const set of sets) all.include(set);
  return all.build();
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

/** Fields in both. */
export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  return combine(a, b, (isInA, isInB) => isInA && isInB, false);
}

/** Fields in the first and not in the second. A field stays although the one above it goes. */
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
    const sorted = sortedChildren(node);
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
  for (const [element, child] of sortedChildren(set)) fields[element] = formatFieldsV1(child);
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
  return `k:{${sorted.map((name) => `${JSON.stringify(name)}:${canonicalJson(keys[name])}`).join(',')}}`;
}

export function valueElement(value: unknown): string {
  return `v:${canonicalJson(value)}`;
}

type Child = readonly [element: string, set: FieldSet];

/** As Kubernetes orders them: fields by name, then items by key, by value, by index. Each element is read once. */
function sortedChildren({ children }: FieldSet): readonly Child[] {
  if (children.size < 2) return [...children];
  return Array.from(children, (child) => ({ child, order: orderOf(child[0]) }))
    .sort((a, b) => compareOrders(a.order, b.order))
    .map(({ child }) => child);
}

interface Order {
  readonly kind: number;
  /** The name of a field, names and values of keys, a value, an index. */
  readonly parts: readonly unknown[];
}

const kindOrder = 'fkvi';

function orderOf(element: string): Order {
  const kind = kindOrder.indexOf(element[0]!);
  const text = element.slice(2);
  if (element.startsWith('f:')) return { kind, parts: [text] };
  const value: unknown = JSON.parse(text);
  return { kind, parts: element.startsWith('k:') ? Object.entries(value as object).flat() : [value] };
}

function compareOrders(a: Order, b: Order): number {
  if (a.kind !== b.kind) return a.kind - b.kind;
  for (let at = 0; at < a.parts.length && at < b.parts.length; at++) {
    const order = compareParts(a.parts[at], b.parts[at]);
    if (order !== 0) return order;
  }
  return a.parts.length - b.parts.length;
}

function compareParts(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'string' && typeof b === 'string') return compareTexts(a, b);
  return compareTexts(canonicalJson(a), canonicalJson(b));
}

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

// Where a walk over a value is, in the words of Kubernetes: `spec.ports[0].port`; and the bound on nesting that is checked
// before any walk by recursion.

import type { FieldError } from '../../kube/objects/field-error.ts';
import type { Schema } from './schema.ts';

/** One walk over one value. Checks push what they find; containers keep `path` up to date. */
export interface Walk {
  readonly root: string;
  /** Names of properties and indexes of items, from the root of the value to where the walk is. */
  readonly path: (string | number)[];
  errors: FieldError[];
  /** Remaining budget for patterns and choices. */
  readonly work: { left: number };
}

/** About 40 ms of the costliest patterns: characters times the size of the pattern's program. */
export const workMax = 3_000_000;

/** Thrown through all checks: what a choice tries must not take an unfinished branch for a good one. */
export class TooCostlyError extends Error {}

/** Throws TooCostlyError when the object would take too long to check. */
export function charge(walk: Walk, cost: number): void {
  walk.work.left -= cost;
  if (walk.work.left < 0) throw new TooCostlyError();
}

export type Check = (value: unknown, walk: Walk) => void;

/** How a check of a container has its members' schemas turned into checks. */
export type Compile = (schema: Schema) => Check;

/** More than a person reads; keeps an answer small however wrong the request is. */
export const errorsMax = 500;

export function pathOf(walk: Walk): string {
  let text = walk.root;
  for (const step of walk.path) text = joinPath(text, step);
  return text;
}

export function joinPath(path: string, step: string | number): string {
  if (typeof step === 'number') return `${path}[${step}]`;
  return path === '' ? step : `${path}.${step}`;
}

export function report(walk: Walk, error: FieldError): void {
  if (walk.errors.length < errorsMax) walk.errors.push(error);
}

const shownMax = 1024;

/** The value as messages show it: a small one whole, a large one cut. */
export function shown(value: unknown): unknown {
  if (typeof value === 'string') return value.length > shownMax ? `${value.slice(0, shownMax)}...` : value;
  if (typeof value !== 'object' || value === null) return value;
  const text = startOfJson(value, shownMax);
  return text.length > shownMax ? `${text.slice(0, shownMax)}...` : value;
}

/** At least the first `length` characters of the JSON, and not many more: the whole of a large value takes long. */
function startOfJson(value: unknown, length: number): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, length));
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const isList = Array.isArray(value);
  let text = isList ? '[' : '{';
  for (const key in value) {
    if (text.length > length) return text;
    if (text.length > 1) text += ',';
    if (!isList) text += `${JSON.stringify(key.slice(0, length))}:`;
    text += startOfJson((value as Record<string, unknown>)[key], Math.max(0, length - text.length));
  }
  return text + (isList ? ']' : '}');
}

/** Far above what any kind needs, far below what a stack can hold. */
export const nestingDepthMax = 256;

/** Members of maps and items of lists, at every level. The value must not nest too deep. */
export function hasMoreValuesThan(value: unknown, valuesMax: number): boolean {
  return valuesLeft(value, valuesMax) < 0;
}

export function valuesIn(value: unknown): number {
  return -valuesLeft(value, 0, Number.NEGATIVE_INFINITY);
}

/** Counts down from `left`, and no further than below `least`. */
function valuesLeft(value: unknown, left: number, least = 0): number {
  if (typeof value !== 'object' || value === null) return left;
  const members: unknown[] = Array.isArray(value) ? value : Object.values(value);
  let now = left - members.length;
  for (let at = 0; now >= least && at < members.length; at++) now = valuesLeft(members[at], now, least);
  return now;
}

export function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels <= 0) return true;
  if (Array.isArray(value)) {
    for (const item of value) if (isDeeperThan(item, levels - 1)) return true;
    return false;
  }
  for (const key in value) if (isDeeperThan((value as Record<string, unknown>)[key], levels - 1)) return true;
  return false;
}

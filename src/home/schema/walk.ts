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
}

export type Check = (value: unknown, walk: Walk) => void;

/** How a check of a container has its members' schemas turned into checks. */
export type Compile = (schema: Schema) => Check;

/** More than a person reads; keeps an answer small however wrong the request is. */
const errorsMax = 500;

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

/** What a message shows of a value: all of a small one, the beginning of a large one. */
export function shown(value: unknown): unknown {
  if (typeof value === 'string') return value.length > 1024 ? `${value.slice(0, 1024)}...` : value;
  if (typeof value !== 'object' || value === null) return value;
  const text = JSON.stringify(value);
  return text.length > 1024 ? `${text.slice(0, 1024)}...` : value;
}

/** Far above what any kind needs, far below what a stack can hold. */
export const nestingDepthMax = 256;

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

// Brings what a client sent of a built-in kind into the one form the schemas describe: a quantity may be written as a
// number. Also tells whether a value has the types of the message table, before defaults and validation look at it; the
// schema tells the client what is wrong.

import { isObject } from '../../base/json.ts';
import { type Field, flatFields, type Scalar } from './messages.ts';
import { specialSchemas } from './schemas.ts';

const quantity = 'resource.Quantity';

export function normalizeMessage(message: string, value: unknown): void {
  if (!isObject(value) || !hasQuantities(message)) return;
  for (const field of flatFields(message)) {
    const child = value[field.name];
    if (child === undefined || child === null || !('message' in field.type)) continue;
    if (field.type.message === quantity) normalizeQuantities(value, field);
    else for (const each of childrenOf(child, field.shape)) normalizeMessage(field.type.message, each);
  }
}

// A memo of constants: most messages have none, and need no looking through.
const known = new Map<string, boolean>();

function hasQuantities(message: string): boolean {
  const answer = known.get(message);
  if (answer !== undefined) return answer;
  // A message that contains itself has none on that way.
  known.set(message, false);
  const has = flatFields(message).some(
    ({ type }) => 'message' in type && (type.message === quantity || hasQuantities(type.message)),
  );
  known.set(message, has);
  return has;
}

function childrenOf(value: unknown, shape: Field['shape']): readonly unknown[] {
  if (shape === 'single') return [value];
  if (shape === 'list') return Array.isArray(value) ? value : [];
  return isObject(value) ? Object.values(value) : [];
}

function normalizeQuantities(parent: Record<string, unknown>, field: Field): void {
  const child = parent[field.name];
  if (field.shape === 'single' && typeof child === 'number') parent[field.name] = formatNumber(child);
  if (field.shape !== 'map' || !isObject(child)) return;
  for (const [key, value] of Object.entries(child)) if (typeof value === 'number') child[key] = formatNumber(value);
}

/** `1e21` is written with its exponent in both worlds: a quantity may have one. */
function formatNumber(value: number): string {
  return String(value).replace('e+', 'e');
}

const typeofScalar: Readonly<Record<Scalar, string>> = {
  string: 'string',
  bytes: 'string',
  bool: 'boolean',
  int32: 'number',
  int64: 'number',
  double: 'number',
};

/** Missing and unknown fields are no matter of types. */
export function hasTypesOf(message: string, value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const object = value as Record<string, unknown>;
  return flatFields(message).every((field) => {
    const child = object[field.name];
    return child === undefined || hasFieldType(field, child);
  });
}

function hasFieldType(field: Field, value: unknown): boolean {
  if (field.shape === 'single') return hasValueType(field, value);
  if (field.shape === 'list') return Array.isArray(value) && value.every((item) => hasValueType(field, item));
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((item) => hasValueType(field, item));
}

function hasValueType(field: Field, value: unknown): boolean {
  if ('scalar' in field.type) return typeof value === typeofScalar[field.type.scalar];
  const special = specialSchemas[field.type.message];
  if (special === undefined) return hasTypesOf(field.type.message, value);
  if (special['x-kubernetes-int-or-string'] === true) return typeof value === 'string' || typeof value === 'number';
  if (special.type === 'array') return Array.isArray(value);
  return special.type === undefined || (typeof value === special.type && value !== null);
}

// Brings what a client sent of a built-in kind into the one form the schemas describe: a quantity may be written as a
// number. That null means absent is the business of schema defaults; what has a wrong type is left for the schema.

import { isObject } from '../../../base/json-object.ts';
import { type Field, flatFields } from './messages.ts';

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

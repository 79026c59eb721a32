// Brings what a client sent of a built-in kind into the one form the schemas describe: as for a Go program, null means
// absent, and a quantity may be written as a number. Unknown fields and wrong types are left for the schema to refuse.

import { flatFields } from './messages.ts';
import { specialSchemas } from './schemas.ts';

export function normalizeMessage(name: string, value: unknown): void {
  if (!isObject(value)) return;
  for (const field of flatFields(name)) {
    const child = value[field.name];
    if (child === null) delete value[field.name];
    else if (child === undefined || 'scalar' in field.type) dropNulls(child);
    else if (field.type.message === 'resource.Quantity') normalizeQuantities(value, field.name, field.shape);
    else if (specialSchemas[field.type.message] === undefined) {
      const message = field.type.message;
      for (const each of childrenOf(child, field.shape)) normalizeMessage(message, each);
    }
  }
}

function childrenOf(value: unknown, shape: 'single' | 'list' | 'map'): readonly unknown[] {
  if (shape === 'single') return [value];
  if (shape === 'list') return Array.isArray(value) ? value : [];
  return isObject(value) ? Object.values(value) : [];
}

function normalizeQuantities(parent: Record<string, unknown>, name: string, shape: 'single' | 'list' | 'map'): void {
  const child = parent[name];
  if (shape === 'single' && typeof child === 'number') parent[name] = formatNumber(child);
  if (shape !== 'map' || !isObject(child)) return;
  dropNulls(child);
  for (const [key, value] of Object.entries(child)) if (typeof value === 'number') child[key] = formatNumber(value);
}

/** `1e21` is written with its exponent in both worlds: a quantity may have one. */
function formatNumber(value: number): string {
  return String(value).replace('e+', 'e');
}

function dropNulls(value: unknown): void {
  if (!isObject(value)) return;
  for (const [key, each] of Object.entries(value)) if (each === null) delete value[key];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

// Printer columns of a definition as columns of a table. Without any, the age is shown, as Kubernetes does.

import { formatAge, nameColumn } from '../model/columns.ts';
import type { Column } from '../model/kind.ts';
import type { DefinitionVersion, PrinterColumn } from './definition.ts';
import { findByPath, type JsonPath, parseJsonPath } from './json-path.ts';

export const columnTypes = ['integer', 'number', 'string', 'boolean', 'date'] as const;

type Cell = string | number | boolean | null;

const ageColumn: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };

/** The name, and what the definition wants to be seen. */
export function columnsOf(version: DefinitionVersion): Column[] {
  const defined = version.additionalPrinterColumns ?? [];
  return [nameColumn, ...(defined.length === 0 ? [ageColumn] : defined).map(columnOf)];
}

function columnOf(defined: PrinterColumn): Column {
  const parsed = parseJsonPath(defined.jsonPath);
  const path: JsonPath | undefined = parsed.kind === 'parsed' ? parsed.path : undefined;
  const type = defined.type as Column['type'];
  return {
    name: defined.name,
    type,
    format: defined.format,
    description: defined.description,
    priority: defined.priority ?? 0,
    value: (object, nowMs) => (path === undefined ? null : cellOf(findByPath(path, object), type, nowMs)),
  };
}

// As in Kubernetes, of several values the first is shown, also where the path has a wildcard. A column of the list itself
// shows all of it: as JSON there, here as people read it, where each entry is one value or an object with one.
function cellOf([value]: readonly unknown[], type: Column['type'], nowMs: number): Cell {
  if (value === undefined) return null;
  switch (type) {
    case 'string':
      return textOf(value);
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null;
    case 'number':
      return typeof value === 'number' ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'date':
      return typeof value === 'string' ? formatAge(value, nowMs) : null;
  }
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  const entries = Array.isArray(value) ? value.map(onlyValue) : [undefined];
  return entries.every((entry) => entry !== undefined) ? entries.join(',') : JSON.stringify(value);
}

/** Undefined if an entry of a list holds more than one value. */
function onlyValue(entry: unknown): string | number | boolean | undefined {
  const values = typeof entry === 'object' && entry !== null ? Object.values(entry) : [entry];
  const [value] = values;
  if (values.length !== 1 || Array.isArray(entry)) return undefined;
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : undefined;
}

// How tables show an object: the columns that several kinds share, and the short forms people know from kubectl.

import { formatElapsed } from '../../base/text/elapsed.ts';
import type { LabelSelector } from '../../kube/objects/label-selector.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import type { Column } from './kind.ts';

export type CellOf<T> = (object: T, nowMs: number) => string | number | boolean | null;

export const nameColumn: Column = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Unique in its namespace among objects of its kind',
  priority: 0,
  value: (object) => object.metadata.name,
};

export const ageColumn: Column = {
  name: 'Age',
  type: 'string',
  description: 'How long ago it was created',
  priority: 0,
  value: (object, nowMs) => formatAge(object.metadata.creationTimestamp, nowMs),
};

export function column<T = AnyObject>(name: string, value: CellOf<T>, type: Column['type'] = 'string'): Column {
  return { name, type, priority: 0, value: value as unknown as Column['value'] };
}

export function wideColumn<T = AnyObject>(name: string, value: CellOf<T>): Column {
  return { ...column(name, value), priority: 1 };
}

export function orNone(text: string | undefined): string {
  return text === undefined || text === '' ? '<none>' : text;
}

/** The first three, then how many are left out. */
export function shortList(items: readonly string[], shownMax = 3): string {
  if (items.length === 0) return '<none>';
  const shown = items.slice(0, shownMax).join(',');
  return items.length > shownMax ? `${shown} + ${items.length - shownMax} more...` : shown;
}

export function formatLabels(labels: Readonly<Record<string, string>> | undefined): string {
  const pairs = Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`);
  return orNone(pairs.sort().join(','));
}

export function formatSelector(selector: LabelSelector | undefined): string {
  const equal = Object.entries(selector?.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`);
  const others = (selector?.matchExpressions ?? []).map(({ key, operator, values = [] }) => {
    if (operator === 'Exists') return key;
    if (operator === 'DoesNotExist') return `!${key}`;
    return `${key} ${operator.toLowerCase()} (${values.join(',')})`;
  });
  return orNone([...equal.sort(), ...others].join(','));
}

export function formatAge(timestamp: string | undefined, nowMs: number): string {
  const ms = timestamp === undefined ? Number.NaN : Date.parse(timestamp);
  return Number.isNaN(ms) ? '<unknown>' : formatElapsed(nowMs - ms);
}

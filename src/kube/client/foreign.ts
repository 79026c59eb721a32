// Makes responses of homes safe to read: null is absent, and required lists are present. Homes written in Go send
// null for an empty list, and any writer may have set null anywhere. Pure.

import type { KubernetesObject, ResourceType } from '../objects/object.ts';

/** Parses JSON of which every null is left out. Text without one costs nothing more. */
export function parseWithoutNulls(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return /:\s*null\b/.test(text) ? dropNulls(value) : value;
}

/** Changes the object itself: it has just been read. */
export function withLists<T extends KubernetesObject>(type: ResourceType, object: T): T {
  for (const list of type.lists ?? []) (object as unknown as Record<string, unknown>)[list] ??= [];
  return object;
}

function dropNulls(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const pending: object[] = [value];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    for (const [key, inner] of Object.entries(next)) {
      if (inner === null && !Array.isArray(next)) delete (next as Record<string, unknown>)[key];
      else if (typeof inner === 'object' && inner !== null) pending.push(inner as object);
    }
  }
  return value;
}

// Whether two objects are the same in every field but the named ones.

import { isSameJson } from '../../base/same-json.ts';

export function isSameExcept(left: object, right: object, ignored: ReadonlySet<string>): boolean {
  const names = new Set([...Object.keys(left), ...Object.keys(right)]);
  for (const name of names) {
    if (!ignored.has(name) && !isSameJson(member(left, name), member(right, name))) return false;
  }
  return true;
}

function member(object: object, key: string): unknown {
  return (object as Record<string, unknown>)[key];
}

// Whether two values would be the same JSON: the order of keys does not matter, and undefined is absent.

export function isSameJson(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) return Array.isArray(a) && Array.isArray(b) && isSameArray(a, b);
  return isSameRecord(a as Record<string, unknown>, b as Record<string, unknown>);
}

function isSameArray(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, index) => isSameJson(item, b[index]));
}

function isSameRecord(a: Record<string, unknown>, b: Record<string, unknown>): boolean {
  for (const key in a) if (!isSameJson(a[key], Object.hasOwn(b, key) ? b[key] : undefined)) return false;
  for (const key in b) if (b[key] !== undefined && !Object.hasOwn(a, key)) return false;
  return true;
}

// JSON values: whether two are the same (the order of keys does not matter, undefined is absent), one text for equal
// values, and members of objects. Recursive; the depth of values from outside is checked before.

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

export type JsonObject = Record<string, unknown>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value at a path of keys and positions; undefined where the text is no JSON or the path leads nowhere. */
export function valueIn(text: string, path: readonly (string | number)[]): unknown {
  try {
    let value: unknown = JSON.parse(text);
    for (const step of path) value = (value as Record<string | number, unknown>)[step];
    return value;
  } catch {
    return undefined;
  }
}

/** A key called __proto__ is a key like any other. */
export function setMember(object: JsonObject, key: string, value: unknown): void {
  if (key !== '__proto__') object[key] = value;
  else Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
}

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

export function canonicalJson(value: unknown): string {
  if (typeof value === 'number') return String(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const object = value as Record<string, unknown>;
  const members = Object.keys(object)
    .filter((key) => object[key] !== undefined)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(object[key])}`);
  return `{${members.join(',')}}`;
}

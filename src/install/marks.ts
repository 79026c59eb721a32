// Values while templates are made: each is a mark that names it. Code that looks at a value asks here first, and leaves a form
// that `chart.ts` turns into an expression. Pure.

export function isMark(value: unknown): boolean {
  return typeof value === 'string' && value.startsWith('MARK(');
}

/** The field, unless its value is empty. */
export function given(key: string, value: string | object): Record<string, unknown> {
  if (isMark(value)) return { [key]: String(value).replace('MARK(', 'WITH(') };
  const isEmpty = typeof value === 'string' ? value === '' : Object.keys(value).length === 0;
  return isEmpty ? {} : { [key]: value };
}

/** The field, with the other list if its own is empty. */
export function givenOr(key: string, value: readonly object[], otherwise: readonly object[]): Record<string, unknown> {
  if (isMark(value)) return { [key]: [...itemsOf(value), ...otherwise.map((one) => ({ ELSE: one }))] };
  return { [key]: value.length === 0 ? otherwise : value };
}

/** The items of a list, in another list. */
export function itemsOf<T>(value: readonly T[]): (T | string)[] {
  return isMark(value) ? [String(value).replace('MARK(', 'ITEMS(')] : [...value];
}

/** Words that are there if that value is true or not empty. */
export function whenSet(value: boolean | string, path: string, words: readonly string[]): string[] {
  if (isMark(value)) return words.map((word) => `WHEN(.Values.${path}) ${word}`);
  return value === '' || value === false ? [] : [...words];
}

/** A flag for each item of a list. */
export function flagForEach(flag: string, values: readonly string[]): string[] {
  if (isMark(values)) return [`EACH(${flag} ${String(values).slice('MARK(list '.length)}`];
  return values.flatMap((value) => [flag, value]);
}

// The order of texts that is the same on every machine, whatever its locale. Pure.

/** Order of UTF-16 code units: the same on every machine, whatever its locale. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

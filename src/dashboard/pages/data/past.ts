// Lines of the past, added up. Pure.

import type { HistoryLine } from '../../wire/views.ts';

/** A step is null only where no cluster was read. */
export function sumOfLines(lines: readonly HistoryLine[]): (number | null)[] {
  const length = Math.max(0, ...lines.map(({ points }) => points.length));
  return Array.from({ length }, (_, index) => {
    const known = lines.flatMap(({ points }) => points[index] ?? []);
    return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0);
  });
}

// Lines of the past: added up, and from when there is something to see. Pure.

import type { HistoryLine } from '../../wire/views.ts';

type Points = readonly (number | null)[];

/** A step is null only where no cluster was read. */
export function sumOfLines(lines: readonly HistoryLine[]): (number | null)[] {
  const length = longest(lines.map(({ points }) => points));
  return Array.from({ length }, (_, index) => {
    const known = lines.flatMap(({ points }) => points[index] ?? []);
    return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0);
  });
}

/** How many of the last steps are shown: from the first that was read on, and a few at least. */
export function stepsToShow(lines: readonly Points[], stepsMin: number): number {
  const all = longest(lines);
  const known = longest(
    lines.map((points) => {
      const first = points.findIndex((one) => one !== null);
      return first < 0 ? [] : points.slice(first);
    }),
  );
  return Math.min(all, Math.max(known, stepsMin));
}

function longest(lines: readonly Points[]): number {
  return Math.max(0, ...lines.map(({ length }) => length));
}

// Which of several places is nearest to a reader: its own cluster, then its zone, its region, then anywhere. Pure, and
// stable: places equally near stay in the order they came in.

export interface Place {
  readonly cluster: string;
  /** Empty or absent if nobody said. */
  readonly zone?: string;
  readonly region?: string;
}

/** Smaller is nearer. What is not known is never near. */
export type Distance = 0 | 1 | 2 | 3;

export function distance(from: Place, to: Place): Distance {
  if (from.cluster === to.cluster) return 0;
  // A zone's name means something only inside its region.
  const isSameRegion = isKnownSame(from.region, to.region);
  if (isKnownSame(from.zone, to.zone) && (isSameRegion || (!from.region && !to.region))) return 1;
  return isSameRegion ? 2 : 3;
}

export function nearestFirst<T>(from: Place, items: readonly T[], placeOf: (item: T) => Place): T[] {
  return items
    .map((item) => ({ item, far: distance(from, placeOf(item)) }))
    .sort((a, b) => a.far - b.far)
    .map(({ item }) => item);
}

/** Those of the nearest kind that has any. */
export function nearest<T>(from: Place, items: readonly T[], placeOf: (item: T) => Place): T[] {
  const far = items.map((item) => distance(from, placeOf(item)));
  const least = Math.min(...far);
  return items.filter((_, index) => far[index] === least);
}

function isKnownSame(a: string | undefined, b: string | undefined): boolean {
  return a !== undefined && a !== '' && a === b;
}

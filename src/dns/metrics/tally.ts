// What a thread counts besides its answers, in the same shared memory: packets it threw away, connections it closed, use of
// the cache. Adding one costs nothing but an addition.

export const tallyNames = [
  /** Packets from port 0, which nobody could be answered at. */
  'droppedPortZero',
  /** Packets and queries that ended in an error of ours. */
  'droppedFault',
  'cacheHits',
  'cacheMisses',
  'cacheStale',
] as const;

export type TallyName = (typeof tallyNames)[number];

export class Tally {
  readonly #cells: Float64Array;

  constructor(cells: Float64Array) {
    this.#cells = cells;
  }

  add(name: TallyName): void {
    this.#cells[indexOf[name]]! += 1;
  }
}

const indexOf = Object.fromEntries(tallyNames.map((name, i) => [name, i])) as Readonly<Record<TallyName, number>>;

export function readTally(cells: Float64Array): Record<TallyName, number> {
  return Object.fromEntries(tallyNames.map((name, i) => [name, cells[i]!])) as Record<TallyName, number>;
}

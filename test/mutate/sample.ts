// A sample that the same seed chooses again, in the order of the list.

import { seededRandom } from '../../sim/virtual-world.ts';

export function sampleOf<T>(all: readonly T[], { count, seed }: { count: number; seed: number }): T[] {
  const random = seededRandom(seed);
  const shuffled = all.map((_, index) => ({ index, place: random() })).sort((a, b) => a.place - b.place);
  const chosen = new Set(shuffled.slice(0, count).map(({ index }) => index));
  return all.filter((_, index) => chosen.has(index));
}

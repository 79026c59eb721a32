// Who decides when clusters disagree: the oldest ServiceExport, ties by cluster id. Pure, total, and the same in every
// cluster, because it reads nothing but what the shards say.

import { compareText } from '../../../base/compare-text.ts';

export interface Ranked {
  readonly cluster: string;
  /** creationTimestamp of the cluster's ServiceExport. */
  readonly exportedAt: string;
}

export function byPrecedence(a: Ranked, b: Ranked): number {
  const ageA = ageOf(a);
  const ageB = ageOf(b);
  if (ageA !== ageB) return ageA < ageB ? -1 : 1;
  return compareText(a.cluster, b.cluster);
}

// A timestamp nobody can read never beats one that can be read.
function ageOf(ranked: Ranked): number {
  const parsed = Date.parse(ranked.exportedAt);
  return Number.isNaN(parsed) ? Number.POSITIVE_INFINITY : parsed;
}

// A serving part by its Lease, as commands and pages show it. Pure.

import type { Lease } from './lease.ts';
import { isForgotten, partState } from './part-lease.ts';

export interface PartStatus {
  readonly part: string;
  readonly node: string;
  readonly mode: string;
  readonly version: string;
  readonly state: 'reporting' | 'silent';
  /** Since its last report; absent if it never gave a valid time. */
  readonly reportedAgoMs: number | undefined;
}

/** Without those that are taken for removed. */
export function partStatuses(leases: readonly Lease[], nowMs: number): PartStatus[] {
  return leases.filter((lease) => !isForgotten(lease, nowMs)).map((lease) => partStatusOf(lease, nowMs));
}

function partStatusOf(lease: Lease, nowMs: number): PartStatus {
  const { kind, part, node, mode, version, reportedMs } = partState(lease, nowMs);
  return {
    part,
    node: node || lease.metadata.name,
    mode,
    version,
    state: kind === 'reported' ? 'reporting' : 'silent',
    reportedAgoMs: reportedMs === undefined ? undefined : Math.max(0, nowMs - reportedMs),
  };
}

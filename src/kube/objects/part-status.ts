// A serving part by its Lease, as commands and pages show it. Pure.

import { formatTime } from './conditions.ts';
import type { Lease } from './lease.ts';
import { isForgotten, partAnnotations, partState } from './part-lease.ts';

export interface PartStatus {
  readonly part: string;
  readonly node: string;
  readonly mode: string;
  readonly version: string;
  readonly state: 'reporting' | 'silent';
  /** Since its last report; absent if it never gave a valid time. */
  readonly reportedAgoMs: number | undefined;
  /** When that was, RFC 3339. Absent if it never did. */
  readonly reportedAt: string | undefined;
  /** Rights that its home refuses it. */
  readonly missingRights: readonly string[];
  /** How far its last report lies in the future: its clock is ahead by so much at least. Absent otherwise. */
  readonly aheadMs?: number;
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
    reportedAt: reportedMs === undefined ? undefined : formatTime(reportedMs),
    missingRights: missingRightsIn(lease),
    ...(reportedMs !== undefined && reportedMs > nowMs ? { aheadMs: reportedMs - nowMs } : {}),
  };
}

const rightsShownMax = 20;

/** None for a Lease that says nonsense. */
function missingRightsIn({ metadata }: Lease): string[] {
  try {
    const list: unknown = JSON.parse(metadata.annotations?.[partAnnotations.missingRights] ?? '[]');
    if (!Array.isArray(list)) return [];
    const texts = list.filter((one): one is string => typeof one === 'string' && one.length <= 500);
    return texts.slice(0, rightsShownMax);
  } catch {
    return [];
  }
}

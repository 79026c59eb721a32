// The serving parts of a cluster (agent, dns, proxy, peering, …) by the Leases they renew in its home: which reported
// lately, and which have been silent since when.

import { formatElapsed } from '../base/text/elapsed.ts';
import { listAll } from '../clusterset/explain/set-state.ts';
import type { Client } from '../kube/client/client.ts';
import { isForbidden } from '../kube/objects/api-error.ts';
import { type Lease, leaseType } from '../kube/objects/lease.ts';
import { systemNamespace } from '../kube/objects/ours.ts';
import { partLabel, partState } from '../kube/objects/part-lease.ts';
import { formatTable } from './table.ts';

export interface PartStatus {
  readonly part: string;
  readonly node: string;
  readonly mode: string;
  readonly version: string;
  readonly state: 'reporting' | 'silent';
  /** Since its last report; absent if it never gave a valid time. */
  readonly reportedAgoMs: number | undefined;
}

/** Undefined if the caller may not read Leases there. */
export async function readParts(home: Client, nowMs: number): Promise<PartStatus[] | undefined> {
  try {
    const leases = await listAll<Lease>(home, leaseType, { namespace: systemNamespace, labelSelector: partLabel });
    return leases.map((lease) => statusOf(lease, nowMs));
  } catch (error) {
    if (isForbidden(error)) return undefined;
    throw error;
  }
}

function statusOf(lease: Lease, nowMs: number): PartStatus {
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

export function formatParts(parts: readonly PartStatus[]): string[] {
  const rows = parts.map(({ part, node, mode, version, state, reportedAgoMs }) => [
    part,
    node,
    mode || '-',
    version || '-',
    state,
    reportedAgoMs === undefined ? 'never' : `${formatElapsed(reportedAgoMs)} ago`,
  ]);
  return formatTable(['PART', 'NODE', 'MODE', 'VERSION', 'STATE', 'REPORTED'], rows);
}

// The serving parts of a cluster (agent, dns, proxy, peering, …) by the Leases they renew in its home: which reported
// lately, and which have been silent since when. Those that have been silent for days are taken for removed.

import { formatElapsed } from '../base/text/elapsed.ts';
import type { Clock } from '../base/world.ts';
import { listAll } from '../clusterset/explain/set-state.ts';
import type { Client } from '../kube/client/client.ts';
import { isForbidden } from '../kube/objects/api-error.ts';
import { type Lease, leaseType } from '../kube/objects/lease.ts';
import { systemNamespace } from '../kube/objects/ours.ts';
import { partLabel } from '../kube/objects/part-lease.ts';
import { type PartStatus, partStatuses } from '../kube/objects/part-status.ts';
import { formatTable } from './table.ts';

/** Undefined if the caller may not read Leases there. The time is taken after the read: a report during it is not of the future. */
export async function readParts(home: Client, clock: Pick<Clock, 'wallMs'>): Promise<PartStatus[] | undefined> {
  try {
    const leases = await listAll<Lease>(home, leaseType, { namespace: systemNamespace, labelSelector: partLabel });
    return partStatuses(leases, clock.wallMs());
  } catch (error) {
    if (isForbidden(error)) return undefined;
    throw error;
  }
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

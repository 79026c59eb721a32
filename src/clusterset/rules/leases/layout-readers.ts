// Which members keep a clusterset from ending its move to another layout of records. Pure.

import type { Lease } from '../../../kube/objects/lease.ts';
import type { RecordLayout } from '../../kinds/cluster-set.ts';
import type { Heartbeat } from '../../kinds/heartbeat.ts';

/** Members that run, or ran, an agent that does not read the layout. One without a lease has never run. */
export function holdingUpMove<T extends { readonly lease: Lease | undefined }>(
  layout: RecordLayout,
  members: readonly T[],
): T[] {
  // In the layout per member, agents that still read the other one are seen by their heartbeats, which not every broker knows.
  if (layout === 'PerMember') return [];
  return members.filter(({ lease }) => lease !== undefined && (lease as Heartbeat).spec?.reads !== layout);
}

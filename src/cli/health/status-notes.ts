// Lines of a status about the set as a whole: the lease times of a large set. Pure.

import { formatElapsed } from '../../base/text/elapsed.ts';
import type { SetState } from '../../clusterset/explain/set-state.ts';
import { timesFor } from '../../clusterset/rules/leases/heartbeat-rate.ts';

export function setNotes({ policy, members }: Pick<SetState, 'policy' | 'members'>): string[] {
  const { renewMs, leaseMs } = timesFor(policy.lease, members.length);
  if (renewMs <= policy.lease.renewMs) return [];
  const times = `renewed every ${formatElapsed(renewMs)}, expired after ${formatElapsed(leaseMs)}`;
  return [`leases: ${times}, because there are ${members.length} clusters`];
}

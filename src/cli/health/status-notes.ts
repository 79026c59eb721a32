// Lines of a status about the set as a whole: lease times of a large set, and a move to another layout of records that is
// not complete. Pure.

import { formatElapsed } from '../../base/text/elapsed.ts';
import type { SetState } from '../../clusterset/explain/set-state.ts';
import { timesFor } from '../../clusterset/rules/leases/heartbeat-rate.ts';
import { holdingUpMove } from '../../clusterset/rules/leases/layout-readers.ts';

const namesMax = 5;

export function setNotes({ policy, members }: Pick<SetState, 'policy' | 'members'>): string[] {
  if (policy.layout === 'PerMember') return [];
  const { renewMs, leaseMs } = timesFor(policy.lease, members.length);
  const times = `renewed every ${formatElapsed(renewMs)}, expired after ${formatElapsed(leaseMs)}`;
  const waiting = holdingUpMove(policy.layout, members);
  const names = waiting.slice(0, namesMax).map(({ id }) => id);
  const more = waiting.length > namesMax ? ` and ${waiting.length - namesMax} more` : '';
  return [
    ...(renewMs > policy.lease.renewMs ? [`leases: ${times}, because there are ${members.length} clusters`] : []),
    ...(waiting.length === 0
      ? []
      : [`layout: moving to ${policy.layout}, waiting for the agents of ${names.join(', ')}${more}`]),
  ];
}

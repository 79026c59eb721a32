// Lease times of large sets. All members together renew no more often than a fixed number of times a second, so that what
// heartbeats cost the broker is bounded; beyond that number of members all lease times grow alike. Pure.

import type { LeaseTimes } from './lease-judge.ts';

/** With the default period of ten seconds this leaves sets of up to a hundred members as they are. */
const heartbeatsPerSecondMax = 10;

export type RenewalTimes = LeaseTimes & { readonly renewMs: number };

export function timesFor(times: RenewalTimes, memberCount: number): RenewalTimes {
  const renewMs = Math.max(times.renewMs, (memberCount / heartbeatsPerSecondMax) * 1000);
  const factor = renewMs / times.renewMs;
  if (factor === 1) return times;
  return {
    ...times,
    renewMs,
    leaseMs: times.leaseMs * factor,
    renewalGapMsMax: times.renewalGapMsMax * factor,
    calmMs: times.calmMs * factor,
  };
}

// Lease times of large sets. All members together renew no more often than a fixed number of times a second, so that what
// heartbeats cost the broker is bounded; beyond that number of members they renew less often, and when three renewals no longer
// fit into a lease, leases grow too. Pure.

import type { LeaseTimes } from './lease-monitor.ts';

/** With the default period of five seconds this leaves sets of up to fifty members as they are. */
const heartbeatsPerSecondMax = 10;
const renewalsPerLease = 3;

export type RenewalTimes = LeaseTimes & { readonly renewMs: number };

export function timesFor(times: RenewalTimes, memberCount: number): RenewalTimes {
  const renewMs = Math.max(times.renewMs, (memberCount / heartbeatsPerSecondMax) * 1000);
  if (renewMs === times.renewMs) return times;
  const leaseMs = Math.max(times.leaseMs, renewMs * Math.min(renewalsPerLease, times.leaseMs / times.renewMs));
  return {
    ...times,
    renewMs,
    leaseMs,
    renewalGapMsMax: renewalGapMs(renewMs, leaseMs),
    calmMs: times.calmMs * (leaseMs / times.leaseMs),
  };
}

/** Own renewals further apart prove nothing. One may be missing; and less than a lease passes unseen. */
export function renewalGapMs(renewMs: number, leaseMs: number): number {
  return Math.max(2 * renewMs, (2 * leaseMs) / 3);
}

/** Sooner than this nobody is called silent: machines are busy at times, and clocks a little apart. */
const overdueMsMin = 10_000;
/** Two renewals are missing, and some time for the way. */
const overdueRenewals = 2.4;

/** A lease that was not renewed for this long is shown as silent. It expires later, and has no effect before. */
export function overdueMs({ renewMs, leaseMs }: Pick<RenewalTimes, 'renewMs' | 'leaseMs'>): number {
  return Math.min(leaseMs, Math.max(overdueMsMin, overdueRenewals * renewMs));
}

// The decisions of judging leases in one place, so that a simulation can replace one of them by a wrong one and see that it
// is caught. Pure.

import type { RenewalTimes } from './heartbeat-rate.ts';
import type { LeaseVerdict } from './lease-monitor.ts';
import { isSeatOurs } from './seats.ts';

export interface JudgingRules {
  /** The times to judge by. */
  readonly times: (times: RenewalTimes) => RenewalTimes;
  readonly isSeatOurs: typeof isSeatOurs;
  /** Whether the report of an observer counts, by what our own clock says of it. */
  readonly isReportFresh: (observer: LeaseVerdict) => boolean;
  /** Members to look at, from the reports that count. One observer is enough: what it says is checked. */
  readonly reported: (reports: readonly (readonly string[])[]) => ReadonlySet<string>;
  /** How long a member that is reported has been silent, by what our own renewals prove. */
  readonly silence: (proof: { readonly provenMs: number; readonly leaseMs: number }) => number;
}

export const judgingRules: JudgingRules = {
  times: (times) => times,
  isSeatOurs,
  isReportFresh: (observer) => observer === 'alive',
  reported: (reports) => new Set(reports.flat()),
  silence: ({ provenMs }) => provenMs,
};

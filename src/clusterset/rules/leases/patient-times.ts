// Lease times that are lowered count at once for our own renewals and only later for judging others: a member may not have
// heard of them yet. For one of the old lease times the longer ones hold. Pure: time comes in with each call.

import type { LeaseTimes } from './lease-judge.ts';

export class PatientTimes {
  #current: LeaseTimes | undefined;
  #earlier: { readonly times: LeaseTimes; readonly untilMs: number }[] = [];

  /** What to judge by now, when the clusterset says `times`. */
  judgeBy(times: LeaseTimes, nowMs: number): LeaseTimes {
    const before = this.#current;
    this.#current = times;
    this.#earlier = this.#earlier.filter(({ untilMs }) => nowMs < untilMs);
    const isLowered =
      before !== undefined && (before.leaseMs > times.leaseMs || before.renewalGapMsMax > times.renewalGapMsMax);
    if (isLowered) this.#earlier.push({ times: before, untilMs: nowMs + before.leaseMs });
    if (this.#earlier.length === 0) return times;
    const all = [times, ...this.#earlier.map((one) => one.times)];
    return {
      ...times,
      leaseMs: Math.max(...all.map(({ leaseMs }) => leaseMs)),
      renewalGapMsMax: Math.max(...all.map(({ renewalGapMsMax }) => renewalGapMsMax)),
    };
  }
}

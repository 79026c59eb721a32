// Our own renewals of this run: when each was acknowledged and at which revision of the broker. They prove by our own
// clock for how long a record that was read just now has not changed: it was stored before the first of our renewals
// that has a higher revision. Reports of others are not needed. Pure; times are monotonic.

import type { Renewal } from './renewal.ts';

const keptMax = 64;

export class OwnRenewals {
  #renewals: Renewal[] = [];

  acknowledged(revision: number, nowMs: number): void {
    // A broker that was put back to an older copy counts again from there: what was proven before proves nothing now.
    if (!(revision > (this.#renewals.at(-1)?.revision ?? 0))) this.#renewals = [];
    if (revision > 0) this.#renewals.push({ revision, wallMs: nowMs });
    if (this.#renewals.length > keptMax) this.#renewals.shift();
  }

  /** For how long the record of that revision has surely not changed while we renewed without a break. */
  unchangedMs(revision: number, { nowMs, gapMsMax }: { readonly nowMs: number; readonly gapMsMax: number }): number {
    let provenMs = 0;
    let nextMs = nowMs;
    for (const { revision: ours, wallMs: atMs } of this.#renewals.toReversed()) {
      if (!(ours > revision && nextMs - atMs <= gapMsMax)) break;
      provenMs = nowMs - atMs;
      nextMs = atMs;
    }
    return provenMs;
  }

  forget(): void {
    this.#renewals = [];
  }
}

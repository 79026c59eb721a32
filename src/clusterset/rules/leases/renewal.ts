// Our own renewals: which revisions the broker gave to the latest ones, kept in our own lease, and lease times that were
// lowered. By the revisions a new run of the agent tells how long the lease of another member had not changed before: one
// that restarts all the time would otherwise never see a lease run out. Lowered times count at once for our renewals and
// one old lease time later for judging others, who may not know them yet. Pure; time comes in with each call.

import type { Lease } from '../../../kube/objects/lease.ts';
import type { LeaseTimes } from './lease-monitor.ts';

/** On a member's own lease: `revision@milliseconds` of earlier renewals, oldest first. */
export const renewalsAnnotation = 'portolan.dev/renewals';

export interface Renewal {
  readonly revision: number;
  /** When it was sent, by this cluster's own clock. */
  readonly wallMs: number;
}

/** The renewals that the lease tells of, itself included. */
export function renewalsOf(lease: Lease | undefined): Renewal[] {
  if (lease === undefined) return [];
  const earlier = (lease.metadata.annotations?.[renewalsAnnotation] ?? '').split(' ').map((text) => {
    const [revision, wallMs] = text.split('@').map(Number);
    return { revision: revision ?? Number.NaN, wallMs: wallMs ?? Number.NaN };
  });
  const latest = { revision: Number(lease.metadata.resourceVersion), wallMs: Date.parse(lease.spec?.renewTime ?? '') };
  return [...earlier, latest].filter(({ revision, wallMs }) => revision > 0 && !Number.isNaN(wallMs));
}

const keptMax = 10;

/** For the next renewal: no more than it takes to tell of the last `spanMs`. */
export function formatRenewals(renewals: readonly Renewal[], { wallMs, spanMs }: { wallMs: number; spanMs: number }) {
  const kept: Renewal[] = [];
  for (const renewal of renewals) {
    const isOld = wallMs - renewal.wallMs > spanMs;
    const isClose = renewal.wallMs - (kept.at(-1)?.wallMs ?? Number.NEGATIVE_INFINITY) < spanMs / keptMax;
    if (!isOld && !isClose) kept.push(renewal);
  }
  return kept
    .slice(-keptMax)
    .map((renewal) => `${renewal.revision}@${renewal.wallMs}`)
    .join(' ');
}

export interface UnchangedRequest {
  /** Revision of the other lease. */
  readonly revision: number;
  /** When that revision was seen. */
  readonly wallMs: number;
  /** Renewals further apart prove nothing about the time between them. */
  readonly gapMsMax: number;
}

/** How long the other lease has surely not changed while we renewed ours without a break. */
export function unchangedMs(renewals: readonly Renewal[], { revision, wallMs, gapMsMax }: UnchangedRequest): number {
  let nextMs = wallMs;
  let provenMs = 0;
  for (const renewal of renewals.toReversed()) {
    const gapMs = nextMs - renewal.wallMs;
    if (!(gapMs >= 0 && gapMs <= gapMsMax && renewal.revision > revision)) break;
    // It was written before the next one was sent: the exact moment is unknown.
    provenMs = wallMs - nextMs;
    nextMs = renewal.wallMs;
  }
  return provenMs;
}

export class PatientTimes {
  #current: LeaseTimes | undefined;
  #earlier: { readonly times: LeaseTimes; readonly untilMs: number }[] = [];

  /** The times to judge by now, when the clusterset specifies `times`. */
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

// Which Lease a part keeps when several of its kind run on one machine: the first that no other living process holds. A process
// that follows one which crashed finds that Lease still fresh. It takes the next one, and changes over when the old holder
// has not renewed; a sibling that lives renews, and keeps its own. A process that stops before it could change over marks the
// old Lease as replaced.

import type { Change } from '../client/apply.ts';
import type { Lease } from '../objects/lease.ts';
import { partAnnotations, partState } from '../objects/part-lease.ts';

export const slotsMax = 32;

/** Behind a dot: `node.2` is no other node, as `node-2` might be. */
export function slotId(id: string, slot: number): string {
  return slot === 1 ? id : `${id}.${slot}`;
}

/** Another process holds the Lease and has renewed it lately. */
export class SlotTaken extends Error {
  readonly renewTime: string;

  constructor(renewTime: string) {
    super('another process keeps this Lease');
    this.renewTime = renewTime;
  }
}

export interface Claimant {
  readonly holder: string;
  readonly nowMs: number;
}

/** The change, refused by SlotTaken. */
export function unlessTaken(change: Change<Lease>, { holder, nowMs }: Claimant): Change<Lease> {
  return (present) => {
    const isOthers = present !== undefined && present.spec?.holderIdentity !== holder;
    if (isOthers && partState(present, nowMs).kind === 'reported') throw new SlotTaken(present.spec?.renewTime ?? '');
    return change(present);
  };
}

/** Judges a Lease that was taken when this process started, after a second look. */
export function slotVerdict(
  present: Lease | undefined,
  { renewTime, nowMs }: { readonly renewTime: string; readonly nowMs: number },
): 'sibling' | 'free' | 'unknown' {
  if (present === undefined) return 'free';
  if (present.spec?.renewTime !== renewTime) return 'sibling';
  return partState(present, nowMs).kind === 'silent' ? 'free' : 'unknown';
}

/** The Lease marked as replaced by a process that stops; undefined if its holder may live or another process marked it. */
export function markReplaced(present: Lease | undefined, renewTime: string, holder: string): Lease | undefined {
  if (present === undefined || present.spec?.renewTime !== renewTime) return undefined;
  const { annotations } = present.metadata;
  if (annotations?.[partAnnotations.replacedBy] !== undefined) return undefined;
  const metadata = { ...present.metadata, annotations: { ...annotations, [partAnnotations.replacedBy]: holder } };
  return { ...present, metadata };
}

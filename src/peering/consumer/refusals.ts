// The refused services of one peer and the reasons: on the PeerService it concerns, and in short on the Peer. Bounded, because a peer
// could offer any number of bad services.

import { formatTime, withConditions } from '../../kube/objects/conditions.ts';
import { refusalsShownMax } from '../kinds/peer.ts';
import { cutText, idLengthMax, reasonLengthMax } from '../rules/reason.ts';
import type { PeerServiceStore } from './peer-service-store.ts';

const refusalsMax = 10_000;

export interface Refusal {
  /** Empty when the owner did not say which service it meant. */
  readonly id: string;
  readonly reason: string;
  /** No object is made to say so: there is no room for another one. */
  readonly isOverLimit?: boolean;
}

export class RefusalList {
  readonly #store: PeerServiceStore;
  /** By id, cut if it is longer than an id may be; the newest last. */
  readonly #reasons = new Map<string, string>();

  constructor(store: PeerServiceStore) {
    this.#store = store;
  }

  get size(): number {
    return this.#reasons.size;
  }

  newest(): { id: string; reason: string }[] {
    const shown = [...this.#reasons].slice(-refusalsShownMax).reverse();
    return shown.map(([id, reason]) => ({ id, reason }));
  }

  add(refusal: Refusal, wallMs: number): void {
    const { id } = refusal;
    const reason = cutText(refusal.reason, reasonLengthMax);
    const shownId = cutText(id, idLengthMax);
    const isNew = !this.#reasons.has(shownId);
    this.#reasons.delete(shownId);
    if (isNew && this.#reasons.size >= refusalsMax) return;
    this.#reasons.set(shownId, reason);
    if (id === '' || id.length > idLengthMax || refusal.isOverLimit) return;
    const present = this.#store.get(id);
    const now = formatTime(wallMs);
    const wanted = { type: 'Accepted', status: 'False', reason: 'InvalidArgument', message: reason } as const;
    const conditions = [...withConditions(this.#store.statusOf(id).conditions ?? undefined, [wanted], { now })];
    // A service that was good before keeps its last good form; the refusal is a note beside it.
    if (present !== undefined && !present.isQuarantined) return this.#store.setStatus(id, { conditions });
    this.#store.quarantine(id, { state: 'Refused', message: reason, since: now, conditions });
  }

  /** It was taken in its newest form, or is gone. */
  mended(id: string): void {
    this.#reasons.delete(cutText(id, idLengthMax));
    const conditions = this.#store.statusOf(id).conditions;
    if (!conditions?.some(({ type }) => type === 'Accepted')) return;
    const left = conditions.filter(({ type }) => type !== 'Accepted');
    const isRefused = this.#store.statusOf(id).state === 'Refused';
    this.#store.setStatus(id, {
      conditions: left,
      ...(isRefused ? { state: 'Active' as const, message: null, since: null } : {}),
    });
  }

  /** A new stream starts with an empty list: everything is offered again. */
  clear(): void {
    this.#reasons.clear();
  }
}

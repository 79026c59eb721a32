// Refused callers that claimed to be one of our peers (Unauthenticated), for the status of its Peer: the newest
// reason of each peer, published at intervals, because any client can connect.

import type { Clock } from '../../base/world.ts';

export interface RefusedCall {
  readonly reason: string;
  readonly count: number;
  readonly lastMs: number;
}

const reasonLengthMax = 1024;
const tellMs = 10_000;

export class RefusedCallers {
  readonly #clock: Clock;
  readonly #calls = new Map<string, RefusedCall>();
  readonly #toldMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns whether it is time to tell. */
  add(peer: string, reason: string): boolean {
    const count = (this.#calls.get(peer)?.count ?? 0) + 1;
    this.#calls.set(peer, { reason: reason.slice(0, reasonLengthMax), count, lastMs: this.#clock.wallMs() });
    const nowMs = this.#clock.monotonicMs();
    const isTime = nowMs - (this.#toldMs.get(peer) ?? Number.NEGATIVE_INFINITY) >= tellMs;
    if (isTime) this.#toldMs.set(peer, nowMs);
    return isTime;
  }

  get(peer: string): RefusedCall | undefined {
    return this.#calls.get(peer);
  }

  /** It was let in, or is configured anew, or is gone. */
  forget(peer: string): void {
    this.#calls.delete(peer);
    this.#toldMs.delete(peer);
  }
}

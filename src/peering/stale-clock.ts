// How old what we hold is: marks services stale when their owner has been away for a while, and says when the retention
// time is over. Marking is work for later: an owner that comes back soon costs no write at all.

import type { Timer, World } from '../base/world.ts';
import { formatTime } from '../model/conditions.ts';
import type { PeerServiceStore } from './peer-service-store.ts';

export interface StaleClockOptions {
  readonly world: Pick<World, 'clock' | 'timers'>;
  readonly store: PeerServiceStore;
  /** 0 is for ever. */
  readonly retentionMs: number;
  readonly staleAfterMs: number;
  /** False if it must wait, because the owner is just telling what it has. */
  readonly withdraw: () => boolean;
}

const againMs = 10_000;
/** Timers of the runtime end after 24 days. */
const timerMsMax = 24 * 3_600_000;

export class StaleClock {
  readonly #options: StaleClockOptions;
  #sinceMs: number | undefined;
  #marking: Timer | undefined;
  #retention: Timer | undefined;

  constructor(options: StaleClockOptions) {
    this.#options = options;
  }

  /** Wall time since when nobody vouches for what we hold. */
  get sinceMs(): number | undefined {
    return this.#sinceMs;
  }

  /** The owner was last heard of at this wall time. Does nothing if the clock runs already. */
  start(sinceMs: number): void {
    if (this.#sinceMs !== undefined) return;
    const { world, staleAfterMs } = this.#options;
    this.#sinceMs = sinceMs;
    const awayMs = world.clock.wallMs() - sinceMs;
    this.#marking = world.timers.after(Math.max(0, staleAfterMs - awayMs), () => this.#mark());
    this.#waitForRetention();
  }

  /** The owner named this one. */
  confirmed(id: string): void {
    const { state } = this.#options.store.statusOf(id);
    if (state === 'Stale' || state === 'Suspect')
      this.#options.store.setStatus(id, { state: 'Active', since: null, message: null });
  }

  suspect(ids: readonly string[]): void {
    const since = formatTime(this.#options.world.clock.wallMs());
    const message = 'its owner did not name it again after reconnecting';
    for (const id of ids) this.#options.store.setStatus(id, { state: 'Suspect', since, message });
  }

  /** The owner's catalog is complete: whatever is left is vouched for. */
  reset(): void {
    this.stop();
    this.#sinceMs = undefined;
  }

  stop(): void {
    this.#marking?.cancel();
    this.#retention?.cancel();
  }

  #mark(): void {
    const since = formatTime(this.#sinceMs as number);
    const message = `its owner has not been heard of since ${since}`;
    for (const { id, status, isQuarantined } of this.#options.store.values()) {
      if (isQuarantined || status.state === 'Stale') continue;
      this.#options.store.setStatus(id, { state: 'Stale', since, message });
    }
  }

  #waitForRetention(): void {
    const { world, retentionMs, withdraw } = this.#options;
    if (retentionMs === 0 || this.#sinceMs === undefined) return;
    const leftMs = this.#sinceMs + retentionMs - world.clock.wallMs();
    if (leftMs <= 0 && withdraw()) return;
    const delayMs = Math.min(Math.max(leftMs, againMs), timerMsMax);
    this.#retention = world.timers.after(delayMs, () => this.#waitForRetention());
  }
}

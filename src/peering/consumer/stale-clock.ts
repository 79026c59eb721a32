// The age of stored services: marks them stale when their owner has been away for a while, and reports the end of the
// retention time. Marking is delayed: an owner that comes back soon costs no write at all.
//
// Time counts only while we are running and the owner does not confirm its services. The status shows the wall time of
// the owner's last message.

import type { Timer, World } from '../../base/world.ts';
import { formatTime } from '../../kube/objects/conditions.ts';
import type { PeerServiceStore } from './peer-service-store.ts';

export interface StaleClockOptions {
  readonly world: Pick<World, 'clock' | 'timers'>;
  readonly store: PeerServiceStore;
  /** 0 is for ever. */
  readonly retentionMs: number;
  readonly staleAfterMs: number;
  /** Removes unconfirmed services. False if that must wait, because the owner may be about to confirm them. */
  readonly withdraw: () => boolean;
}

/** Since when an owner is away, and how much of that was counted. */
export interface Absence {
  /** Wall time. */
  readonly sinceMs: number;
  readonly awayMs: number;
}

const againMs = 1000;
/** Timers of the runtime end after 24 days. */
const timerMsMax = 24 * 3_600_000;

export class StaleClock {
  readonly #options: StaleClockOptions;
  #sinceMs: number | undefined;
  /** Monotonic time from which the absence is counted; undefined while the owner answers. */
  #awayFromMs: number | undefined;
  /** The same for an owner that is there and names nothing of what we hold. */
  #unnamedFromMs: number | undefined;
  #marking: Timer | undefined;
  #retention: Timer | undefined;

  constructor(options: StaleClockOptions) {
    this.#options = options;
  }

  /** Wall time since when our services are unconfirmed. */
  get sinceMs(): number | undefined {
    return this.#sinceMs;
  }

  /** Undefined while the owner is there, or our services are confirmed. */
  get absence(): Absence | undefined {
    if (this.#sinceMs === undefined || this.#awayFromMs === undefined) return undefined;
    return { sinceMs: this.#sinceMs, awayMs: this.#nowMs() - this.#awayFromMs };
  }

  /** The owner is away. Counts from here, or goes on counting if this tells of nothing newer. */
  lost({ sinceMs, awayMs }: Absence): void {
    if (this.#awayFromMs !== undefined && this.#sinceMs !== undefined && sinceMs <= this.#sinceMs) return;
    this.#sinceMs = sinceMs;
    this.#awayFromMs = this.#nowMs() - awayMs;
    this.#wait(awayMs);
  }

  /** The owner answers again; the services it confirms follow later. */
  heard(): void {
    this.#awayFromMs = undefined;
    this.#cancel();
  }

  /** The owner is there and has sent its whole catalog: none of our services is part of it. */
  unnamed(): void {
    this.#unnamedFromMs ??= this.#nowMs();
    this.#sinceMs ??= this.#options.world.clock.wallMs();
    this.#wait(this.#nowMs() - this.#unnamedFromMs);
  }

  /** The owner named this one. */
  confirmed(id: string): void {
    const { state } = this.#options.store.statusOf(id);
    if (state === 'Stale' || state === 'Suspect')
      this.#options.store.setStatus(id, { state: 'Active', since: null, message: null });
  }

  /** For how long it has been suspect; undefined if it is not. */
  suspectForMs(id: string): number | undefined {
    const { state, since } = this.#options.store.statusOf(id);
    if (state !== 'Suspect' || since === undefined || since === null) return undefined;
    return Math.max(0, this.#options.world.clock.wallMs() - Date.parse(since));
  }

  suspect(ids: readonly string[]): void {
    const since = formatTime(this.#options.world.clock.wallMs());
    const message = 'its owner did not name it again after reconnecting';
    for (const id of ids) this.#options.store.setStatus(id, { state: 'Suspect', since, message });
  }

  /** The owner's catalog is complete: the remaining services are confirmed. */
  reset(): void {
    this.stop();
    this.#sinceMs = undefined;
    this.#awayFromMs = undefined;
    this.#unnamedFromMs = undefined;
  }

  stop(): void {
    this.#cancel();
  }

  #nowMs(): number {
    return this.#options.world.clock.monotonicMs();
  }

  #cancel(): void {
    this.#marking?.cancel();
    this.#retention?.cancel();
  }

  // A retention time that is shorter than an owner may be away unremarked is announced by half of it.
  #wait(countedMs: number): void {
    const { world, staleAfterMs, retentionMs } = this.#options;
    const markAfterMs = retentionMs === 0 ? staleAfterMs : Math.min(staleAfterMs, retentionMs / 2);
    this.#cancel();
    this.#marking = world.timers.after(Math.max(0, markAfterMs - countedMs), () => this.#mark());
    this.#waitForRetention();
  }

  #mark(): void {
    const since = formatTime(this.#sinceMs as number);
    const isAway = this.#awayFromMs !== undefined;
    const message = isAway ? `no connection to its owner since ${since}` : 'its owner is there and names it no more';
    for (const { id, status, isQuarantined } of this.#options.store.values()) {
      if (isQuarantined || status.state === 'Stale') continue;
      this.#options.store.setStatus(id, { state: 'Stale', since, message });
    }
  }

  #waitForRetention(): void {
    const { world, retentionMs, withdraw } = this.#options;
    const fromMs = this.#awayFromMs ?? this.#unnamedFromMs;
    if (retentionMs === 0 || fromMs === undefined) return;
    const leftMs = fromMs + retentionMs - this.#nowMs();
    if (leftMs <= 0 && withdraw()) return;
    const delayMs = leftMs <= 0 ? againMs : Math.min(leftMs, timerMsMax);
    this.#retention = world.timers.after(delayMs, () => this.#waitForRetention());
  }
}

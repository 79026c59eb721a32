// Whether the broker answers this agent. Conditions that rest on it become Unknown while it does not; an agent that is about to
// stop for it marks them first.

import { sleep, type World } from '../../base/world.ts';
import type { LeaseController } from '../controllers/lease.ts';
import type { HomeCopies } from '../copies/home-copies.ts';
import type { ControllerQueues } from './controller-queues.ts';

export interface BrokerAbsenceOptions {
  readonly world: Pick<World, 'clock' | 'timers'>;
  readonly lease: Pick<LeaseController, 'brokerLostMs' | 'brokerSilentMs' | 'noteBroker'>;
  readonly queues: ControllerQueues;
  readonly exports: Pick<HomeCopies['exports'], 'keys'>;
}

/** A home that does not take it either does not hold up the end. */
const leaveWordMsMax = 5_000;

export class BrokerAbsence {
  readonly #options: BrokerAbsenceOptions;
  #sinceMs: number | undefined;
  #isLeaving = false;

  constructor(options: BrokerAbsenceOptions) {
    this.#options = options;
  }

  /** Wall time of its last answer; undefined while it answers. */
  get sinceMs(): number | undefined {
    return this.#sinceMs;
  }

  look(): void {
    // Exports were marked, perhaps sooner than the broker counts as away: nothing takes it back.
    if (this.#isLeaving) return;
    const lostMs = this.#options.lease.brokerLostMs();
    if ((lostMs === undefined) !== (this.#sinceMs === undefined)) void this.#changed(lostMs);
  }

  /** Writes to the home that what it has is old. */
  async leaveWord(): Promise<void> {
    const { world, lease, queues } = this.#options;
    this.#isLeaving = true;
    if (this.#sinceMs === undefined) await this.#changed(lease.brokerSilentMs());
    await Promise.race([queues.whenIdle('conditions'), sleep(world.timers, leaveWordMsMax)]);
  }

  #changed(lostMs: number | undefined): Promise<void> {
    const { world, lease, queues, exports } = this.#options;
    this.#sinceMs = lostMs === undefined ? undefined : world.clock.wallMs() - lostMs;
    queues.add(['conditions'], exports.keys());
    // That it answers again is noted with the renewal that shows it.
    return this.#sinceMs === undefined ? Promise.resolve() : lease.noteBroker(this.#sinceMs);
  }
}

// What an agent waits for before it reconciles anything: half a picture would look like deletions.

import { Backoff } from '../../base/backoff.ts';
import type { Log } from '../../base/log.ts';
import { sleep, type World } from '../../base/world.ts';
import type { LeaseController } from '../controllers/lease.ts';
import type { OwnRanges } from '../copies/own-ranges.ts';
import type { AgentCopies } from './agent-copies.ts';
import type { AgentSealing } from './agent-sealing.ts';
import type { SetOptions } from './set-options.ts';

export interface ReadinessOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly copies: AgentCopies;
  readonly ownRanges: Pick<OwnRanges, 'read'>;
  readonly lease: Pick<LeaseController, 'start'>;
  readonly setOptions: Pick<SetOptions, 'write'>;
  readonly sealing: Pick<AgentSealing, 'look' | 'isReady'> | undefined;
  readonly signal: AbortSignal;
}

/** How long the start waits for lists before it goes on: with renewals, and with records of the older form missing. */
const listsWaitMs = 10_000;

const unreadableRecords =
  'records of members are not read yet, imports stay as they are; if the broker refuses it, run portolan broker init there';

export class Readiness {
  readonly #options: ReadinessOptions;

  constructor(options: ReadinessOptions) {
    this.#options = options;
  }

  /** Resolves when controllers may begin. */
  async reach(): Promise<void> {
    const { log, copies, ownRanges, lease, setOptions, sealing, signal } = this.#options;
    const { members, policy, legacy, importPolicies, trafficShifts, accessPolicies } = copies;
    await Promise.all([policy, members.clusters].map((copy) => copy.whenSynced(signal)));
    setOptions.write();
    sealing?.look();
    await this.#patiently(() => members.hasSynced);
    if (!members.hasSynced) log.warn(unreadableRecords, { error: members.problem });
    await this.#persistently(() => ownRanges.read());
    await this.#persistently(() => lease.start());
    await members.whenSynced(signal);
    await this.#patiently(() => legacy.hasSynced && importPolicies.hasSynced && trafficShifts.hasSynced);
    await this.#patiently(() => sealing?.isReady !== false);
    // Policies that limit callers reach data planes before the first export is accepted.
    await this.#patiently(() => accessPolicies.hasSynced);
    setOptions.write();
  }

  async #patiently(isIn: () => boolean): Promise<void> {
    const { world, signal } = this.#options;
    const deadlineMs = world.clock.monotonicMs() + listsWaitMs;
    while (!isIn() && world.clock.monotonicMs() < deadlineMs) await sleep(world.timers, 20, signal);
  }

  async #persistently(attempt: () => Promise<void>): Promise<void> {
    const { world, log, signal } = this.#options;
    const backoff = new Backoff(world.random, { firstMs: 200, delayMsMax: 10_000 });
    for (;;) {
      try {
        return await attempt();
      } catch (error) {
        log.warn('agent not ready yet', { error });
        await sleep(world.timers, backoff.nextMs(), signal);
      }
    }
  }
}

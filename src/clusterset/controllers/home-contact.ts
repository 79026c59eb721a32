// Asks this cluster's home every few seconds, with one small read, and notices when it no longer answers: killed, frozen, or
// cut off from the agent. A watch that brings nothing would say nothing.

import { errorText, type Log } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { ApiError } from '../../kube/objects/api-error.ts';
import { configMapType } from '../../kube/objects/config-map.ts';
import { verdictsName } from '../membership/membership.ts';
import { Contact } from '../rules/leases/contact.ts';

export interface HomeContactOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly home: Client;
  readonly systemNamespace: string;
  /** It went away, or came back. */
  readonly onChange: () => void;
}

/** A home that restarts is back sooner. */
const boundMs = 9_000;
const everyMs = 3_000;
/** After a failure it is asked again sooner, and never in step with what goes wrong. */
const againMs = 1_000;
const timeoutMs = 3_000;
/** Between two answers of a home that answers every request. */
const gapMsMax = everyMs + timeoutMs;

export class HomeContact {
  readonly #options: HomeContactOptions;
  readonly #contact: Contact;
  #awaySinceMs: number | undefined;
  /** The last answer of an unbroken row, and the first. */
  #steady: { readonly sinceMs: number; readonly lastMs: number } | undefined;
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(options: HomeContactOptions) {
    this.#options = options;
    this.#contact = new Contact({ boundMs: () => boundMs, nowMs: options.world.clock.monotonicMs() });
  }

  /** Wall time of its last answer; undefined while it answers. */
  awaySinceMs(): number | undefined {
    return this.#awaySinceMs;
  }

  /** For how long it has answered without a gap; 0 while it does not, or if this process stood still. */
  answersForMs(): number {
    const nowMs = this.#options.world.clock.monotonicMs();
    return this.#steady === undefined || nowMs - this.#steady.lastMs > gapMsMax ? 0 : nowMs - this.#steady.sinceMs;
  }

  start(): void {
    void this.#ask();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  async #ask(): Promise<void> {
    const { world, home, systemNamespace: namespace } = this.#options;
    const askedMs = world.clock.monotonicMs();
    this.#contact.asked(askedMs);
    let periodMs = everyMs;
    try {
      await getOrUndefined(home, configMapType, { namespace, name: verdictsName }, { timeoutMs });
      this.#answered();
      this.#review('');
    } catch (error) {
      // Whatever it refuses, it is there.
      const isAnswer = error instanceof ApiError && error.code < 500;
      if (isAnswer) this.#answered();
      else {
        this.#contact.failed();
        this.#steady = undefined;
        periodMs = againMs;
      }
      this.#review(errorText(error));
    }
    if (this.#isStopped) return;
    const jitteredMs = periodMs * (1 - 0.2 * world.random.float());
    const waitMs = Math.max(0, askedMs + jitteredMs - world.clock.monotonicMs());
    this.#timer = world.timers.after(waitMs, () => void this.#ask());
  }

  #answered(): void {
    const nowMs = this.#options.world.clock.monotonicMs();
    this.#contact.answered(nowMs);
    this.#steady = { sinceMs: nowMs - this.answersForMs(), lastMs: nowMs };
  }

  #review(error: string): void {
    const { world, log, onChange } = this.#options;
    const lostMs = this.#contact.lostMs(world.clock.monotonicMs());
    if (this.#isStopped || (lostMs === undefined) === (this.#awaySinceMs === undefined)) return;
    this.#awaySinceMs = lostMs === undefined ? undefined : world.clock.wallMs() - lostMs;
    if (lostMs === undefined) log.info('the home answers again: the lease at the broker vouches for this cluster');
    else log.warn('the home does not answer: the lease at the broker says so and vouches for nothing', { error });
    onChange();
  }
}

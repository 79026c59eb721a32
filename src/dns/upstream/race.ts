// Asks several servers for one thing. The next is asked when the one before has been slow for a moment, without giving that
// one up; packets may be lost, so those that stay silent are asked once more. The first good reply counts. Nearly all races
// end with the first reply, so whatever is needed only later is made only then.

import type { Timer, World } from '../../base/world.ts';
import type { RaceTimes } from '../config/config.ts';
import { Deadline, type Deadlines } from './deadlines.ts';

/** Settings shared by all races of one kind. */
export interface RaceRules<Server, Reply> {
  readonly world: Pick<World, 'clock' | 'timers'>;
  readonly deadlines: Deadlines;
  readonly isGood: (reply: Reply) => boolean;
  /** Told of each server that has been slow. */
  readonly onSlow: (server: Server) => void;
  /** After so long, if no server is there at all, or with a reply, though not a good one, more waiting is in vain. */
  readonly giveUp: { readonly afterMs: number; readonly isDue: () => boolean };
}

export interface RaceOptions<Server, Reply> {
  readonly rules: RaceRules<Server, Reply>;
  readonly servers: readonly Server[];
  readonly times: RaceTimes;
  /** Calls back with undefined if there is no reply. */
  readonly ask: (server: Server, timeoutMs: number, done: (reply: Reply | undefined) => void) => void;
  /** Once: with the good reply, or with the others in the order in which they came. */
  readonly onEnd: (good: Reply | undefined, bad: readonly Reply[]) => void;
}

const none: readonly never[] = [];

export class Race<Server, Reply> extends Deadline {
  readonly #options: RaceOptions<Server, Reply>;
  #bad: Reply[] | undefined;
  #timers: Set<Timer> | undefined;
  /** Asked, and neither a reply nor a failure so far. */
  readonly #silent: Server[] = [];
  #nextServer = 0;
  #inFlight = 0;
  #hasEnded = false;
  #isSlow = false;
  #startedMs = 0;
  #leftMs: number;

  constructor(options: RaceOptions<Server, Reply>) {
    super();
    this.#options = options;
    this.#leftMs = options.times.totalMs;
  }

  start(): void {
    this.#startedMs = this.#options.rules.world.clock.monotonicMs();
    this.#sendNext();
    if (this.#inFlight === 0) this.#end(undefined);
  }

  /** The result is no longer wanted. */
  stop(): void {
    this.#end(undefined);
  }

  /** The server asked last has been slow for a moment. */
  expire(): void {
    if (!this.#isSlow) this.#becomeSlow();
    for (const server of this.#silent) this.#options.rules.onSlow(server);
    this.#sendNext();
  }

  #sendNext(): void {
    const { servers, times, rules } = this.#options;
    const server = servers[this.#nextServer];
    if (server === undefined) return;
    this.#nextServer += 1;
    rules.deadlines.set(this, times.hedgeMs);
    this.#send(server);
  }

  #send(server: Server): void {
    this.#inFlight += 1;
    this.#silent.push(server);
    this.#options.ask(server, this.#leftMs, (reply) => this.#take(server, reply));
  }

  #take(server: Server, reply: Reply | undefined): void {
    this.#inFlight -= 1;
    const at = this.#silent.indexOf(server);
    if (at >= 0) this.#silent.splice(at, 1);
    if (this.#hasEnded) return;
    if (reply !== undefined && this.#options.rules.isGood(reply)) return this.#end(reply);
    if (reply !== undefined) (this.#bad ??= []).push(reply);
    this.#sendNext();
    if (this.#inFlight === 0) this.#end(undefined);
  }

  #end(good: Reply | undefined): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.list?.remove(this);
    if (this.#timers) for (const timer of this.#timers) timer.cancel();
    this.#options.onEnd(good, this.#bad ?? none);
  }

  #becomeSlow(): void {
    this.#isSlow = true;
    const { rules, times } = this.#options;
    const { giveUp } = rules;
    const elapsedMs = rules.world.clock.monotonicMs() - this.#startedMs;
    const at = (ms: number, run: () => void) => this.#after(Math.max(0, ms - elapsedMs), run);
    at(times.totalMs, () => this.#end(undefined));
    at(times.resendMs, () => this.#resend());
    at(giveUp.afterMs, () => (this.#bad !== undefined || giveUp.isDue()) && this.#end(undefined));
  }

  #resend(): void {
    const { resendMs } = this.#options.times;
    this.#leftMs -= resendMs;
    if (this.#leftMs <= 0) return;
    for (const server of this.#silent.splice(0)) this.#send(server);
    this.#after(resendMs, () => this.#resend());
  }

  #after(delayMs: number, run: () => void): void {
    const timers = (this.#timers ??= new Set());
    const timer = this.#options.rules.world.timers.after(delayMs, () => {
      timers.delete(timer);
      run();
    });
    timers.add(timer);
  }
}

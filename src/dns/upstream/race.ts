// Asks several servers for one thing. The next is asked when the one before has been slow for a moment, without giving that
// one up; packets may be lost, so those that stay silent are asked once more. The first good reply counts.

import type { Timer, Timers } from '../../base/world.ts';
import type { RaceTimes } from '../config/config.ts';

export interface RaceOptions<Server, Reply> {
  readonly timers: Timers;
  readonly servers: readonly Server[];
  readonly times: RaceTimes;
  /** Rejects or gives undefined if there is no reply. */
  readonly ask: (server: Server, timeoutMs: number) => Promise<Reply | undefined>;
  readonly isGood: (reply: Reply) => boolean;
  /** Told once for each server that has been slow. */
  readonly onSlow: (server: Server) => void;
  /** Asked once: nobody is there, more waiting is in vain. With a reply, though not a good one, it is then in vain anyway. */
  readonly onStart?: (stop: () => void) => void;
  readonly giveUp: { readonly afterMs: number; readonly isDue: () => boolean };
}

export interface RaceResult<Reply> {
  readonly good: Reply | undefined;
  /** In the order in which they came. */
  readonly bad: readonly Reply[];
}

export function race<Server, Reply>(options: RaceOptions<Server, Reply>): Promise<RaceResult<Reply>> {
  const { timers, servers, times } = options;
  return new Promise((resolve) => {
    const bad: Reply[] = [];
    const timersSet = new Set<Timer>();
    /** Asked, and neither a reply nor a failure so far. */
    const silent = new Set<Server>();
    let nextServer = 0;
    let inFlight = 0;
    let hasEnded = false;
    let isSlow = false;
    let leftMs = times.totalMs;

    function after(delayMs: number, run: () => void): void {
      const timer = timers.after(delayMs, () => {
        timersSet.delete(timer);
        run();
      });
      timersSet.add(timer);
    }

    function end(good?: Reply): void {
      if (hasEnded) return;
      hasEnded = true;
      for (const timer of timersSet) timer.cancel();
      resolve({ good, bad });
    }

    function send(server: Server): void {
      inFlight += 1;
      silent.add(server);
      options.ask(server, leftMs).then(
        (reply) => take(server, reply),
        () => take(server, undefined),
      );
    }

    function take(server: Server, reply: Reply | undefined): void {
      inFlight -= 1;
      silent.delete(server);
      if (hasEnded) return;
      if (reply !== undefined && options.isGood(reply)) return end(reply);
      if (reply !== undefined) bad.push(reply);
      sendNext();
      if (inFlight === 0) end();
    }

    function sendNext(): void {
      const server = servers[nextServer];
      if (server === undefined) return;
      nextServer += 1;
      send(server);
      after(times.hedgeMs, () => {
        if (!isSlow) becomeSlow(times.hedgeMs);
        if (silent.has(server)) options.onSlow(server);
        sendNext();
      });
    }

    function resend(): void {
      leftMs -= times.resendMs;
      if (leftMs <= 0) return;
      for (const server of [...silent]) send(server);
      after(times.resendMs, resend);
    }

    /** Most replies come before the first of these would be needed: until then there is one timer. */
    function becomeSlow(elapsedMs: number): void {
      isSlow = true;
      const { giveUp } = options;
      const from = (atMs: number) => Math.max(0, atMs - elapsedMs);
      after(from(times.totalMs), () => end());
      after(from(times.resendMs), resend);
      after(from(giveUp.afterMs), () => (bad.length > 0 || giveUp.isDue()) && end());
    }

    options.onStart?.(() => end());
    sendNext();
    if (inFlight === 0) end();
  });
}

// Asks a home every few seconds whether it is ready, as the bearer: a watch that brings nothing says nothing, and a home that
// is gone without a word would look alive for minutes.

import type { HttpTransport } from '../../base/http.ts';
import { errorText } from '../../base/log.ts';
import { sleep, type World } from '../../base/world.ts';
import { type Readiness, readReadiness } from '../../kube/client/readiness.ts';

export interface Pulse {
  /** The last answer. */
  readonly answer: Readiness | undefined;
  /** Wall time of that answer; 0 is never. */
  readonly atMs: number;
  /** Why the last question was not answered; empty if it was. */
  readonly why: string;
}

export interface PulseKeeper {
  now(): Pulse;
  stop(): void;
}

const everyMs = 4_000;
const patienceMs = 3_000;

export function keepPulse(options: {
  readonly world: World;
  readonly transport: HttpTransport;
  readonly onPulse: () => void;
}): PulseKeeper {
  const { world, transport, onPulse } = options;
  const running = new AbortController();
  let pulse: Pulse = { answer: undefined, atMs: 0, why: '' };

  async function ask(): Promise<void> {
    const late = new AbortController();
    const timer = world.timers.after(patienceMs, () =>
      late.abort(new Error(`no answer within ${patienceMs / 1000} s`)),
    );
    try {
      const answer = await readReadiness(transport, world.clock, late.signal);
      pulse = { answer, atMs: world.clock.wallMs(), why: '' };
    } catch (error) {
      pulse = { ...pulse, why: errorText(late.signal.aborted ? late.signal.reason : error) };
    } finally {
      timer.cancel();
    }
  }

  async function run(): Promise<void> {
    while (!running.signal.aborted) {
      await ask();
      if (!running.signal.aborted) onPulse();
      await sleep(world.timers, everyMs, running.signal).catch(() => {});
    }
  }
  void run();
  return { now: () => pulse, stop: () => running.abort(new Error('stopped')) };
}

// A queue of keys to be worked on. A key waits at most once, however often it is added; a key added while it is being
// worked on is worked on again afterwards, never twice at the same time. First come, first served. A key whose work
// failed comes back after its own growing delay; adding it in the meantime works on it at once.

import { Backoff, type BackoffOptions } from './backoff.ts';
import type { Metrics } from './metrics.ts';
import type { Timer, World } from './world.ts';

export interface QueueOptions {
  readonly name: string;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly work: (key: string) => Promise<WorkResult | undefined>;
  /** Told of each failure, with the delay until the key comes back. */
  readonly onFailure?: (failure: { key: string; error: unknown; failures: number; retryMs: number }) => void;
  readonly concurrency?: number;
  readonly backoff?: BackoffOptions;
  readonly metrics?: Metrics;
}

export interface WorkResult {
  readonly requeueAfterMs?: number;
}

export interface Queue {
  add(key: string): void;
  /** If a key has several delays, the earliest counts. */
  addAfter(key: string, delayMs: number): void;
  /** Keys added before are kept and worked on from now. */
  start(): void;
  /** Takes no more keys, forgets those that wait, resolves when work under way has ended. */
  stop(): Promise<void>;
  /** Resolves when nothing waits and nothing is worked on; delayed keys do not count. */
  whenIdle(): Promise<void>;
  /** Keys that wait for their turn. */
  readonly depth: number;
}

const defaultBackoff: BackoffOptions = { firstMs: 10, delayMsMax: 60_000 };

export function createQueue(options: QueueOptions): Queue {
  const { world, work, concurrency = 1 } = options;
  /** In the order of their coming, which a Map keeps. The value is when the key was added. */
  const waiting = new Map<string, number>();
  // Goes on where it was: a new one would walk past all that was taken out since the Map last tidied itself.
  let order = waiting.entries();
  const working = new Set<string>();
  const addedWhileWorking = new Set<string>();
  const delayed = new Map<string, { readonly atMs: number; readonly timer: Timer }>();
  const backoffs = new Map<string, Backoff>();
  const idleWaiters = new Set<() => void>();
  const meter = createMeter(options, () => waiting.size);
  let isPumpPlanned = false;
  let state: 'waiting for start' | 'running' | 'stopped' = 'waiting for start';

  function add(key: string): void {
    if (state === 'stopped') return;
    cancelDelay(key);
    if (working.has(key)) addedWhileWorking.add(key);
    else if (!waiting.has(key)) waiting.set(key, world.clock.monotonicMs());
    meter.added();
    pumpSoon();
  }

  /** Not at once: the caller goes on undisturbed, and keys added in one go are merged. */
  function pumpSoon(): void {
    if (isPumpPlanned || state !== 'running') return;
    isPumpPlanned = true;
    queueMicrotask(() => {
      isPumpPlanned = false;
      pump();
    });
  }

  function addAfter(key: string, delayMs: number): void {
    if (state === 'stopped') return;
    const atMs = world.clock.monotonicMs() + delayMs;
    const earlier = delayed.get(key);
    if (earlier !== undefined && earlier.atMs <= atMs) return;
    earlier?.timer.cancel();
    const timer = world.timers.after(delayMs, () => {
      delayed.delete(key);
      add(key);
    });
    delayed.set(key, { atMs, timer });
  }

  function cancelDelay(key: string): void {
    delayed.get(key)?.timer.cancel();
    delayed.delete(key);
  }

  function firstWaiting(): readonly [key: string, addedMs: number] | undefined {
    if (waiting.size === 0) return undefined;
    let next = order.next();
    if (next.done) next = (order = waiting.entries()).next();
    return next.value;
  }

  function pump(): void {
    while (state === 'running' && working.size < concurrency) {
      const first = firstWaiting();
      if (first === undefined) break;
      const [key, addedMs] = first;
      waiting.delete(key);
      working.add(key);
      meter.waited(world.clock.monotonicMs() - addedMs);
      void runOne(key);
    }
    if (working.size > 0 || (waiting.size > 0 && state !== 'stopped')) return;
    for (const waiter of idleWaiters) waiter();
    idleWaiters.clear();
  }

  async function runOne(key: string): Promise<void> {
    const startedMs = world.clock.monotonicMs();
    try {
      const result = await work(key);
      backoffs.delete(key);
      if (result?.requeueAfterMs !== undefined) addAfter(key, result.requeueAfterMs);
    } catch (error) {
      failed(key, error);
    }
    meter.worked(world.clock.monotonicMs() - startedMs);
    working.delete(key);
    if (addedWhileWorking.delete(key) && state !== 'stopped') {
      cancelDelay(key);
      waiting.set(key, world.clock.monotonicMs());
    }
    pump();
  }

  function failed(key: string, error: unknown): void {
    if (state === 'stopped') return;
    const backoff = backoffs.get(key) ?? new Backoff(world.random, options.backoff ?? defaultBackoff);
    backoffs.set(key, backoff);
    const retryMs = backoff.nextMs();
    meter.retried();
    addAfter(key, retryMs);
    options.onFailure?.({ key, error, failures: backoff.failures, retryMs });
  }

  function whenIdle(): Promise<void> {
    if (working.size === 0 && (waiting.size === 0 || state === 'stopped')) return Promise.resolve();
    return new Promise((resolve) => idleWaiters.add(resolve));
  }

  return {
    add,
    addAfter,
    start: () => {
      if (state === 'waiting for start') state = 'running';
      pump();
    },
    stop: () => {
      state = 'stopped';
      for (const { timer } of delayed.values()) timer.cancel();
      delayed.clear();
      waiting.clear();
      meter.cleared();
      addedWhileWorking.clear();
      return whenIdle();
    },
    whenIdle,
    get depth() {
      return waiting.size;
    },
  };
}

interface Meter {
  added(): void;
  cleared(): void;
  retried(): void;
  waited(ms: number): void;
  worked(ms: number): void;
}

function createMeter({ name, metrics }: QueueOptions, depth: () => number): Meter {
  if (metrics === undefined) return { added() {}, cleared() {}, retried() {}, waited() {}, worked() {} };
  const labelNames = ['queue'];
  const adds = metrics.counter({ name: 'queue_adds_total', help: 'Keys added, before folding.', labelNames });
  const retries = metrics.counter({ name: 'queue_retries_total', help: 'Keys put back after a failure.', labelNames });
  const wait = metrics.histogram({
    name: 'queue_wait_seconds',
    help: 'Time from add to the start of work.',
    labelNames,
  });
  const work = metrics.histogram({ name: 'queue_work_seconds', help: 'Time the work on a key took.', labelNames });
  const gauge = metrics.gauge({ name: 'queue_depth', help: 'Keys that wait for their turn.', labelNames });
  const setDepth = () => gauge.set({ queue: name }, depth());
  return {
    added: () => {
      adds.inc({ queue: name });
      setDepth();
    },
    cleared: setDepth,
    retried: () => retries.inc({ queue: name }),
    waited: (ms) => {
      wait.observe({ queue: name }, ms / 1000);
      setDepth();
    },
    worked: (ms) => work.observe({ queue: name }, ms / 1000),
  };
}

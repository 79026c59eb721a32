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

const defaultBackoff: BackoffOptions = { firstMs: 10, delayMsMax: 60_000 };

export class Queue {
  readonly #options: QueueOptions;
  readonly #world;
  readonly #work;
  readonly #concurrency;
  /** In the order of their coming, which a Map keeps. The value is when the key was added. */
  readonly #waiting = new Map<string, number>();
  // Goes on where it was: a new one would walk past all that was taken out since the Map last tidied itself.
  #order;
  readonly #working = new Set<string>();
  readonly #addedWhileWorking = new Set<string>();
  readonly #delayed = new Map<string, { readonly atMs: number; readonly timer: Timer }>();
  readonly #backoffs = new Map<string, Backoff>();
  readonly #idleWaiters = new Set<() => void>();
  readonly #meter;
  #isPumpPlanned = false;
  #state: 'waiting for start' | 'running' | 'stopped' = 'waiting for start';

  constructor(options: QueueOptions) {
    this.#options = options;
    const { world, work, concurrency = 1 } = this.#options;
    this.#world = world;
    this.#work = work;
    this.#concurrency = concurrency;
    this.#order = this.#waiting.entries();
    this.#meter = createMeter(this.#options, () => this.#waiting.size);
  }

  add(key: string): void {
    if (this.#state === 'stopped') return;
    this.#cancelDelay(key);
    if (this.#working.has(key)) this.#addedWhileWorking.add(key);
    else if (!this.#waiting.has(key)) this.#waiting.set(key, this.#world.clock.monotonicMs());
    this.#meter.added();
    this.#pumpSoon();
  }

  /** If a key has several delays, the earliest counts. */
  addAfter(key: string, delayMs: number): void {
    if (this.#state === 'stopped') return;
    const atMs = this.#world.clock.monotonicMs() + delayMs;
    const earlier = this.#delayed.get(key);
    if (earlier !== undefined && earlier.atMs <= atMs) return;
    earlier?.timer.cancel();
    const timer = this.#world.timers.after(delayMs, () => {
      this.#delayed.delete(key);
      this.add(key);
    });
    this.#delayed.set(key, { atMs, timer });
  }

  /** Resolves when nothing waits and nothing is worked on; delayed keys do not count. */
  whenIdle(): Promise<void> {
    if (this.#working.size === 0 && (this.#waiting.size === 0 || this.#state === 'stopped')) return Promise.resolve();
    return new Promise((resolve) => this.#idleWaiters.add(resolve));
  }

  /** Keys added before are kept and worked on from now. */
  start() {
    if (this.#state === 'waiting for start') this.#state = 'running';
    this.#pump();
  }

  /** Takes no more keys, forgets those that wait, resolves when work under way has ended. */
  stop() {
    this.#state = 'stopped';
    for (const { timer } of this.#delayed.values()) timer.cancel();
    this.#delayed.clear();
    this.#waiting.clear();
    this.#meter.cleared();
    this.#addedWhileWorking.clear();
    return this.whenIdle();
  }

  /** Keys that wait for their turn. */
  get depth() {
    return this.#waiting.size;
  }

  /** Not at once: the caller goes on undisturbed, and keys added in one go are merged. */
  #pumpSoon(): void {
    if (this.#isPumpPlanned || this.#state !== 'running') return;
    this.#isPumpPlanned = true;
    queueMicrotask(() => {
      this.#isPumpPlanned = false;
      this.#pump();
    });
  }

  #cancelDelay(key: string): void {
    this.#delayed.get(key)?.timer.cancel();
    this.#delayed.delete(key);
  }

  #firstWaiting(): readonly [key: string, addedMs: number] | undefined {
    if (this.#waiting.size === 0) return undefined;
    let next = this.#order.next();
    if (next.done) next = (this.#order = this.#waiting.entries()).next();
    return next.value;
  }

  #pump(): void {
    while (this.#state === 'running' && this.#working.size < this.#concurrency) {
      const first = this.#firstWaiting();
      if (first === undefined) break;
      const [key, addedMs] = first;
      this.#waiting.delete(key);
      this.#working.add(key);
      this.#meter.waited(this.#world.clock.monotonicMs() - addedMs);
      void this.#runOne(key);
    }
    if (this.#working.size > 0 || (this.#waiting.size > 0 && this.#state !== 'stopped')) return;
    for (const waiter of this.#idleWaiters) waiter();
    this.#idleWaiters.clear();
  }

  async #runOne(key: string): Promise<void> {
    const startedMs = this.#world.clock.monotonicMs();
    try {
      const result = await this.#work(key);
      this.#backoffs.delete(key);
      if (result?.requeueAfterMs !== undefined) this.addAfter(key, result.requeueAfterMs);
    } catch (error) {
      this.#failed(key, error);
    }
    this.#meter.worked(this.#world.clock.monotonicMs() - startedMs);
    this.#working.delete(key);
    if (this.#addedWhileWorking.delete(key) && this.#state !== 'stopped') {
      this.#cancelDelay(key);
      this.#waiting.set(key, this.#world.clock.monotonicMs());
    }
    this.#pump();
  }

  #failed(key: string, error: unknown): void {
    if (this.#state === 'stopped') return;
    const backoff = this.#backoffs.get(key) ?? new Backoff(this.#world.random, this.#options.backoff ?? defaultBackoff);
    this.#backoffs.set(key, backoff);
    const retryMs = backoff.nextMs();
    this.#meter.retried();
    this.addAfter(key, retryMs);
    this.#options.onFailure?.({ key, error, failures: backoff.failures, retryMs });
  }
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

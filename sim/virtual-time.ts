// Time that moves only when told to. Events run in the order of their moment, then of their making, so that a run with
// the same seed is the same run.

import { setImmediate as realImmediate } from 'node:timers/promises';
import type { Timer } from '../src/base/world.ts';

class Event implements Timer {
  readonly atMs: number;
  readonly order: number;
  run: (() => void) | undefined;

  constructor(atMs: number, order: number, run: () => void) {
    this.atMs = atMs;
    this.order = order;
    this.run = run;
  }

  cancel(): void {
    this.run = undefined;
  }
}

/** Turns asked for at once: asking costs more than taking one. */
const turnsAtOnce = 32;

export class VirtualTime {
  #nowMs = 0;
  #order = 0;
  readonly #heap: Event[] = [];
  #held = 0;
  #holding: Promise<void> = Promise.resolve();

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Events that have not run and were not cancelled. */
  get pending(): number {
    return this.#heap.reduce((count, event) => (event.run === undefined ? count : count + 1), 0);
  }

  schedule(delayMs: number, run: () => void): Timer {
    const event = new Event(this.#nowMs + Math.max(0, delayMs), this.#order++, run);
    push(this.#heap, event);
    return event;
  }

  /** Lets everything that is already possible happen, without moving time. */
  async drain(): Promise<void> {
    await realImmediate();
    while (this.#held > 0) await realImmediate();
  }

  /** Time stands still until the work is done: what runs outside, such as cryptography, takes none here. One at a time. */
  hold<T>(work: () => Promise<T>): Promise<T> {
    this.#held += 1;
    const done = this.#holding.then(work);
    this.#holding = done.then(
      () => {},
      () => {},
    );
    // One turn later: whoever waits for it goes on before time does.
    const release = () => setImmediate(() => (this.#held -= 1));
    this.#holding.then(release);
    return done;
  }

  async advance(durationMs: number): Promise<void> {
    const untilMs = this.#nowMs + durationMs;
    await this.#run(untilMs, () => false);
    this.#nowMs = untilMs;
  }

  /** Steps until the condition holds; fails loudly if it does not within the given virtual time. */
  async until(condition: () => boolean, options: { readonly withinMs: number; readonly what?: string }): Promise<void> {
    const untilMs = this.#nowMs + options.withinMs;
    if (await this.#run(untilMs, condition)) return;
    throw new Error(`${options.what ?? condition.toString()}: did not happen within ${options.withinMs} virtual ms`);
  }

  /** Steps until the promise settles. */
  async settle<T>(promise: Promise<T>, options: { readonly withinMs: number } = { withinMs: 600_000 }): Promise<T> {
    let isSettled = false;
    const mark = () => {
      isSettled = true;
    };
    promise.then(mark, mark);
    await this.until(() => isSettled, { ...options, what: 'a promise' });
    return promise;
  }

  /**
   * Each event in a turn of its own, so that all it made possible has happened before the next. Resolves to whether the
   * condition came true before there was nothing left to do until then.
   */
  #run(untilMs: number, condition: () => boolean): Promise<boolean> {
    return new Promise((resolve, reject) => {
      let isOver = false;
      const end = (settle: () => void) => {
        isOver = true;
        settle();
      };
      const turn = () => {
        if (isOver || this.#held > 0) return;
        try {
          if (condition()) return end(() => resolve(true));
          const event = this.#next(untilMs);
          if (event === undefined) return end(() => resolve(false));
          this.#nowMs = event.atMs;
          event.run!();
        } catch (error) {
          end(() => reject(error));
        }
      };
      const turns = () => {
        for (let count = 0; count < turnsAtOnce; count += 1) setImmediate(turn);
        setImmediate(() => isOver || turns());
      };
      turns();
    });
  }

  #next(untilMs: number): Event | undefined {
    for (;;) {
      const event = this.#heap[0];
      if (event === undefined || event.atMs > untilMs) return undefined;
      pop(this.#heap);
      if (event.run !== undefined) return event;
    }
  }
}
function isBefore(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

function push(heap: Event[], event: Event): void {
  let index = heap.push(event) - 1;
  while (index > 0) {
    const parent = (index - 1) >> 1;
    if (!isBefore(event, heap[parent]!)) break;
    heap[index] = heap[parent]!;
    index = parent;
  }
  heap[index] = event;
}

function pop(heap: Event[]): void {
  const last = heap.pop()!;
  if (heap.length === 0) return;
  let index = 0;
  for (;;) {
    let child = 2 * index + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child += 1;
    if (!isBefore(heap[child]!, last)) break;
    heap[index] = heap[child]!;
    index = child;
  }
  heap[index] = last;
}

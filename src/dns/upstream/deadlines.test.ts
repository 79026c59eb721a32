// Time limits that share a timer: each expires at its own time, and cleared ones never do.

import { expect, test } from 'vitest';
import { Deadline, Deadlines } from './deadlines.ts';

class Named extends Deadline {
  readonly #run: () => void;

  constructor(run: () => void) {
    super();
    this.#run = run;
  }

  expire(): void {
    this.#run();
  }
}

function setUp() {
  const timers = new Map<object, { atMs: number; run: () => void }>();
  const world = {
    nowMs: 0,
    clock: { wallMs: () => world.nowMs, monotonicMs: () => world.nowMs },
    timers: {
      after: (delayMs: number, run: () => void) => {
        const timer = { cancel: () => void timers.delete(timer) };
        timers.set(timer, { atMs: world.nowMs + delayMs, run });
        return timer;
      },
    },
  };
  const runUntil = (untilMs: number) => {
    for (;;) {
      const [next] = [...timers].sort(([, a], [, b]) => a.atMs - b.atMs);
      if (!next || next[1].atMs > untilMs) break;
      timers.delete(next[0]);
      world.nowMs = next[1].atMs;
      next[1].run();
    }
    world.nowMs = untilMs;
  };
  const expired: string[] = [];
  const deadlines = new Deadlines(world);
  const make = (name: string) => new Named(() => expired.push(`${name} at ${world.nowMs}`));
  return { deadlines, make, expired, runUntil, timers };
}

test('deadlines: of two lengths, some cleared, one moved -> each of the others expires at its time', () => {
  const { deadlines, make, expired, runUntil, timers } = setUp();
  const [a, b, c, d] = [make('a'), make('b'), make('c'), make('d')];
  deadlines.set(a, 100);
  deadlines.set(b, 300);
  runUntil(50);
  deadlines.set(c, 100);
  deadlines.set(d, 100);
  expect(timers.size).toBe(2);
  deadlines.clear(a);
  runUntil(80);
  deadlines.set(d, 100);
  runUntil(1000);
  expect(expired).toEqual(['c at 150', 'd at 180', 'b at 300']);
});

test('deadlines: the last one is cleared -> no timer is left to wait for', () => {
  const { deadlines, make, timers } = setUp();
  const only = make('a');
  deadlines.set(only, 100);
  deadlines.clear(only);
  expect(timers.size).toBe(0);
});

test('deadlines: one that sets another while it expires -> that one expires too', () => {
  const { deadlines, make, expired, runUntil } = setUp();
  const second = make('second');
  deadlines.set(new Named(() => deadlines.set(second, 100)), 100);
  runUntil(1000);
  expect(expired).toEqual(['second at 200']);
});

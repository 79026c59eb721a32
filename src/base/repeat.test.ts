import { describe, expect, test } from 'vitest';
import { VirtualTime } from '../../sim/virtual-time.ts';
import { repeat } from './repeat.ts';

function setUp() {
  const time = new VirtualTime();
  const timers = { after: (delayMs: number, run: () => void) => time.schedule(delayMs, run) };
  return { time, timers, at: [] as number[] };
}

describe('repeat', () => {
  test('a first time and a period -> begins then, and a period after each end', async () => {
    const { time, timers, at } = setUp();
    const stop = repeat(timers, { everyMs: 100, firstMs: 10 }, () => void at.push(time.nowMs));
    await time.advance(250);
    expect(at).toEqual([10, 110, 210]);
    stop();
    await time.advance(500);
    expect([at.length, time.pending]).toEqual([3, 0]);
  });

  test('work that takes longer than a period -> never overlaps itself', async () => {
    const { time, timers, at } = setUp();
    const work = () => {
      at.push(time.nowMs);
      return new Promise<void>((resolve) => void time.schedule(130, resolve));
    };
    repeat(timers, { everyMs: 100 }, work);
    await time.advance(600);
    expect(at).toEqual([100, 330, 560]);
  });

  test('stopped while it works -> nothing begins afterwards', async () => {
    const { time, timers, at } = setUp();
    const stop = repeat(timers, { everyMs: 100 }, () => {
      at.push(time.nowMs);
      return new Promise<void>((resolve) => void time.schedule(50, resolve));
    });
    await time.advance(120);
    stop();
    await time.advance(1_000);
    expect([at, time.pending]).toEqual([[100], 0]);
  });

  test('stopped by the work itself -> that was the last time', async () => {
    const { time, timers, at } = setUp();
    const stop: () => void = repeat(timers, { everyMs: 100 }, () => {
      at.push(time.nowMs);
      if (at.length === 2) stop();
    });
    await time.advance(1_000);
    expect(at).toEqual([100, 200]);
  });

  test('a period that changes -> asked before each wait', async () => {
    const { time, timers, at } = setUp();
    repeat(timers, { everyMs: () => 100 * (at.length + 1) }, () => void at.push(time.nowMs));
    await time.advance(600);
    expect(at).toEqual([100, 300, 600]);
  });
});

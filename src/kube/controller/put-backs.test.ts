import { describe, expect, test } from 'vitest';
import { createPutBacks } from './put-backs.ts';

function start() {
  let nowMs = 0;
  const putBacks = createPutBacks({ monotonicMs: () => nowMs, wallMs: () => nowMs });
  return {
    /** Writes it if it may be written now; else how long to wait. */
    write: (wanted: unknown, key = 'a') => {
      const waitMs = putBacks.waitMs(key, wanted);
      if (waitMs === 0) putBacks.wrote(key, wanted);
      return waitMs;
    },
    waitMs: (wanted: unknown) => putBacks.waitMs('a', wanted),
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

describe('put-backs', () => {
  test('put-backs: changed by somebody once -> put back at once', () => {
    const { write } = start();
    expect([write({ x: 1 }), write({ x: 1 })]).toEqual([0, 0]);
  });

  test('put-backs: changed again and again -> later and later, at most 30 s', () => {
    const { write, pass } = start();
    const waits: number[] = [];
    for (let round = 0; round < 9; round += 1) {
      const wait = write({ x: 1 });
      waits.push(wait);
      pass(wait);
      if (wait > 0) expect(write({ x: 1 })).toBe(0);
    }
    expect(waits).toEqual([0, 0, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  });

  test('put-backs: something new is wanted, or another key -> at once', () => {
    const { write } = start();
    for (let round = 0; round < 3; round += 1) write({ x: 1 });
    expect(write({ x: 1 })).toBe(1_000);
    expect(write({ x: 2 })).toBe(0);
    expect(write({ x: 1 }, 'b')).toBe(0);
  });

  test('put-backs: left alone for two minutes -> at once again', () => {
    const { write, pass } = start();
    for (let round = 0; round < 3; round += 1) write({ x: 1 });
    pass(120_000);
    expect([write({ x: 1 }), write({ x: 1 }), write({ x: 1 })]).toEqual([0, 0, 1_000]);
  });

  test('put-backs: writing fails -> does not count, so nobody is held up by it', () => {
    const { waitMs, write } = start();
    write({ x: 1 });
    for (let round = 0; round < 5; round += 1) expect(waitMs({ x: 1 })).toBe(0);
  });
});

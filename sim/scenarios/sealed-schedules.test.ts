import { expect, test } from 'vitest';
import { runSealedSchedule } from '../sealed-schedule.ts';

test.each([1, 2, 3])(
  'sealed exports: a random life (seed %d) -> who has the right reads it, and nobody else does',
  async (seed) => {
    expect(await runSealedSchedule({ seed })).toEqual([]);
  },
  60_000,
);

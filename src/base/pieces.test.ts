import { expect, test } from 'vitest';
import { atOnce, inSteps, type Pieces } from './pieces.ts';

function* countTo(last: number, seen: string[]): Pieces<number> {
  for (let at = 1; at <= last; at++) {
    if (at > 1) yield;
    seen.push(String(at));
  }
  return last;
}

test('pieces: in steps -> one step between two pieces, none after the last; at once -> no steps', async () => {
  const seen: string[] = [];
  expect(await inSteps(countTo(3, seen), async () => void seen.push('step'))).toBe(3);
  expect(seen).toEqual(['1', 'step', '2', 'step', '3']);
  expect(atOnce(countTo(3, []))).toBe(3);
});

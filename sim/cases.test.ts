import { expect, test } from 'vitest';
import { runCases } from './cases.ts';

test('predict: random services, most of them in conflict -> the clusters show what was predicted, conditions included', async () => {
  const count = 60;
  const { violations, conflicting } = await runCases({ count, seed: 1 });
  expect(violations).toEqual([]);
  expect(conflicting).toBeGreaterThan(count / 2);
}, 60_000);

import { expect, test } from 'vitest';
import { runPlanCases } from './clusterset-plan-cases.ts';

test('plan: random files against running clusters -> conditions, import and conflicts are what the clusters then show [003-04]', async () => {
  const count = 30;
  const { wrong, conflicting } = await runPlanCases({ count, seed: 1 });
  expect(wrong).toEqual([]);
  expect(conflicting).toBeGreaterThanOrEqual(count / 2);
});

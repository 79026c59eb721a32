import { expect, test } from 'vitest';
import { comparePlan } from './testing/compare-plan.ts';

test('plan: 2,000 random catalogs, changed step by step -> connections reach what the objects allow, each with its share', () => {
  let compared = 0;
  const differences: string[] = [];
  for (let seed = 1; seed <= 2000; seed += 1) {
    const result = comparePlan(seed);
    compared += result.compared;
    if (result.difference !== undefined) differences.push(result.difference);
  }
  expect(differences.slice(0, 5)).toEqual([]);
  expect(compared).toBeGreaterThan(20_000);
});

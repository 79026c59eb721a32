// A peer cannot fill our disk with lines about itself.

import { expect, test } from 'vitest';
import { LogBudget } from './log-budget.ts';

test('log budget: more lines than a person reads -> twenty a minute; the next one says how many were left out', () => {
  let nowMs = 1000;
  const budget = new LogBudget({ monotonicMs: () => nowMs, wallMs: () => 0 });
  const logged = Array.from({ length: 1500 }, () => budget.take()).filter((fields) => fields !== undefined);
  expect(logged).toHaveLength(20);
  nowMs += 60_000;
  expect(budget.take()).toEqual({ notLogged: 1480 });
  expect(budget.take()).toEqual({});
});

import { expect, test } from 'vitest';
import { compilePattern } from './pattern.ts';
import { patternCost } from './pattern-cost.ts';

test.each([
  ['^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'],
  ['.{1000}.{1000}'],
  ['((a{10}){10}){10}'],
  ['(long text[^](]){100}'],
  ['(long text[])]){100}'],
  ['(long text\\Q(\\E){100}'],
  ['(long text\\(){100}'],
  ['([[:alpha:](]long text){100}'],
  ['(long text){5,}'],
  ['(?:(?P<name>long text)|x){0,100}'],
])('pattern cost: %s -> at least the steps of its program', (source) => {
  const compiled = compilePattern(source);
  if (compiled.kind === 'refused') throw new Error(compiled.reason);
  expect(patternCost(source)).toBeGreaterThanOrEqual(compiled.size);
  expect(patternCost(source)).toBeLessThan(4 * compiled.size + 50);
});

test.each([
  ['long repetitions', '.{1000}'.repeat(1400)],
  ['repetitions in repetitions', '(((a{10}){10}){10})'.repeat(500)],
  ['Unicode classes', '\\pL'.repeat(3000)],
])('pattern cost: %s in 10 KB -> known to be high before anything is compiled', (_what, source) => {
  expect(patternCost(source)).toBeGreaterThan(100_000);
});

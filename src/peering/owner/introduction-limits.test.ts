import { expect, test } from 'vitest';
import { IntroductionLimits } from './introduction-limits.ts';

function limitsAt() {
  const time = { nowMs: 0 };
  const limits = new IntroductionLimits({ wallMs: () => time.nowMs, monotonicMs: () => time.nowMs });
  const tries = (count: number, address: string) =>
    Array.from({ length: count }, () => limits.mayTry(address)).filter((may) => may).length;
  return { time, tries };
}

test('introduction limits: one address tries again and again -> five times, then once in ten seconds', () => {
  const { time, tries } = limitsAt();
  expect(tries(100, '192.0.2.1')).toBe(5);
  expect(tries(1, '192.0.2.2')).toBe(1);
  time.nowMs += 60_000;
  expect(tries(100, '192.0.2.1')).toBe(5);
  time.nowMs += 10_000;
  expect(tries(100, '192.0.2.1')).toBe(1);
});

test('introduction limits: many addresses -> sixty tries, then one in a second', () => {
  const { time, tries } = limitsAt();
  const all = (name: string) =>
    Array.from({ length: 500 }, (_, n) => tries(1, `${name}.${n}`)).reduce((sum, one) => sum + one, 0);
  expect(all('a')).toBe(60);
  time.nowMs += 10_000;
  expect(all('b')).toBe(10);
});

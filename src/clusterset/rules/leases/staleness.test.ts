import { expect, test } from 'vitest';
import { memberStatus, parseStaleness } from './staleness.ts';

test.each([
  ['Withdraw', 'Withdraw'],
  ['not-ready', 'NotReady'],
  ['KEEP', 'Keep'],
  ['away', undefined],
  [undefined, undefined],
])('staleness: %j -> %s', (text, expected) => expect(parseStaleness(text)).toBe(expected));

test.each([
  ['alive', 'Withdraw', true, true],
  ['stale', 'Withdraw', false, false],
  ['stale', 'NotReady', true, false],
  ['stale', 'Keep', true, true],
] as const)('status: %s under %s -> counted %s, trusted %s', (verdict, policy, isCounted, isTrusted) => {
  expect(memberStatus(verdict, policy)).toEqual({ isCounted, isTrusted, isDraining: false });
});

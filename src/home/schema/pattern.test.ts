import { expect, test } from 'vitest';
import { compilePattern, type Pattern } from './pattern.ts';

function compiled(source: string): Pattern {
  const result = compilePattern(source);
  if (result.kind === 'refused') throw new Error(result.reason);
  return result.pattern;
}

// A backtracking engine needs 2^n steps for these texts of n characters: 50,000 characters would never end, so that
// this test ends at all is the proof.
test.each(['^(a+)+$', '^(a|a)*$', '^(a|aa)+$', '^(a*)*b', '^([a-z]+.)+[A-Z]$'])(
  'pattern: %s on 50,000 characters that nearly match -> an answer in linear time',
  (source) => {
    const pattern = compiled(source);
    expect(pattern.test(`${'a'.repeat(50_000)}!`)).toBe(false);
  },
);

test('pattern: not anchored -> found anywhere, as Kubernetes does', () => {
  expect(compiled('b').test('abc')).toBe(true);
});

test('pattern: a dot -> one code point', () => {
  expect(compiled('^.$').test('😀')).toBe(true);
});

test.each([
  ['(?=a)', 'invalid or unsupported Perl syntax'],
  ['(a)\\1', 'invalid escape sequence'],
  ['(', 'missing closing )'],
  ['(a{1000}){1000}', 'invalid repeat count'],
  ['a'.repeat(10_001), 'at most 10000'],
])('pattern: %.20s -> refused, says why', (source, reason) => {
  expect(compilePattern(source)).toEqual({ kind: 'refused', reason: expect.stringContaining(reason) });
});

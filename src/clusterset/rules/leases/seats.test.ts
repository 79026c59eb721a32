import { describe, expect, test } from 'vitest';
import { isSeatOurs } from './seats.ts';

/** `a! b! c e?`: judging, judging, alive, dead; ours is in brackets, with `*` if it is seated. */
function decide(text: string, shortMs = 0): boolean {
  const words = text.split(' ');
  const id = (word: string) => word.replace(/[^a-z]/g, '');
  const own = words.find((word) => word.startsWith('['))!;
  const has = (mark: string) => (asked: string) => words.some((word) => id(word) === asked && word.includes(mark));
  return isSeatOurs({
    self: id(own),
    ids: words.map(id),
    isJudging: has('!'),
    isAlive: (asked) => !has('?')(asked),
    isSeated: own.includes('*'),
    shortMs,
    patienceMs: 20_000,
  });
}

describe('seats', () => {
  test.each([
    ['[a]', true],
    ['a [b] c d', true],
    ['a b [c] d', true],
    ['a b c [d]', false],
    ['a! b! c! [d]', false],
    ['a! b! c! [d*]', false],
    ['a? b! c! [d] e', true],
    ['a? b! c! d [e]', false],
    ['a? b? c? [d] e f g', true],
    ['a? b? c? d e f [g]', false],
    ['a b c [d*]', true],
  ])('seats: %s -> %s', (text, wanted) => expect(decide(text)).toBe(wanted));

  test('seats: those before never take theirs -> ours after a while', () => {
    expect(decide('a b c [d]', 19_000)).toBe(false);
    expect(decide('a b c [d]', 20_000)).toBe(true);
    expect(decide('a! b! c! [d]', 60_000)).toBe(false);
  });
});

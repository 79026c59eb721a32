import { expect, test } from 'vitest';
import { isLinearizable, type Operation } from './linearizability.ts';

const never = Number.POSITIVE_INFINITY;

function write(
  calledAt: number,
  returnedAt: number,
  expected: string | undefined,
  wrote: string | undefined,
): Operation {
  return { calledAt, returnedAt, action: { kind: 'write', expected, wrote } };
}

function read(calledAt: number, returnedAt: number, saw: string | undefined): Operation {
  return { calledAt, returnedAt, action: { kind: 'read', saw } };
}

function refused(calledAt: number, returnedAt: number, expected: string | undefined): Operation {
  return { calledAt, returnedAt, action: { kind: 'refused', expected } };
}

test.each<{ name: string; history: Operation[]; expected: boolean }>([
  { name: 'nothing happened', history: [], expected: true },
  { name: 'write then read', history: [write(0, 1, undefined, 'a'), read(2, 3, 'a')], expected: true },
  {
    name: 'stale read after the write returned',
    history: [write(0, 1, undefined, 'a'), read(2, 3, undefined)],
    expected: false,
  },
  {
    name: 'read beside the write may see either',
    history: [write(0, 5, undefined, 'a'), read(1, 2, undefined), read(3, 4, 'a')],
    expected: true,
  },
  {
    name: 'once seen, never unseen',
    history: [write(0, 9, undefined, 'a'), read(1, 2, 'a'), read(3, 4, undefined)],
    expected: false,
  },
  {
    name: 'two writers cannot both replace a',
    history: [write(0, 1, undefined, 'a'), write(2, 5, 'a', 'b'), write(3, 6, 'a', 'c')],
    expected: false,
  },
  {
    name: 'the second is refused',
    history: [write(0, 1, undefined, 'a'), write(2, 5, 'a', 'b'), refused(3, 6, 'a')],
    expected: true,
  },
  { name: 'refused for no reason', history: [write(0, 1, undefined, 'a'), refused(2, 3, 'a')], expected: false },
  {
    name: 'an unanswered write may have happened',
    history: [write(0, never, undefined, 'a'), read(2, 3, 'a')],
    expected: true,
  },
  {
    name: 'an unanswered write may not have happened',
    history: [write(0, never, undefined, 'a'), read(2, 3, undefined)],
    expected: true,
  },
  {
    name: 'an unanswered write may happen late',
    history: [write(0, never, undefined, 'a'), read(2, 3, undefined), read(4, 5, 'a')],
    expected: true,
  },
  {
    name: 'an acknowledged write is lost',
    history: [write(0, 1, undefined, 'a'), write(2, 3, 'a', 'b'), read(4, 5, 'a')],
    expected: false,
  },
])('linearizability: $name -> $expected', ({ history, expected }) => {
  expect(isLinearizable(history)).toBe(expected);
});

test('linearizability: a long history of overlapping writers is decided quickly', () => {
  const history: Operation[] = [];
  for (let index = 0; index < 3000; index += 1) {
    const before = index === 0 ? undefined : `v${index - 1}`;
    history.push(write(index * 10, index * 10 + 8, before, `v${index}`));
    history.push(read(index * 10 + 1, index * 10 + 9, index % 2 === 0 ? before : `v${index}`));
  }
  expect(isLinearizable(history)).toBe(true);
});

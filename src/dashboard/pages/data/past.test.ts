import { expect, test } from 'vitest';
import { stepsToShow, sumOfLines } from './past.ts';

test('the past of several clusters -> their sum; a step that none was read in stays a gap', () => {
  const lines = [
    { cluster: 'east', points: [null, 1, 2] },
    { cluster: 'west', points: [null, null, 3] },
  ];
  expect(sumOfLines(lines)).toEqual([null, 1, 5]);
});

test.each([
  ['young', [[null, null, null, null, 1, 2]], 3, 3],
  [
    'another is older',
    [
      [null, null, null, null, 1, 2],
      [null, 4, null, 5, 6, 7],
    ],
    3,
    5,
  ],
  ['full', [[1, 2, 3, 4, 5, 6]], 3, 6],
  ['nothing was read', [[null, null, null, null]], 3, 3],
  ['shorter than what is shown at least', [[1]], 3, 1],
])('the past is %s -> shown from its first step on', (_what, lines, stepsMin, expected) => {
  expect(stepsToShow(lines, stepsMin)).toBe(expected);
});

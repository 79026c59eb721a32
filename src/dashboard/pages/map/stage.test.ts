import { describe, expect, test } from 'vitest';
import { type Box, curveOf, layOut, pointOn, type Stage } from './stage.ts';

const counts = [1, 2, 3, 5, 6, 7, 9, 12, 14, 15, 16, 20, 28, 33];
const widths = [720, 790, 1_150, 1_400];
const overlaps = (a: Box, b: Box) =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

describe('stage', () => {
  test.each(widths)('1 to 33 cards in %d pixels -> each has a place of its own inside the picture', (width) => {
    for (const count of counts) {
      const { spots, width: whole, height } = layOut(count, width);
      expect(spots).toHaveLength(count);
      for (const [index, spot] of spots.entries()) {
        for (const other of spots.slice(index + 1)) expect(overlaps(spot, other), `${count} cards`).toBe(false);
        expect(
          spot.x >= 0 && spot.y >= 0 && spot.x + spot.width <= whole + 1 && spot.y + spot.height <= height + 1,
        ).toBe(true);
      }
    }
  });

  test.each(widths)('every line between 2 to 33 cards in %d pixels -> crosses no card', (width) => {
    for (const count of counts)
      for (const split of [undefined, 1]) expect(crossings(layOut(count, width, split)), `${count} cards`).toBe(0);
  });

  test('a card inside the rectangle -> the lines through it would be found', () => {
    const stage = layOut(12, 1_150);
    const { inside } = stage;
    const middle = { ...stage.spots[0]!, x: inside.x + inside.width / 2 - 88, y: inside.y + inside.height / 2 - 33 };
    expect(crossings({ ...stage, spots: [...stage.spots, middle] })).toBeGreaterThan(0);
  });
});

/** Points of lines that lie in a card which the line does not belong to, or in one that it does. */
function crossings({ spots, inside }: Stage): number {
  let found = 0;
  for (const from of spots)
    for (const to of spots) {
      if (from === to) continue;
      const curve = curveOf(from, to, inside);
      for (let step = 0; step <= 12; step += 1) {
        const { x, y } = pointOn(curve, step / 12);
        for (const { x: left, y: top, width, height } of spots)
          if (x > left + 0.5 && x < left + width - 0.5 && y > top + 0.5 && y < top + height - 0.5) found += 1;
      }
    }
  return found;
}

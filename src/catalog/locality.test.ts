import { describe, expect, test } from 'vitest';
import { distance, nearest, nearestFirst, type Place } from './locality.ts';

const place = (text: string): Place => {
  const [cluster = '', region, zone] = text.split('/');
  return { cluster, region, zone };
};
const here = place('east/eu/eu-1');

describe('locality', () => {
  const table: [string, number][] = [
    ['east/eu/eu-1', 0],
    ['east', 0],
    ['west/eu/eu-1', 1],
    ['west/eu/eu-2', 2],
    ['west/us/eu-1', 3],
    ['west/us/us-1', 3],
    ['west', 3],
    ['west//', 3],
  ];
  for (const [text, far] of table) {
    test(`locality: from east/eu/eu-1 to ${text} -> ${far}`, () => expect(distance(here, place(text))).toBe(far));
  }

  test('locality: nobody says a region -> zones are compared by name', () => {
    expect(distance({ cluster: 'a', zone: 'rack-1' }, { cluster: 'b', zone: 'rack-1' })).toBe(1);
  });

  test('locality: sorted -> nearest first, equally near ones in the order they came [001-01]', () => {
    const items = ['far', 'west/eu/eu-2', 'west/eu/eu-1', 'other', 'east'];
    expect(nearestFirst(here, items, place)).toEqual(['east', 'west/eu/eu-1', 'west/eu/eu-2', 'far', 'other']);
  });

  test('locality: the nearest -> all of the nearest kind that has any', () => {
    expect(nearest(here, ['far', 'west/eu/eu-2', 'north/eu/eu-3'], place)).toEqual(['west/eu/eu-2', 'north/eu/eu-3']);
    expect(nearest(here, [], place)).toEqual([]);
  });
});

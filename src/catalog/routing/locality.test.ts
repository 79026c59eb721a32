import { describe, expect, test } from 'vitest';
import { endpointsToUse, type Place, preferenceOf, tierOf } from './locality.ts';

const place = (text: string): Place => {
  const [cluster = '', region, zone] = text.split('/');
  return { cluster, region, zone };
};
const here = place('east/eu/eu-1');

describe('locality', () => {
  const table: [string, number][] = [
    ['east/eu/eu-1', 1],
    ['east/eu/eu-2', 2],
    ['east', 2],
    ['west/eu/eu-1', 3],
    ['west/eu/eu-2', 4],
    ['west/eu', 4],
    ['west/us/eu-1', 5],
    ['west/us/us-1', 5],
    ['west', 5],
    ['west//', 5],
  ];
  for (const [text, tier] of table) {
    test(`locality: from east/eu/eu-1 to ${text} -> tier ${tier}`, () => expect(tierOf(here, place(text))).toBe(tier));
  }

  test('locality: no region is known -> zones are compared by name', () => {
    expect(tierOf({ cluster: 'a', zone: 'rack-1' }, { cluster: 'b', zone: 'rack-1' })).toBe(3);
    expect(tierOf({ cluster: 'a' }, { cluster: 'b' })).toBe(5);
  });

  const values: [string, string | undefined, string][] = [
    ['Spread', undefined, 'Spread'],
    ['NearestFirst', undefined, 'NearestFirst'],
    ['Spread', 'PreferClose', 'NearestFirst'],
    ['Spread', 'PreferSameZone', 'NearestFirst'],
    ['Spread', 'PreferSameNode', 'NearestFirst'],
    ['Spread', '', 'Spread'],
    ['Spread', 'PreferTheMoon', 'Spread'],
    ['NearestFirst', 'PreferTheMoon', 'NearestFirst'],
  ];
  for (const [set, distribution, outcome] of values) {
    test(`locality: the set says ${set}, the service ${distribution} -> ${outcome}`, () => {
      expect(preferenceOf(set as 'Spread', distribution)).toBe(outcome);
    });
  }

  const all = ['far', 'west/eu/eu-2', 'west/eu/eu-1', 'east', 'east/eu/eu-1', 'north/eu/eu-1'];
  const nearest: [string[], string[]][] = [
    [all, ['east/eu/eu-1']],
    [all.filter((text) => text !== 'east/eu/eu-1'), ['east']],
    [all.filter((text) => !text.startsWith('east')), ['west/eu/eu-1', 'north/eu/eu-1']],
    [['far', 'west/eu/eu-2', 'other'], ['west/eu/eu-2']],
    [
      ['far', 'other'],
      ['far', 'other'],
    ],
    [[], []],
  ];
  for (const [ready, used] of nearest) {
    test(`locality: NearestFirst of ${ready.join(', ') || 'none'} -> ${used.join(', ') || 'none'}`, () => {
      expect(endpointsToUse(ready, { from: here, preference: 'NearestFirst', placeOf: place })).toEqual(used);
      expect(endpointsToUse(ready, { from: here, preference: 'Spread', placeOf: place })).toEqual(ready);
    });
  }
});

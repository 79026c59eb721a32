import { describe, expect, test } from 'vitest';
import { oneNetwork } from '../networks/networks.ts';
import { choose, chosenOf } from './choose.ts';
import { type Place, preferenceOf, seenFrom, tierOf } from './locality.ts';

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

  test('locality: the reader knows its own place -> that wins over what the set says of its cluster', () => {
    const clusters = new Map([['east', { region: 'eu', zone: 'eu-9' }]]);
    const set = { preference: 'NearestFirst', clusters } as const;
    expect(seenFrom({ cluster: 'east', zone: 'eu-1' }, set)).toEqual({
      from: here,
      locality: { ...set, clusters: new Map([['east', { region: 'eu', zone: 'eu-1' }]]) },
    });
    expect(seenFrom({ cluster: 'east' }, set).from).toEqual(place('east/eu/eu-9'));
  });
});

const oneWay = { networks: oneNetwork, gatewayProblem: () => undefined };

describe('choose', () => {
  // cluster/region/zone; the zone is the endpoint's own, the region that of its cluster.
  const endpoints = (texts: readonly string[]) => texts.map((text) => ({ text, ...place(text) }));
  const localityOf = (texts: readonly string[], preference: 'Spread' | 'NearestFirst') => ({
    preference,
    clusters: new Map(texts.map((text) => [place(text).cluster, { region: place(text).region }])),
  });
  const all = ['far', 'west/eu/eu-2', 'west/eu/eu-1', 'east/eu', 'east/eu/eu-1', 'north/eu/eu-1'];
  const tables: [string[], string[][]][] = [
    [all, [['east/eu/eu-1'], ['east/eu'], ['west/eu/eu-1', 'north/eu/eu-1'], ['west/eu/eu-2'], ['far']]],
    [
      ['far', 'west/eu/eu-2', 'other'],
      [['west/eu/eu-2'], ['far', 'other']],
    ],
    [['far', 'other'], [['far', 'other']]],
    [[], []],
  ];
  for (const [ready, tiers] of tables) {
    test(`choose: NearestFirst of ${ready.join(', ') || 'none'} -> ${tiers.length} tiers, the first ${tiers[0] ?? 'none'}`, () => {
      const chosen = choose(endpoints(ready), {
        from: here,
        locality: localityOf(ready, 'NearestFirst'),
        trafficDistribution: undefined,
        ...oneWay,
      });
      expect(
        [...chosen.lots.map(({ endpoints }) => endpoints), ...chosen.later].map((tier) => tier.map(({ text }) => text)),
      ).toEqual(tiers);
      expect(chosenOf(chosen).map(({ text }) => text)).toEqual(tiers[0] ?? []);
    });
    test(`choose: Spread of ${ready.join(', ') || 'none'} -> all, unless the service asks for the nearest`, () => {
      const chooser = { from: here, locality: localityOf(ready, 'Spread'), trafficDistribution: undefined, ...oneWay };
      expect(chosenOf(choose(endpoints(ready), chooser)).map(({ text }) => text)).toEqual(ready);
      const close = choose(endpoints(ready), { ...chooser, trafficDistribution: 'PreferClose' });
      expect(chosenOf(close).map(({ text }) => text)).toEqual(tiers[0] ?? []);
    });
  }
});

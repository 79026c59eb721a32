import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type ClusterReach, oneNetwork, type SetNetworks } from '../networks/networks.ts';
import { choose, chosenOf } from './choose.ts';
import { type Place, preferenceOf, tierOf } from './locality.ts';
import { speaksNoTunnel } from './reachable.ts';

const gateway = { address: '203.0.113.1', port: 15443 };
const open: ClusterReach = { network: 'aws', gateways: [gateway], trustRoots: ['pem'], listenerPort: 15_200 };
const networksOf = (clusters: Record<string, ClusterReach>): SetNetworks => ({
  own: 'default',
  clusters: new Map(Object.entries(clusters)),
});
const from: Place = { cluster: 'west', zone: 'a', region: 'eu' };
const nowhere = { preference: 'Spread' as const, clusters: new Map() };
const tunnels = { from, locality: nowhere, trafficDistribution: undefined, gatewayProblem: () => undefined };
const endpoints = (...texts: string[]) =>
  texts.map((text) => ({ text, cluster: text.split('-')[0]!, isBehindGateway: text.endsWith('*') }));
const shown = (choice: ReturnType<typeof choose<ReturnType<typeof endpoints>[number]>>) =>
  chosenOf(choice).map(({ text, via }) => (via === undefined ? text : `${text} via ${via}`));

describe('choose: reachable', () => {
  test('choose: one service directly here, in two other networks behind gateways -> all of them, each by its way', () => {
    const networks = networksOf({ east: open, south: { ...open, network: 'lab' } });
    const choice = choose(endpoints('west-1', 'east-1*', 'north-1', 'south-1*', 'east-2*'), { ...tunnels, networks });
    expect(shown(choice)).toEqual(['west-1', 'east-1* via east', 'north-1', 'south-1* via south', 'east-2* via east']);
    expect(choice.leftOut).toEqual([]);
  });

  test('choose: an address of a cluster that has just moved to another network -> never directly', () => {
    const choice = choose(endpoints('east-1', 'west-1'), { ...tunnels, networks: networksOf({ east: open }) });
    expect(shown(choice)).toEqual(['east-1 via east', 'west-1']);
  });

  const reasons: [why: string, reach: ClusterReach | undefined][] = [
    ['no gateway published', { ...open, gateways: [], problem: 'no gateway published' }],
    ['no trust root published', { ...open, trustRoots: [], problem: 'no trust root published' }],
    ['no gateway published', { ...open, listenerPort: undefined }],
    ['it was in another network, and whether it still is has not been read yet', undefined],
  ];
  for (const [why, reach] of reasons) {
    test(`choose: endpoints of another network, and ${why} -> left out, with the reason and their number`, () => {
      const networks = networksOf(reach === undefined ? {} : { east: reach });
      const choice = choose(endpoints('east-1*', 'west-1', 'east-2*'), { ...tunnels, networks });
      expect(shown(choice)).toEqual(['west-1']);
      expect(choice.leftOut).toEqual([{ cluster: 'east', count: 2, why }]);
    });
  }

  test('choose: a client that speaks no tunnel -> direct endpoints alone', () => {
    const networks = networksOf({ east: open });
    const choice = choose(endpoints('east-1*', 'west-1'), { ...tunnels, networks, gatewayProblem: speaksNoTunnel });
    expect(shown(choice)).toEqual(['west-1']);
    expect(choice.leftOut).toEqual([{ cluster: 'east', count: 1, why: speaksNoTunnel() }]);
  });

  test('choose: the nearest is not reached -> the next tier is the first', () => {
    const locality = {
      preference: 'NearestFirst' as const,
      clusters: new Map([['east', { zone: 'a', region: 'eu' }]]),
    };
    const reach = { ...open, gateways: [], problem: 'no gateway published' };
    const choice = choose(endpoints('far-1', 'east-1*'), {
      ...tunnels,
      locality,
      networks: networksOf({ east: reach }),
    });
    expect(shown(choice)).toEqual(['far-1']);
    expect(choice.later).toEqual([]);
  });

  test('choose: one network, 2,000 random sets -> as before there were networks, the very same objects', () => {
    const place = fc.constantFrom('', 'a', 'b');
    const cluster = fc.constantFrom('west', 'east', 'south');
    const arbitrary = fc.record({
      ready: fc.array(fc.record({ cluster, zone: place }), { maxLength: 12 }),
      preference: fc.constantFrom('Spread' as const, 'NearestFirst' as const),
      trafficDistribution: fc.constantFrom(undefined, 'PreferClose', 'PreferTheMoon'),
      places: fc.dictionary(cluster, fc.record({ zone: place, region: place })),
    });
    fc.assert(
      fc.property(arbitrary, ({ ready, preference, trafficDistribution, places }) => {
        const locality = { preference, clusters: new Map(Object.entries(places)) };
        const choice = choose(ready, { ...tunnels, locality, trafficDistribution, networks: oneNetwork });
        const tiers = [...choice.lots.map((lot) => lot.endpoints), ...choice.later];
        const before = chosenBefore(ready, { locality, trafficDistribution });
        expect(choice.leftOut).toEqual([]);
        expect(tiers.length).toBe(before.length);
        for (const [index, tier] of tiers.entries()) {
          expect(tier.length).toBe(before[index]!.length);
          for (const [at, endpoint] of tier.entries()) expect(endpoint).toBe(before[index]![at]);
        }
      }),
      { numRuns: 2000 },
    );
  });
});

/** The choice without networks: all ready endpoints, or those of each distance in turn. */
function chosenBefore(
  ready: readonly { cluster: string; zone: string }[],
  {
    locality,
    trafficDistribution,
  }: {
    locality: { preference: 'Spread' | 'NearestFirst'; clusters: Map<string, { zone: string; region: string }> };
    trafficDistribution: string | undefined;
  },
) {
  if (ready.length === 0) return [];
  if (preferenceOf(locality.preference, trafficDistribution) === 'Spread') return [ready];
  const distances = ready.map(({ cluster, zone }) => {
    const known = locality.clusters.get(cluster);
    return tierOf(from, { cluster, zone: zone || known?.zone, region: known?.region });
  });
  return [1, 2, 3, 4, 5].map((tier) => ready.filter((_, at) => distances[at] === tier)).filter((t) => t.length > 0);
}

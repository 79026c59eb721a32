import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatRouting, noRouting, type Routing, readRouting } from '../routing/routing.ts';
import { shareOut } from './shares.ts';
import { type ModelEndpoint, modelShares } from './testing/share-model.ts';

/** `east*3 east-2 west~2/1`: three ready endpoints of east in tier 0, two that are not ready, two of west in tier 1. */
function endpointsOf(text: string): ModelEndpoint[] {
  return text.split(' ').flatMap((part) => {
    const [, cluster = '', sign, count, tier = '0'] = /^([a-z]+)([*-])(\d+)(?:\/(\d))?$/.exec(part)!;
    return Array.from({ length: Number(count) }, (_, i) => ({
      id: `${part}${i}`,
      cluster,
      tier: Number(tier),
      isReady: sign === '*',
    }));
  });
}

function sharesOf(endpoints: readonly ModelEndpoint[], routing: Routing) {
  return shareOut({
    ready: endpoints.filter(({ isReady }) => isReady),
    unready: endpoints.filter(({ isReady }) => !isReady),
    routing,
    clusterOf: ({ cluster }) => cluster,
    tierOf: ({ tier }) => tier,
  });
}

/** Percent of new connections by cluster, as `east 95, west 5`. */
function percents(endpoints: readonly ModelEndpoint[], routing: Routing): string {
  const byCluster = new Map<string, number>();
  for (const { share, endpoints: lot } of sharesOf(endpoints, routing).lots)
    for (const { cluster } of lot) byCluster.set(cluster, (byCluster.get(cluster) ?? 0) + (share / lot.length) * 100);
  return [...byCluster].map(([cluster, percent]) => `${cluster} ${Math.round(percent * 10) / 10}`).join(', ');
}

const canary: Routing = {
  ...noRouting,
  groups: [{ clusters: ['east'], weight: 95 }, { clusters: ['west'], weight: 5 }, { clusters: ['south'] }],
};
const few: Routing = { ...noRouting, groups: [{ clusters: ['west'], weight: 5 }] };
const order: Routing = { ...noRouting, groups: [{ clusters: ['east'] }, { clusters: ['west', 'south'] }] };

function shifting(routing: Routing, percent: number): Routing {
  return { ...routing, shift: { from: 'east', to: 'west', percent } };
}

describe('shares', () => {
  test.each<[string, string, Routing, string]>([
    ['weights, whatever the numbers of endpoints', 'east*1 west*9 south*4', canary, 'east 95, west 5'],
    ['a weighted group is empty -> its part goes to the fallback', 'west*9 south*4', canary, 'west 5, south 95'],
    ['no fallback is ready -> back to those that serve', 'west*1', canary, 'west 100'],
    ['only clusters that no group names', 'north*2', canary, 'north 100'],
    ['the fallback is gone too -> clusters that no group names', 'west*1 north*1', canary, 'west 5, north 95'],
    [
      'five percent to a new one -> the rest to all others alike',
      'west*1 east*3 south*1',
      few,
      'west 5, east 71.3, south 23.8',
    ],
    [
      'five percent, the rest has lost its endpoints -> to the fallback',
      'west*1 south*2',
      { ...few, groups: [...few.groups, { clusters: ['south'] }] },
      'west 5, south 95',
    ],
    [
      'weights below a hundred and nobody else -> in proportion',
      'east*1 west*1',
      {
        ...noRouting,
        groups: [
          { clusters: ['east'], weight: 50 },
          { clusters: ['west'], weight: 30 },
        ],
      },
      'east 62.5, west 37.5',
    ],
    [
      'a cluster called constructor',
      'constructor*1 west*1',
      { ...noRouting, lowered: { west: 25 } },
      'constructor 80, west 20',
    ],
    [
      'shares too small to see -> somebody serves',
      'east*1',
      {
        ...noRouting,
        groups: [{ clusters: ['east'], weight: 1 }],
        minReady: { count: 1_000_000 },
        lowered: { east: 1 },
      },
      'east 100',
    ],
    ['five percent, and nobody else is there', 'west*1', few, 'west 100'],
    ['no weights -> one group after the other', 'east*1 west*5', order, 'east 100'],
    ['no weights, the first is gone -> the second by endpoints', 'west*3 south*1', order, 'west 75, south 25'],
    [
      'weight 0 -> nothing while others are ready',
      'east*1 west*1',
      { ...noRouting, groups: [{ clusters: ['west'], weight: 0 }] },
      'east 100',
    ],
    [
      'weight 0 and nobody else -> it serves',
      'west*1',
      { ...noRouting, groups: [{ clusters: ['west'], weight: 0 }] },
      'west 100',
    ],
    ['an excluded cluster is alone -> nobody', 'west*1', { ...noRouting, excluded: ['west'] }, ''],
    [
      'an excluded cluster that a group names -> excluded',
      'east*1 west*1',
      { ...canary, excluded: ['east'] },
      'west 100',
    ],
    [
      'three ready of four wanted -> a quarter leaves',
      'east*3 west*8',
      { ...order, minReady: { count: 4 } },
      'east 75, west 25',
    ],
    [
      'half of those of a group ready, 80 % wanted',
      'east*2 east-2 west*8',
      { ...order, minReady: { percent: 80 } },
      'east 62.5, west 37.5',
    ],
    [
      'all four are ready again, two of them for a moment only -> half',
      'east*4 west*8',
      { ...order, minReady: { count: 4 }, counted: { east: 2 } },
      'east 50, west 50',
    ],
    [
      'more count than are ready -> those that are ready',
      'east*3 west*8',
      { ...order, minReady: { count: 4 }, counted: { east: 9 } },
      'east 75, west 25',
    ],
    [
      'too few everywhere -> in proportion, nothing is lost',
      'east*1 west*1',
      { ...order, minReady: { count: 2 } },
      'east 66.7, west 33.3',
    ],
    [
      'too few near by -> the next tier takes the missing part',
      'east*1/1 west*4/4',
      { ...noRouting, minReady: { count: 2 } },
      'east 50, west 50',
    ],
    [
      'an exporter wants a fifth -> others of its tier take over',
      'east*1 west*1',
      { ...noRouting, lowered: { west: 25 } },
      'east 80, west 20',
    ],
    [
      'an exporter alone wants less -> the next tier takes over',
      'east*1/1 west*1/4',
      { ...noRouting, lowered: { east: 20 } },
      'east 20, west 80',
    ],
    [
      'an exporter alone in the world wants less -> it serves',
      'east*1',
      { ...noRouting, lowered: { east: 20 } },
      'east 100',
    ],
    ['a shift of a fifth, over weights', 'east*3 west*1', shifting(canary, 20), 'east 76, west 24'],
    ['a shift to a farther tier', 'east*3 west*1/4 west*1/5', shifting(noRouting, 5), 'east 95, west 5'],
    ['a shift of all', 'east*3 west*1/4 south*1', shifting(noRouting, 100), 'west 75, south 25'],
    ['a shift that only counts', 'east*3 west*1', shifting(noRouting, 0), 'east 75, west 25'],
    ['a shift to nobody -> nothing moves', 'east*3 west-1', shifting(noRouting, 50), 'east 100'],
    ['a shift to an excluded cluster', 'east*3 west*1', shifting({ ...noRouting, excluded: ['west'] }, 50), 'east 100'],
    ['a shift from nobody', 'west*1 south*1', shifting(noRouting, 50), 'west 50, south 50'],
    ['no endpoint', '', canary, ''],
  ])('%s', (_what, endpoints, routing, expected) => {
    expect(percents(endpoints === '' ? [] : endpointsOf(endpoints), routing)).toBe(expected);
  });

  test('later: endpoints without a share, in the order in which they would be asked', () => {
    const { later } = sharesOf(endpointsOf('east*1 west*1 south*1 north*1'), { ...canary, excluded: ['west'] });
    expect(later.map((some) => some.map(({ cluster }) => cluster))).toEqual([['north']]);
  });

  test('later: a cluster whose part was shifted away is the first to come back', () => {
    const { later } = sharesOf(endpointsOf('east*1 west*1/2 south*1/1'), shifting(noRouting, 100));
    expect(later.map((some) => some.map(({ cluster }) => cluster))).toEqual([['east'], ['south']]);
  });

  test('random groups, weights, tiers and readiness -> as the model says, and nothing is lost', () => {
    fc.assert(fc.property(cases, compare), { numRuns: Number(process.env['SHARE_CASES'] ?? 5000) });
  }, 3_600_000);
});

const clusters = ['east', 'west', 'south', 'north'];
const some = fc.subarray(clusters);
const percents100 = fc.oneof(fc.constant(100), fc.integer({ min: 0, max: 100 }));
const cases = fc.record({
  endpoints: fc.array(fc.record({ cluster: fc.constantFrom(...clusters), tier: fc.nat(2), isReady: fc.boolean() }), {
    maxLength: 10,
  }),
  routing: fc.record(
    {
      groups: fc.array(fc.record({ clusters: some, weight: fc.nat(33) }, { requiredKeys: ['clusters'] }), {
        maxLength: 3,
      }),
      excluded: some.map((all) => all.slice(0, 1)),
      minReady: fc.oneof(
        fc.record({ count: fc.integer({ min: 1, max: 5 }) }),
        fc.record({ percent: fc.integer({ min: 1, max: 100 }) }),
      ),
      counted: fc.dictionary(fc.constantFrom(...clusters), fc.integer({ min: 1, max: 4 }), { maxKeys: 2 }),
      lowered: fc.dictionary(fc.constantFrom(...clusters), fc.integer({ min: 1, max: 99 }), { maxKeys: 2 }),
      shift: fc
        .constant({ from: 'east', to: 'west' })
        .chain((both) => percents100.map((percent) => ({ ...both, percent }))),
    },
    { requiredKeys: ['groups', 'excluded', 'lowered'] },
  ),
});

function compare({ endpoints: given, routing }: { endpoints: Omit<ModelEndpoint, 'id'>[]; routing: Routing }): void {
  const endpoints = given.map((endpoint, index) => ({ ...endpoint, id: `${index}` }));
  const { lots, later } = sharesOf(endpoints, readRouting(formatRouting(routing)));
  const expected = modelShares(endpoints, routing);
  const found = new Map(lots.flatMap((lot) => lot.endpoints.map(({ id }) => [id, lot.share / lot.endpoints.length])));
  expect([...found.keys()].sort()).toEqual([...expected.keys()].sort());
  for (const [id, share] of expected) expect(Math.abs(found.get(id)! - share)).toBeLessThan(1e-6);
  const usable = endpoints.filter(({ isReady, cluster }) => isReady && !routing.excluded.includes(cluster));
  const listed = [...found.keys(), ...later.flatMap((tier) => tier.map(({ id }) => id))];
  expect(listed.sort()).toEqual(usable.map(({ id }) => id).sort());
}

import { describe, expect, test } from 'vitest';
import type { Cluster } from '../../kinds/cluster.ts';
import type { ChoiceSpec, ServiceImportPolicy, ServiceImportPolicySpec } from '../../kinds/service-import-policy.ts';
import { choiceProblem, policyOfImport, routingOf } from './import-policies.ts';
import { describeRouting, formatRouting, isNoRouting, noRouting, readRouting } from './routing.ts';

function policy(name: string, spec: ServiceImportPolicySpec | null): ServiceImportPolicy {
  return { apiVersion: 'portolan.dev/v1alpha1', kind: 'ServiceImportPolicy', metadata: { name }, spec } as never;
}

const checkout = {
  namespace: { name: 'shop', labels: { team: 'a' } },
  name: 'checkout',
  labels: { app: 'web' },
};

describe('the policy of an import', () => {
  test.each<[string, ServiceImportPolicySpec, boolean]>([
    ['nothing given', {}, true],
    ['its namespace', { namespaces: ['bank', 'shop'] }, true],
    ['another namespace', { namespaces: ['bank'] }, false],
    ['no namespace at all', { namespaces: [] }, false],
    ['a label of its namespace', { namespaceSelector: { matchLabels: { team: 'a' } } }, true],
    ['another label of the namespace', { namespaceSelector: { matchLabels: { team: 'b' } } }, false],
    [
      'named beside a selector that does not fit',
      { namespaces: ['shop'], namespaceSelector: { matchLabels: { team: 'b' } } },
      true,
    ],
    ['its name', { services: ['checkout'] }, true],
    ['another name', { services: ['cart'] }, false],
    ['its label', { importSelector: { matchLabels: { app: 'web' } } }, true],
    ['another label', { importSelector: { matchLabels: { app: 'db' } } }, false],
  ])('selected by %s -> %j is %s', (_what, spec, isSelected) => {
    expect(policyOfImport([policy('a', spec)], checkout) !== undefined).toBe(isSelected);
  });

  test('several select it -> the first by name, whatever the order', () => {
    const all = [policy('c', {}), policy('a', {}), policy('b', {})];
    expect(policyOfImport(all, checkout)?.metadata.name).toBe('a');
    expect(policyOfImport(all.reverse(), checkout)?.metadata.name).toBe('a');
  });
});

describe('wishes that make no sense', () => {
  test.each<[string, unknown, RegExp | undefined]>([
    ['an unknown reach', { reach: 'Far' }, /reach: "Far" is neither Any nor Direct/],
    ['weights of 0 for all', { clusters: [{ clusters: ['a'], weight: 0 }] }, /all weights are 0/],
    [
      'more than everything',
      {
        clusters: [
          { clusters: ['a'], weight: 60 },
          { clusters: ['b'], weight: 41 },
        ],
      },
      /add up to 101/,
    ],
    ['a group of nobody', { clusters: [{ weight: 5 }] }, /clusters\[0\] names no cluster/],
    ['a group with an empty list', { clusters: [{ clusters: [], regions: ['eu'] }] }, /clusters\[0\] names no cluster/],
    ['an exclusion of nobody', { clusters: [{ clusters: ['a'] }], exclude: [{}] }, /exclude\[0\] names no cluster/],
    ['a null among the groups', { clusters: [null] }, /clusters\[0\] names no cluster/],
    ['a percentage of nothing', { spillover: { minReady: '0%' } }, /"0%" is neither/],
    ['a half', { spillover: { minReady: 0.5 } }, /0.5 is neither/],
    ['lists that are null', { clusters: null, exclude: null, spillover: null }, undefined],
    ['minReady that is null', { spillover: { minReady: null } }, undefined],
    ['100 percent, and a fallback', { clusters: [{ clusters: ['a'], weight: 100 }, { zones: ['z'] }] }, undefined],
  ])('%s', (_what, choice, expected) => {
    const problem = choiceProblem(choice as ChoiceSpec);
    if (expected === undefined) expect(problem).toBeUndefined();
    else expect(problem).toMatch(expected);
  });
});

describe('routing of an import', () => {
  const cluster = (region: string, zone: string, labels = {}, properties: object | null = null) =>
    ({
      metadata: { name: '', labels },
      spec: { namespace: '', region, zone },
      status: { properties },
    }) as unknown as Cluster;
  const exporters = [
    { id: 'east', cluster: cluster('eu', 'eu-1', { tier: 'gold' }, { 'gpu.example': 'a100', odd: 7 }) },
    { id: 'west', cluster: cluster('us', 'us-1'), share: 20 },
    { id: 'north', cluster: cluster('eu', 'eu-2'), isOtherNetwork: true },
    { id: 'lost', cluster: undefined },
  ];
  test.each<[string, ChoiceSpec, string]>([
    ['ids', { clusters: [{ clusters: ['east', 'elsewhere'], weight: 9 }] }, '[["east"],9]'],
    ['a region', { clusters: [{ regions: ['eu'] }] }, '[["east","north"]]'],
    ['a region and a zone', { clusters: [{ regions: ['eu'], zones: ['eu-2'] }] }, '[["north"]]'],
    ['labels of the cluster', { clusters: [{ clusterSelector: { matchLabels: { tier: 'gold' } } }] }, '[["east"]]'],
    [
      'a ClusterProperty',
      { clusters: [{ propertySelector: { matchLabels: { 'gpu.example': 'a100' } } }] },
      '[["east"]]',
    ],
    [
      'a ClusterProperty that is no text',
      { clusters: [{ propertySelector: { matchExpressions: [{ key: 'odd', operator: 'Exists' }] }, weight: 9 }] },
      '[[],9]',
    ],
    [
      'no such ClusterProperty, and it is a member',
      { clusters: [{ propertySelector: { matchExpressions: [{ key: 'gpu.example', operator: 'DoesNotExist' }] } }] },
      '[["north","west"]]',
    ],
    [
      'an exclusion goes before a group',
      { clusters: [{ regions: ['eu'] }], exclude: [{ clusters: ['east'] }] },
      '[["north"]]',
    ],
    ['direct alone, one elsewhere', { clusters: [{ regions: ['eu'] }], reach: 'Direct' }, '[["east"]]'],
    ['a group of nobody who exports keeps its weight', { clusters: [{ clusters: ['a'], weight: 9 }] }, '[[],9]'],
  ])('%s -> %j', (_what, choice, groups) => {
    const text = formatRouting(routingOf(choice, exporters));
    expect(text).toContain(`"g":[${groups}]`);
    expect(text).toContain('"l":{"west":20}');
    expect(formatRouting(readRouting(text))).toBe(text);
  });

  test.each(['', '{', '[]', 'null', '{"g":7,"x":[1],"n":-1,"l":{"a":0}}', '{"g":[[["a"],1000],7]}'])(
    'text %j on an import -> no wish, and traffic goes on',
    (text) => {
      expect(isNoRouting(readRouting(text))).toBe(true);
      expect({ ...noRouting, ...readRouting(text) }).toEqual(noRouting);
    },
  );

  test.each<[string, string | undefined]>([
    ['', undefined],
    ['{"g":[[["east"],95],[["west"],5],[["south","north"]]]}', 'east 95 %, west 5 %; then south and north'],
    ['{"g":[[["east"]],[["west"]]],"x":["north"]}', 'first east, then west; never north'],
    ['{"g":[[[],95]],"n":3}', 'nobody who exports it 95 %; less to those with fewer than 3 ready'],
    ['{"l":{"east":20},"p":50}', 'east wants 20 % of its share; less to those with fewer than 50 % ready'],
  ])('%s -> in words', (text, words) => {
    expect(describeRouting(readRouting(text))).toBe(words);
  });
});

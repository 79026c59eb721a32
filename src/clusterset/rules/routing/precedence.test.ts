import { describe, expect, test } from 'vitest';
import type { ServiceImportPolicy } from '../../kinds/service-import-policy.ts';
import { precedenceOf } from './precedence.ts';
import { noRouting } from './routing.ts';

const policy = (name: string, spec: object) => ({ metadata: { name }, spec }) as ServiceImportPolicy;
const subject = { namespace: { name: 'shop' }, name: 'checkout', labels: {} };
const west = { clusters: [{ clusters: ['west'] }] };

describe('precedence', () => {
  test.each<[string, Partial<Parameters<typeof precedenceOf>[0]>, string[]]>([
    ['nobody has a wish', {}, []],
    ['the set alone', { hasSetChoice: true }, ['ClusterSet.spec.choice decides: no ServiceImportPolicy selects it']],
    [
      'two policies, the set, an exporter and a shift',
      {
        policies: [policy('b', west), policy('a', west), policy('other', { namespaces: ['bank'] })],
        hasSetChoice: true,
        routing: { ...noRouting, lowered: { east: 20 }, shift: { from: 'east', to: 'west', percent: 5 } },
      },
      [
        'ServiceImportPolicy a decides: the first by name that selects it',
        'no say, because others are first by name: b',
        'ClusterSet.spec.choice: not used, a policy selects it',
        'exporters lower their own share: east to 20 %',
        'a TrafficShift lies over all of it',
      ],
    ],
    [
      'one that makes no sense',
      { policies: [policy('a', { clusters: [{ clusters: ['west'], weight: 0 }] })] },
      [
        'ServiceImportPolicy a would decide, and makes no sense (all weights are 0: give one of them a part, or leave the weights out): what held before goes on',
      ],
    ],
  ])('%s', (_what, facts, lines) => {
    expect(precedenceOf({ policies: [], subject, hasSetChoice: false, routing: noRouting, ...facts })).toEqual(lines);
  });
});

import { expect, test } from 'vitest';
import type { ServiceAccessPolicy } from '../../kinds/service-access-policy.ts';
import { Callers, callersData, callersOf, readCallers, ruleOf } from './callers.ts';

type Spec = ServiceAccessPolicy['spec'];

const policy = (spec: unknown, namespace = 'shop') =>
  ({ metadata: { name: 'p', namespace }, spec: spec as Spec }) as ServiceAccessPolicy;
const written = (...specs: unknown[]) => {
  const { callers } = callersData(specs.map((spec) => ruleOf(policy(spec))));
  return readCallers({ data: callers === undefined ? {} : { callers } });
};
const shown = (callers: Callers, { exportTo, service = 'shop/db' }: { exportTo?: string[]; service?: string } = {}) => {
  const access = callersOf({ exportTo }, service, callers);
  const namespaces = [...access.namespaces].map(([id, names]) => `${id}/${names.join('+')}`);
  return [...(access.exportTo ?? ['everybody']), ...namespaces].join(' ') || 'nobody';
};

const west = { cluster: 'west' };
const billing = { cluster: 'west', namespaces: ['billing'] };

test.each<[string, Callers, string, string[]?]>([
  ['no policy', written(), 'everybody'],
  ['no policy, an export to one', written(), 'west', ['west']],
  ['a policy of another service', written({ services: ['web'], from: [west] }), 'everybody'],
  ['a policy of the namespace', written({ from: [west] }), 'west'],
  [
    'a cluster that the export does not name',
    written({ from: [west, { cluster: 'south' }] }),
    'south',
    ['south', 'north'],
  ],
  [
    'namespaces of a cluster',
    written({ services: ['db'], from: [billing, { cluster: 'south' }] }),
    'south west/billing',
  ],
  ['namespaces of a cluster that the export does not name', written({ from: [billing] }), 'nobody', ['south']],
  [
    'two policies',
    written({ services: ['db'], from: [billing] }, { from: [{ cluster: 'west', namespaces: ['audit', 'billing'] }] }),
    'west/audit+billing',
  ],
  ['two policies, one for all of the cluster', written({ from: [billing] }, { from: [west] }), 'west'],
  ['it names nobody', written({ from: [] }), 'nobody'],
  ['null in place of all', written({ services: null, from: null }), 'nobody'],
  ['no spec', written(undefined), 'nobody'],
  ['no namespaces', written({ from: [{ cluster: 'west', namespaces: [] }] }), 'nobody'],
  ['null in place of namespaces', written({ from: [{ cluster: 'west', namespaces: null }] }), 'nobody'],
  ['an entry that is nonsense', written({ from: [null, 7, { cluster: null }, west] }), 'west'],
  ['a cluster with a special name', written({ from: [{ cluster: '__proto__' }] }), '__proto__'],
  ['nonsense in the ConfigMap', new Callers('{'), 'nobody'],
  ['other nonsense there', new Callers('[7]'), 'nobody'],
])('callers: %s -> %#', (_what, callers, expected, exportTo) => {
  expect(shown(callers, exportTo && { exportTo })).toBe(expected);
});

test('callers: policies for which there is no room -> their namespaces are closed, others are as written', () => {
  const names = Array.from({ length: 32 }, (_, index) => `${'n'.repeat(60)}${index}`);
  const from = Array.from({ length: 32 }, (_, index) => ({ cluster: `c${index}`, namespaces: names }));
  const many = Array.from({ length: 20 }, (_, index) => ruleOf(policy({ services: ['db'], from }, `n${index}`)));
  const open = ruleOf(policy({ from: [west] }, 'a'));
  const { callers = '', closed } = callersData([open, ...many, ruleOf(policy({ from: [west] }, 'n19'))]);
  expect(callers.length).toBeLessThan(700_000);
  expect(closed).toContain('n19');
  const read = readCallers({ data: { callers } });
  expect([
    shown(read, { service: 'a/db' }),
    shown(read, { service: 'n19/db' }),
    shown(read, { service: 'n19/web' }),
  ]).toEqual(['west', 'nobody', 'nobody']);
});

test('callers: what differs -> the namespaces of policies that came, went or changed', () => {
  const one = new Callers(
    callersData([ruleOf(policy({ from: [west] })), ruleOf(policy({ from: [west] }, 'bank'))]).callers!,
  );
  const other = new Callers(
    callersData([ruleOf(policy({ from: [billing] })), ruleOf(policy({ from: [west] }, 'bank'))]).callers!,
  );
  expect([...one.differs(other)!]).toEqual(['shop']);
  expect([...one.differs(new Callers(''))!].sort()).toEqual(['bank', 'shop']);
  expect(one.differs(new Callers('{'))).toBeUndefined();
  expect([...one.differs(one)!]).toEqual([]);
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Attributes } from '../model/access.ts';
import { type AggregableRole, allows, effectiveRules, formatRule, type PolicyRule, uncovered } from './rules.ts';

/** `get apps/deployments/scale name`: verb, group/resource/subresource, name; a path begins with a slash. */
function ask(text: string): Attributes {
  const [verb = '', what = '', name = ''] = text.split(' ');
  const nothing = { group: '', version: 'v1', resource: '', subresource: '', namespace: '', name };
  if (what.startsWith('/')) return { ...nothing, verb, path: what };
  const [group = '', resource = '', subresource = ''] = what.split('/');
  return { ...nothing, verb, group: group === 'core' ? '' : group, resource, subresource };
}

const rule = (verbs: string, groups: string, resources: string, names?: string): PolicyRule => ({
  verbs: verbs.split(','),
  apiGroups: groups.split(',').map((group) => (group === 'core' ? '' : group)),
  resources: resources.split(','),
  ...(names === undefined ? {} : { resourceNames: names.split(',') }),
});
const urls = (verbs: string, ...nonResourceURLs: string[]): PolicyRule => ({
  verbs: verbs.split(','),
  nonResourceURLs,
});

const table: [PolicyRule, string, boolean][] = [
  [rule('get,list', 'core', 'pods'), 'get core/pods x', true],
  [rule('get,list', 'core', 'pods'), 'list core/pods', true],
  [rule('get,list', 'core', 'pods'), 'delete core/pods x', false],
  [rule('get', 'core', 'pods'), 'get apps/pods x', false],
  [rule('get', 'core', 'pods'), 'get core/secrets x', false],
  [rule('get', 'core', 'pods'), 'get core/pods/log x', false],
  [rule('get', 'core', 'pods/log'), 'get core/pods/log x', true],
  [rule('get', 'core', 'pods/log'), 'get core/pods x', false],
  [rule('*', 'core', 'pods'), 'escalate core/pods x', true],
  [rule('get', '*', 'pods'), 'get metrics.k8s.io/pods x', true],
  [rule('get', 'core', '*'), 'get core/pods/log x', true],
  [rule('update', 'apps', '*/scale'), 'update apps/deployments/scale x', true],
  [rule('update', 'apps', '*/scale'), 'update apps/deployments x', false],
  [rule('update', 'apps', '*/scale'), 'update apps/deployments/status x', false],
  [rule('get', 'core', 'pods', 'one,two'), 'get core/pods two', true],
  [rule('get', 'core', 'pods', 'one,two'), 'get core/pods three', false],
  [rule('list', 'core', 'pods', 'one'), 'list core/pods', false],
  [rule('list', 'core', 'pods', 'one'), 'list core/pods one', true],
  [rule('create', 'core', 'pods', 'one'), 'create core/pods', false],
  [rule('deletecollection', 'core', 'pods', 'one'), 'deletecollection core/pods', false],
  [rule('get', 'core', 'pods', ''), 'get core/pods', false],
  [rule('*', '*', '*'), 'get /metrics', false],
  [urls('get', '/metrics'), 'get /metrics', true],
  [urls('get', '/metrics'), 'post /metrics', false],
  [urls('get', '/metrics'), 'get /metrics/more', false],
  [urls('get', '/metrics/*'), 'get /metrics/more', true],
  [urls('get', '/metrics/*'), 'get /metrics', false],
  [urls('get', '*'), 'get /anything', true],
  [urls('*', '/x'), 'get core/pods x', false],
  [{ verbs: ['*'], apiGroups: ['*'] }, 'get core/pods x', false],
  [{ verbs: ['*'], resources: ['*'] }, 'get core/pods x', false],
];

describe('rules: what a rule allows', () => {
  test.each(table)('rules: %j asked "%s" -> %s', (held, asked, isAllowed) => {
    expect(allows(held, ask(asked))).toBe(isAllowed);
  });
});

const covering: [string, PolicyRule[], PolicyRule[], string][] = [
  ['the same', [rule('get', 'core', 'pods')], [rule('get', 'core', 'pods')], ''],
  ['a part', [rule('get,list', 'core,apps', 'pods,secrets')], [rule('get', 'core', 'secrets')], ''],
  [
    'put together from two',
    [rule('get', 'core', 'pods'), rule('list', 'core', 'pods')],
    [rule('get,list', 'core', 'pods')],
    '',
  ],
  [
    'another verb',
    [rule('get', 'core', 'pods')],
    [rule('get,list', 'core', 'pods')],
    '{APIGroups:[""], Resources:["pods"], Verbs:["list"]}',
  ],
  [
    'every verb',
    [rule('get,list', 'core', 'pods')],
    [rule('*', 'core', 'pods')],
    '{APIGroups:[""], Resources:["pods"], Verbs:["*"]}',
  ],
  [
    'every resource',
    [rule('get', 'core', 'pods')],
    [rule('get', 'core', '*')],
    '{APIGroups:[""], Resources:["*"], Verbs:["get"]}',
  ],
  [
    'every group',
    [rule('get', 'core', 'pods')],
    [rule('get', '*', 'pods')],
    '{APIGroups:["*"], Resources:["pods"], Verbs:["get"]}',
  ],
  ['one name of all', [rule('get', 'core', 'pods')], [rule('get', 'core', 'pods', 'one')], ''],
  [
    'all names from one',
    [rule('get', 'core', 'pods', 'one')],
    [rule('get', 'core', 'pods')],
    '{APIGroups:[""], Resources:["pods"], Verbs:["get"]}',
  ],
  [
    'another name',
    [rule('get', 'core', 'pods', 'one')],
    [rule('get', 'core', 'pods', 'one,two')],
    '{APIGroups:[""], Resources:["pods"], ResourceNames:["two"], Verbs:["get"]}',
  ],
  ['a subresource by its star', [rule('get', 'core', '*/log')], [rule('get', 'core', 'pods/log')], ''],
  [
    'a subresource by the resource',
    [rule('get', 'core', 'pods')],
    [rule('get', 'core', 'pods/log')],
    '{APIGroups:[""], Resources:["pods/log"], Verbs:["get"]}',
  ],
  ['a path by its prefix', [urls('get', '/api/*')], [urls('get', '/api/v1', '/api/v1/*')], ''],
  ['every path', [urls('get', '/api/*')], [urls('get', '*')], '{NonResourceURLs:["*"], Verbs:["get"]}'],
  ['a path by resources', [rule('*', '*', '*')], [urls('get', '/x')], '{NonResourceURLs:["/x"], Verbs:["get"]}'],
];

describe('rules: what a set of rules covers', () => {
  test.each(covering)('rules: giving away %s -> what is missing', (_name, held, wanted, missing) => {
    expect(uncovered(held, wanted).map(formatRule).join('\n')).toBe(missing);
  });

  test('rules: whatever is covered -> nothing more is allowed by it', () => {
    const pick = (...options: string[]) => fc.subarray(options, { minLength: 1, maxLength: 2 });
    const anyRule = fc.record(
      {
        verbs: pick('get', 'list', '*'),
        apiGroups: pick('', 'apps', '*'),
        resources: pick('pods', 'pods/log', '*/log', '*'),
        resourceNames: pick('one', 'two'),
      },
      { requiredKeys: ['verbs', 'apiGroups', 'resources'] },
    );
    const asked = ['get', 'list', 'delete'].flatMap((verb) =>
      ['core', 'apps', 'other'].flatMap((group) =>
        ['pods', 'pods/log', 'secrets', 'secrets/log'].flatMap((resource) =>
          ['', 'one', 'three'].map((name) => ask(`${verb} ${group}/${resource} ${name}`)),
        ),
      ),
    );
    fc.assert(
      fc.property(fc.array(anyRule, { maxLength: 3 }), fc.array(anyRule, { maxLength: 2 }), (held, wanted) => {
        if (uncovered(held, wanted).length > 0) return;
        for (const attributes of asked) {
          const isGiven = wanted.some((one) => allows(one, attributes));
          if (isGiven) expect(held.some((one) => allows(one, attributes))).toBe(true);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('rules: a rule of millions of grants -> refused without looking at each', () => {
    const many = Array.from({ length: 1000 }, (_, index) => `r${index}`).join(',');
    expect(uncovered([rule('*', '*', '*')], [rule(many, many, many)]).length).toBe(1);
  });
});

const plain = (name: string, labels: Record<string, string>): AggregableRole => ({
  name,
  labels,
  rules: [{ verbs: ['get'], apiGroups: [''], resources: [name] }],
});
const made = (name: string, of: string, labels: Record<string, string> = {}): AggregableRole => ({
  name,
  labels,
  rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }],
  selectors: [{ matchLabels: { [of]: 'true' } }],
});
const resources = (role: AggregableRole, all: AggregableRole[]) =>
  effectiveRules(role, all)
    .map((rule) => rule.resources?.[0])
    .sort();

describe('aggregation', () => {
  test('aggregation: a role made of others -> their rules, and not its own', () => {
    const view = made('view', 'to-view');
    const all = [view, plain('pods', { 'to-view': 'true' }), plain('secrets', { 'to-view': 'false' })];
    expect(resources(view, all)).toEqual(['pods']);
  });

  test('aggregation: roles made of roles made of roles -> all of them, circles included', () => {
    const admin = made('admin', 'to-admin', { 'to-view': 'true' });
    const edit = made('edit', 'to-edit', { 'to-admin': 'true' });
    const view = made('view', 'to-view', { 'to-edit': 'true' });
    const all = [admin, edit, view, plain('pods', { 'to-view': 'true' }), plain('roles', { 'to-admin': 'true' })];
    expect(resources(admin, all)).toEqual(['pods', 'roles']);
  });

  test('aggregation: the same rule by two ways -> counts once', () => {
    const view = made('view', 'to-view');
    const twin = { ...plain('pods', { 'to-view': 'true' }), name: 'twin' };
    expect(resources(view, [view, plain('pods', { 'to-view': 'true' }), twin])).toEqual(['pods']);
  });

  test('aggregation: a role with rules of its own -> just those', () => {
    expect(resources(plain('pods', {}), [])).toEqual(['pods']);
  });
});

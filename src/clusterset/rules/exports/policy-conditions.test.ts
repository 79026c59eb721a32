import { expect, test } from 'vitest';
import type { Condition } from '../../../kube/objects/object.ts';
import type { ServiceAccessPolicy } from '../../kinds/service-access-policy.ts';
import { oneNetwork } from '../networks/networks.ts';
import { ruleOf } from './callers.ts';
import { type PolicyFacts, policyConditions } from './policy-conditions.ts';

const far = { network: 'other', gateways: [], trustRoots: [] };
const apart = {
  own: 'here',
  clusters: new Map([
    ['west', far],
    ['south', far],
  ]),
};
const enforced = (status: Condition['status'], message = '') =>
  [{ type: 'AccessEnforced', status, reason: 'X', message, lastTransitionTime: '' }] as Condition[];

function conditions(from: readonly object[], more: Partial<PolicyFacts> = {}) {
  const policy = { metadata: { name: 'p', namespace: 'shop' }, spec: { from } } as ServiceAccessPolicy;
  const facts: PolicyFacts = {
    ...{ rule: ruleOf(policy), isClosed: false, members: new Set(['east', 'west', 'south']), self: 'east' },
    ...{ networks: oneNetwork, mode: 'Exported', conditions: enforced('True'), olderServers: [], olderProxies: [] },
    ...more,
  };
  return policyConditions(facts).map(({ status, reason, message }) => `${status} ${reason}: ${message}`);
}

const west = { cluster: 'west' };
const billing = { cluster: 'west', namespaces: ['billing'] };

test.each<[string, readonly object[], Partial<PolicyFacts>, RegExp]>([
  ['whole clusters, packets are limited', [west], {}, /^True Enforced/],
  ['access is open', [west], { mode: 'Open' }, /^False PacketsPass: packets of west, south pass .* access is Open/],
  ['access is audited', [west], { mode: 'Audit' }, /^False PacketsPass: .* access is Audit/],
  ['the mode is not known', [west], { mode: undefined }, /^Unknown Pending/],
  [
    'a node does not enforce',
    [west],
    { conditions: enforced('False', 'n1: no proxy') },
    /^False NodesDoNotEnforce: .*n1/,
  ],
  ['a node is silent', [west], { conditions: enforced('Unknown', 'n1: silent') }, /^Unknown NodesDoNotEnforce/],
  ['no node has reported', [west], { conditions: undefined }, /^Unknown NodesDoNotEnforce/],
  ['an older proxy', [west], { olderProxies: ['n1'] }, /^False OlderProxy: .*\(n1\)/],
  ['namespaces, by packets', [billing], {}, /^False NamespaceNotShown: west: in this network/],
  ['whole clusters of other networks, access is open', [west], { networks: apart, mode: 'Open' }, /^True Enforced/],
  ['namespaces of another network', [billing], { networks: apart }, /^False NamespaceNotShown: west: its proxies/],
  ['an older discovery server', [west], { networks: apart, olderServers: ['x'] }, /^False OlderServer: .*\(x\)/],
])('policy: %s -> the condition Enforced says so', (_what, from, more, expected) => {
  expect(conditions(from, more)[1]).toMatch(expected);
});

test.each<[string, readonly object[], Partial<PolicyFacts>, RegExp]>([
  ['members', [west], {}, /^True Accepted: $/],
  ['nobody', [], {}, /^False NamesNobody: .*nobody of other clusters may call/],
  ['no namespace', [{ cluster: 'west', namespaces: [] }], {}, /^False NamesNobody/],
  ['a stranger', [west, { cluster: 'moon' }], {}, /^True NoSuchCluster: .*: moon$/],
  ['more than there is room for', [west], { isClosed: true }, /^False NoRoom: .*namespace shop/],
])('policy: it names %s -> the condition Accepted says so', (_what, from, more, expected) => {
  expect(conditions(from, more)[0]).toMatch(expected);
});

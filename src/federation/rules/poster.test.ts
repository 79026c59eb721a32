import { expect, test } from 'vitest';
import type { Cluster } from '../../clusterset/kinds/cluster.ts';
import { addressOf, resolverOf } from './poster.ts';

function cluster(spec: Partial<Cluster['spec']>, endpoint?: string): Cluster {
  return {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'Cluster',
    metadata: { name: 'east' },
    spec: { namespace: 'prod-m-east', ...spec },
    ...(endpoint === undefined ? {} : { status: { resolver: { endpoint } } }),
  };
}

const cases: readonly (readonly [string, Cluster, string | undefined, string])[] = [
  ['nothing reported', cluster({}), undefined, 'no resolver of it has reported'],
  ['an address', cluster({}, 'https://10.0.0.7:8553'), 'https://10.0.0.7:8553', ''],
  ['an IPv6 address', cluster({}, 'https://[fd00::7]:8553'), 'https://[fd00::7]:8553', ''],
  ['inside its ranges', cluster({ allowedRanges: ['10.0.0.0/24'] }, 'https://10.0.0.7:1'), 'https://10.0.0.7:1', ''],
  ['outside its ranges', cluster({ allowedRanges: ['10.1.0.0/16'] }, 'https://10.0.0.7:1'), undefined, 'is refused'],
  ['the reader itself', cluster({}, 'https://127.0.0.1:6443'), undefined, 'is refused'],
  ['cloud metadata', cluster({}, 'https://169.254.169.254'), undefined, 'is refused'],
  ['a name', cluster({}, 'https://internal.example:443'), undefined, 'is refused'],
  ['a path', cluster({}, 'https://10.0.0.7:8553/admin'), undefined, 'is refused'],
  ['user and password', cluster({}, 'https://a:b@10.0.0.7'), undefined, 'is refused'],
];

test.each(cases)('resolver of a member: %s -> used or refused with the reason', (_name, member, endpoint, why) => {
  const found = resolverOf(member);
  expect(found.to?.endpoint).toBe(endpoint);
  expect(found.why).toContain(why);
});

test('resolver of a member: the admin wrote one -> it goes first, whatever the member reports', () => {
  const resolver = { endpoint: 'https://resolver.east.example', caBundle: 'Zm9v' };
  expect(resolverOf(cluster({ resolver }, 'https://10.0.0.7:8553')).to).toEqual(resolver);
  expect(addressOf({ endpoint: 'https://[fd00::7]' })).toBe('fd00::7');
});

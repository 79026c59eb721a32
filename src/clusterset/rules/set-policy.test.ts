import { expect, test } from 'vitest';
import type { ClusterSetSpec } from '../kinds/cluster-set.ts';
import { readSetPolicy } from './set-policy.ts';

const policyOf = (spec?: ClusterSetSpec) =>
  readSetPolicy({ apiVersion: 'portolan.dev/v1alpha1', kind: 'ClusterSet', metadata: { name: 'prod' }, spec });

test('set policy: no ClusterSet, or one without a spec -> the defaults, times in milliseconds', () => {
  expect(readSetPolicy(undefined)).toEqual(policyOf());
  expect(policyOf()).toMatchObject({
    ports: 'union',
    endpoints: 'Pods',
    clusterSetIps: 'allocate',
    staleness: 'Withdraw',
    locality: 'Spread',
    lease: {
      renewMs: 5_000,
      leaseMs: 30_000,
      renewalGapMsMax: 20_000,
      holdDownMs: 60_000,
      holdDownMsMax: 600_000,
      calmMs: 600_000,
    },
    holdMs: 86_400_000,
    zone: 'clusterset.local',
  });
});

test('set policy: some settings -> those, and the defaults of the others', () => {
  const policy = policyOf({ lease: { renewSeconds: 1 }, dns: { zone: 'corp.example' }, addressRanges: { peers: [] } });
  expect(policy.lease).toMatchObject({ renewMs: 1000, renewalGapMsMax: 20_000, leaseMs: 30_000 });
  expect(policy).toMatchObject({ zone: 'corp.example', dns: { zone: 'corp.example', ttlSeconds: 5 } });
  expect(policy.addressRanges).toMatchObject({ peers: [], clusterSet: ['243.0.0.0/12', 'fd70:6f72:74f3::/64'] });
});

test('set policy: ranges -> by family for clusterset IPs, all of them for what no endpoint may be in; invalid ones left out', () => {
  const { ranges, virtualRanges } = policyOf({
    addressRanges: { clusterSet: ['243.0.0.0/12', 'no range'], peers: ['241.0.0.0/12'], external: ['fd70::/64'] },
  });
  expect([...ranges.keys()]).toEqual(['IPv4']);
  expect(virtualRanges.map(({ family }) => family)).toEqual(['IPv4', 'IPv4', 'IPv6']);
});

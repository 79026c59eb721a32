import { describe, expect, test } from 'vitest';
import type { KnownMember } from '../../clusterset/explain/broker-state.ts';
import { knownRanges } from '../../clusterset/explain/broker-state.ts';
import type { Cluster } from '../../clusterset/kinds/cluster.ts';
import type { ClusterSet } from '../../clusterset/kinds/cluster-set.ts';
import { checkedGateways, networkLines, refuseOtherNetwork } from './networks.ts';

const cluster = (name: string, network?: string): Cluster => ({
  apiVersion: 'portolan.dev/v1alpha1',
  kind: 'Cluster',
  metadata: { name },
  spec: { namespace: `prod-m-${name}`, ...(network ? { network } : {}) },
});

describe('join: networks', () => {
  test('join: the admin gave another network -> refused; the same or none -> not', () => {
    expect(() => refuseOtherNetwork(cluster('east', 'aws'), 'lab')).toThrow('is in network aws');
    expect(() => refuseOtherNetwork(cluster('east', 'aws'), 'aws')).not.toThrow();
    expect(() => refuseOtherNetwork(cluster('east'), 'lab')).not.toThrow();
    expect(() => refuseOtherNetwork(cluster('east', 'aws'), undefined)).not.toThrow();
  });

  test('join: a network that the admin has not confirmed -> said, with the command', () => {
    expect(networkLines(cluster('east'), 'aws').join()).toContain('portolan broker accept east');
    expect(networkLines(cluster('east', 'aws'), 'aws')).toEqual([]);
    expect(networkLines(cluster('east'), undefined)).toEqual([]);
  });

  test('join: gateways -> addresses with ports alone', () => {
    expect(checkedGateways(['203.0.113.7:15443', '[2001:db9::7]:443'])).toBe('203.0.113.7:15443,[2001:db9::7]:443');
    for (const wrong of ['lb.example:443', '203.0.113.7', '203.0.113.7:0', '203.0.113.7:99999', ''])
      expect(() => checkedGateways([wrong]), wrong).toThrow('--gateway');
  });
});

test('known ranges: members of other networks -> their ranges do not count; those of the set do', () => {
  const set = { metadata: { name: 'prod' }, spec: {} } as unknown as ClusterSet;
  const member = (id: string, network?: string): KnownMember => ({
    id,
    cluster: cluster(id, network),
    record: { homeUid: id, joinedAt: '', region: '', zone: '', podRanges: ['10.1.0.0/16'], serviceRanges: [] },
  });
  const members = [member('east', 'aws'), member('west'), member('north', 'default'), member('self')];
  const seen = (network: string) =>
    knownRanges(set, members, { except: 'self', network })
      .filter(({ kind }) => kind === 'pods')
      .map(({ whose }) => whose);
  expect(seen('default')).toEqual(['pods of cluster west', 'pods of cluster north']);
  expect(seen('aws')).toEqual(['pods of cluster east']);
  expect(knownRanges(set, members, { except: 'self', network: 'lab' }).length).toBeGreaterThan(0);
});

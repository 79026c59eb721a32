import { describe, expect, test } from 'vitest';
import type { KnownMember } from '../../clusterset/explain/broker-state.ts';
import { knownRanges } from '../../clusterset/explain/broker-state.ts';
import type { Cluster } from '../../clusterset/kinds/cluster.ts';
import type { ClusterSet } from '../../clusterset/kinds/cluster-set.ts';
import { gatewayName } from '../../clusterset/rules/networks/gateway-report.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { memoryHome } from '../../peering/testing/edge/memory-home.ts';
import { checkedGateways, keepGateways, networkLines, overlapAdvice, refuseOtherNetwork } from './networks.ts';

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

  test('join: its ranges overlap in the network that it has so far -> told how to join in its own', () => {
    expect(overlapAdvice(cluster('east'), 'aws')).toBe(
      'change one of them, or ask for a token with the network: portolan broker token east --network aws',
    );
    for (const claimed of [undefined, 'aws'])
      expect(overlapAdvice(cluster('east', 'aws'), claimed)).toBe('change one of them');
  });

  test('join: gateways -> addresses with ports alone', () => {
    expect(checkedGateways(['203.0.113.7:15443', '[2001:db9::7]:443'])).toBe('203.0.113.7:15443,[2001:db9::7]:443');
    for (const wrong of ['lb.example:443', '203.0.113.7', '203.0.113.7:0', '203.0.113.7:99999', ''])
      expect(() => checkedGateways([wrong]), wrong).toThrow('--gateway');
  });
});

test('join: again with other gateways -> those are kept, and the roots of the cluster beside them stay', async () => {
  const home = await memoryHome();
  const place = { name: gatewayName, namespace: 'portolan-system' };
  const read = async () => (await home.client.get<ConfigMap>(configMapType, place)).data;
  await keepGateways(home.client, '203.0.113.7:15443');
  expect(await read()).toEqual({ gateways: '203.0.113.7:15443' });
  const data = { gateways: '203.0.113.7:15443', trustRoots: 'PEM' };
  await home.client.patch(configMapType, place, { kind: 'merge', body: { data } });
  await keepGateways(home.client, '203.0.113.8:15443');
  expect(await read()).toEqual({ gateways: '203.0.113.8:15443', trustRoots: 'PEM' });
  await home.stop();
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

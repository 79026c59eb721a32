import { describe, expect, test } from 'vitest';
import { parseRange } from '../../base/net/ip.ts';
import type { Cluster } from '../../clusterset/kinds/cluster.ts';
import type { ServiceShard, ServiceShardSpec } from '../../clusterset/kinds/service-shard.ts';
import type { Federation } from '../kinds/federation.ts';
import { federatedShard } from './record.ts';

function ownAddresses(spec: Partial<ServiceShardSpec>): readonly string[] {
  const shard = { metadata: { name: 'checkout.shop' }, spec: { type: 'ClusterSetIP', readyEndpoints: 1, ...spec } };
  const member = {
    shard: shard as ServiceShard,
    cluster: {
      metadata: { name: 'east' },
      spec: { namespace: 'prod-m-east', allowedRanges: ['10.1.0.0/16'] },
    } as Cluster,
    virtualRanges: [parseRange('243.0.0.0/12')!],
  };
  return federatedShard(member, { metadata: { name: 'world' }, spec: {} } as Federation)!.record.clusterIPs;
}

describe('record of a shard', () => {
  test('local addresses of a member -> for clients of its own cluster: endpoints in its ranges, and the clusterset IP it holds', () => {
    expect(ownAddresses({ clusterIPs: [], localIPs: ['10.1.0.5'] })).toEqual(['10.1.0.5']);
    expect(ownAddresses({ clusterIPs: [], localIPs: ['243.0.0.9'], clusterSetIPs: ['243.0.0.9'] })).toEqual([
      '243.0.0.9',
    ]);
  });

  test('local addresses that are not the member to give -> left out: others ranges, virtual ones it does not hold, no addresses', () => {
    const clusterSetIPs = ['243.0.0.9', '127.0.0.1', '192.0.2.1'];
    const localIPs = ['243.0.0.10', '127.0.0.1', '192.0.2.1', '10.2.0.1', 'x'];
    expect(ownAddresses({ clusterIPs: [], localIPs, clusterSetIPs })).toEqual([]);
  });

  test('an older agent without them -> its cluster IPs as before', () => {
    expect(ownAddresses({ clusterIPs: ['10.1.9.9'] })).toEqual(['10.1.9.9']);
  });
});

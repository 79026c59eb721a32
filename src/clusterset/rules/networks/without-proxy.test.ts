import { expect, test } from 'vitest';
import type { ClusterReach } from './networks.ts';
import { reachedWithoutProxy } from './without-proxy.ts';

const reach: ClusterReach = { network: 'aws', gateways: [], trustRoots: [] };
const networks = { own: 'default', clusters: new Map([['south', reach]]) };
const tcp = [{ port: 80, protocol: 'TCP' }];

test('without a proxy: some clusters in another network, or all -> who is left out, and what is left', () => {
  const said = (clusters: string[], more: object = {}) =>
    reachedWithoutProxy({ networks, clusters, ports: tcp, ...more });
  expect(said(['east', 'south'])).toEqual({
    ...{ type: 'ReachedWithoutProxy', status: 'False', reason: 'SomeClusters' },
    message:
      'gRPC clients without a proxy get the endpoints of east alone: south is in another network, and they do not go through gateways',
  });
  expect(said(['south'])).toMatchObject({ reason: 'NoCluster', message: expect.stringContaining('get no endpoints') });
});

test('without a proxy: all in this network, left out by a policy, or no TCP -> nothing to say', () => {
  const excluded = { clusters: new Set(['south']), by: 'ServiceImportPolicy near' };
  expect(reachedWithoutProxy({ networks, clusters: ['east'], ports: tcp })).toBeUndefined();
  expect(reachedWithoutProxy({ networks, clusters: ['east', 'south'], ports: tcp, excluded })).toBeUndefined();
  const udp = [{ port: 53, protocol: 'UDP' }];
  expect(reachedWithoutProxy({ networks, clusters: ['south'], ports: udp })).toBeUndefined();
});

test('without a proxy: hundreds of clusters -> a bounded message', () => {
  const clusters = Array.from({ length: 500 }, (_, index) => `c${index}`);
  const all = { own: 'default', clusters: new Map(clusters.map((id) => [id, reach])) };
  expect(reachedWithoutProxy({ networks: all, clusters, ports: tcp })!.message.length).toBeLessThan(2_000);
});

// Clusters of a set in networks that do not meet, seen from the home of a member.

import { expect, test } from 'vitest';
import { type Cluster, clusterType } from '../../src/clusterset/kinds/cluster.ts';
import { readNetworks } from '../../src/clusterset/rules/networks/networks.ts';
import { type ConfigMap, configMapType } from '../../src/kube/objects/config-map.ts';
import { SimClusterSet, setName } from '../clusterset.ts';

const root = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----';
const ref = { namespace: 'portolan-system', name: 'portolan-clusterset-dns' };

async function giveGateway(set: SimClusterSet, id: string, gateways: string): Promise<void> {
  await set.home(id).admin.create(configMapType, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'portolan-gateway', namespace: 'portolan-system' },
    data: { gateways, trustRoots: root },
  } as ConfigMap);
}

test('networks: a member in another network names its gateway -> at every home of the other network, and gone when withdrawn', async () => {
  const set = await new SimClusterSet({
    clusters: ['east', 'west', 'north'],
    member: (id) => (id === 'east' ? { network: 'aws', gatewayRanges: ['203.0.113.0/24'] } : {}),
  }).start();
  await set.time.advance(3000);
  const networks = async (id: string) => readNetworks(await set.home(id).admin.get<ConfigMap>(configMapType, ref));
  expect((await networks('west')).clusters.get('east')).toMatchObject({
    network: 'aws',
    problem: 'no gateway published',
  });
  await giveGateway(set, 'east', '203.0.113.7:15443');
  await set.time.advance(3000);
  const reach = {
    network: 'aws',
    gateways: [{ address: '203.0.113.7', port: 15443 }],
    trustRoots: [root],
    listenerPort: expect.any(Number),
  };
  expect((await networks('west')).clusters).toEqual(new Map([['east', reach]]));
  expect(await networks('north')).toEqual(await networks('west'));
  const seen = await networks('east');
  expect(seen.own).toBe('aws');
  expect([...seen.clusters.keys()]).toEqual(['north', 'west']);
  await set.home('east').admin.delete(configMapType, { namespace: 'portolan-system', name: 'portolan-gateway' });
  await set.time.advance(3000);
  expect((await networks('west')).clusters.get('east')?.gateways).toEqual([]);
});

test('networks: somebody changes the report at the broker -> the member reports again; nothing changed -> no write', async () => {
  const set = await new SimClusterSet({ clusters: ['east'] }).start();
  await giveGateway(set, 'east', '203.0.113.7:15443');
  await set.time.advance(3000);
  const { admin } = set.broker;
  const east = () => admin.get<Cluster>(clusterType, { namespace: setName, name: 'east' });
  const before = await east();
  expect(before.status?.gateways).toEqual([{ address: '203.0.113.7', port: 15443 }]);
  await set.time.advance(120_000);
  expect((await east()).metadata.resourceVersion).toBe(before.metadata.resourceVersion);
  await admin.patch(
    clusterType,
    { namespace: setName, name: 'east' },
    { kind: 'merge', body: { status: { gateways: null } } },
    { subresource: 'status' },
  );
  await set.time.advance(3000);
  expect((await east()).status?.gateways).toEqual([{ address: '203.0.113.7', port: 15443 }]);
});

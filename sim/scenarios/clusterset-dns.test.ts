import { expect, test } from 'vitest';
import { type Cluster, clusterType } from '../../src/clusterset/kinds/cluster.ts';
import { type ClusterSet, type ClusterSetDns, clusterSetType } from '../../src/clusterset/kinds/cluster-set.ts';
import { readAddressPlan } from '../../src/clusterset/rules/address-plan.ts';
import { readDnsOptions } from '../../src/clusterset/rules/clusterset-dns.ts';
import { readLocality } from '../../src/clusterset/rules/locality.ts';
import { type ConfigMap, configMapType } from '../../src/kube/objects/config-map.ts';
import { SimClusterSet, setName } from '../clusterset.ts';

const ref = { namespace: 'portolan-system', name: 'portolan-clusterset-dns' };

test('clusterset dns: options of the ClusterSet -> at every home, and again when they change; nothing changed -> no write', async () => {
  const set = await new SimClusterSet({ clusters: ['east', 'west'] }).start();
  const homes = [set.home('east').admin, set.home('west').admin];
  const options = async () =>
    Promise.all(homes.map(async (home) => readDnsOptions(await home.get<ConfigMap>(configMapType, ref))));
  const change = async (dns: ClusterSetDns) => {
    const { admin } = set.broker;
    const present = await admin.get<ClusterSet>(clusterSetType, { namespace: setName, name: setName });
    await admin.update(clusterSetType, { ...present, spec: { ...present.spec, dns } } as ClusterSet);
    await set.time.advance(3000);
  };
  await set.time.advance(3000);
  const defaults = { zone: 'clusterset.local', ttlSeconds: 5, clusterNames: 'Hidden' };
  expect(await options()).toEqual([defaults, defaults]);
  const wanted = { zone: 'mesh.example', ttlSeconds: 20, clusterNames: 'Served' as const };
  await change(wanted);
  expect(await options()).toEqual([wanted, wanted]);
  const revision = async () => (await homes[0]!.get<ConfigMap>(configMapType, ref)).metadata.resourceVersion;
  const before = await revision();
  await change({ ...wanted, ttlSeconds: 20 });
  await set.time.advance(120_000);
  expect(await revision()).toBe(before);
});

test('clusterset dns: address ranges of the ClusterSet -> at every home, for peering', async () => {
  const addressRanges = { peers: ['10.60.0.0/16'] };
  const set = await new SimClusterSet({ clusters: ['east'], set: { addressRanges } }).start();
  await set.time.advance(3000);
  const addressPlan = readAddressPlan(await set.home('east').admin.get<ConfigMap>(configMapType, ref));
  expect(addressPlan?.ranges).toMatchObject({
    clusterSet: ['243.0.0.0/12', 'fd70:6f72:74f3::/64'],
    peers: ['10.60.0.0/16'],
  });
});

test('clusterset dns: places of the members and how near traffic stays -> at every home, and again when a member moves', async () => {
  const places: Record<string, { zone?: string; region?: string }> = { east: { zone: 'eu-1', region: 'eu' } };
  const set = await new SimClusterSet({
    clusters: ['east', 'west'],
    set: { locality: 'NearestFirst' },
    member: (id) => places[id] ?? {},
  }).start();
  const locality = async (id: string) => readLocality(await set.home(id).admin.get<ConfigMap>(configMapType, ref));
  await set.time.advance(3000);
  const before = { preference: 'NearestFirst', clusters: new Map([['east', places['east']]]) };
  expect([await locality('east'), await locality('west')]).toEqual([before, before]);
  const { admin } = set.broker;
  const west = await admin.get<Cluster>(clusterType, { namespace: setName, name: 'west' });
  await admin.update(clusterType, { ...west, spec: { ...west.spec, region: 'us' } } as Cluster);
  await set.time.advance(3000);
  expect((await locality('east')).clusters.get('west')).toEqual({ region: 'us' });
});

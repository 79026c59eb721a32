import { expect, test } from 'vitest';
import { type ClusterSet, type ClusterSetDns, clusterSetType } from '../../src/clusterset/kinds/cluster-set.ts';
import { readDnsOptions } from '../../src/clusterset/rules/clusterset-dns.ts';
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

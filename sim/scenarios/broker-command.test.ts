import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Host } from '../../src/base/host.ts';
import { brokerInit } from '../../src/cli/clusterset/broker-init.ts';
import { brokerRemove } from '../../src/cli/clusterset/broker-remove.ts';
import { type Cluster, clusterType } from '../../src/clusterset/kinds/cluster.ts';
import { clusterProfileType } from '../../src/clusterset/kinds/cluster-profile.ts';
import { type ClusterSet, type ClusterSetSpec, clusterSetType } from '../../src/clusterset/kinds/cluster-set.ts';
import { clusterSetLabel } from '../../src/clusterset/rules/broker-layout.ts';
import type { Client, ObjectRef } from '../../src/kube/client/client.ts';
import { ApiError } from '../../src/kube/objects/api-error.ts';
import { namespaceType } from '../../src/kube/objects/namespace.ts';
import type { KubernetesObject, ResourceType } from '../../src/kube/objects/object.ts';
import { roleType } from '../../src/kube/objects/rbac.ts';
import { type ResourceQuota, resourceQuotaType } from '../../src/kube/objects/resource-quota.ts';
import { createNamespace, memberNamespace, SimClusterSet, setName } from '../clusterset.ts';
import { SimHome } from '../home.ts';
import { find } from '../look.ts';
import { Simulation } from '../virtual-world.ts';

const definitionType: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  isNamespaced: false,
};

const host = { readText: async (path: string) => readFileSync(path, 'utf8') } as unknown as Host;

/** Simulated homes have no roles: these are kept beside them. */
function withRoles(client: Client, roles: Map<string, KubernetesObject>): Client {
  const isRole = (type: ResourceType) => type.group === roleType.group;
  const key = (type: ResourceType, { namespace, name }: ObjectRef) => `${type.plural}/${namespace}/${name}`;
  const get = async (type: ResourceType, ref: ObjectRef) => {
    if (!isRole(type)) return client.get(type, ref);
    const found = roles.get(key(type, ref));
    if (found === undefined) throw new ApiError('no such role', { code: 404, reason: 'NotFound' });
    return found;
  };
  const create = async (type: ResourceType, object: KubernetesObject) => {
    if (!isRole(type)) return client.create(type, object);
    roles.set(key(type, object.metadata), object);
    return object;
  };
  const update = async (type: ResourceType, object: KubernetesObject) => {
    if (!isRole(type)) return client.update(type, object);
    roles.set(key(type, object.metadata), object);
    return object;
  };
  const remove = async (type: ResourceType, ref: ObjectRef) => {
    if (!isRole(type)) return client.delete(type, ref);
    if (!roles.delete(key(type, ref))) throw new ApiError('no such role', { code: 404, reason: 'NotFound' });
  };
  return { ...client, get, create, update, delete: remove } as Client;
}

async function startBroker() {
  const simulation = new Simulation({ seed: 1 });
  const options = { simulation, name: 'broker', serviceRanges: ['10.96.0.0/16'], mayDo: () => true };
  const home = new SimHome({ ...options, hasDefinitions: true });
  await simulation.time.settle(home.start());
  const deps = { host, world: simulation.world('cli') };
  const roles = new Map<string, KubernetesObject>();
  const client = withRoles(home.admin, roles);
  const init = (clusterset: string, spec: ClusterSetSpec = {}) =>
    simulation.time.settle(brokerInit({ client, deps, clusterset, spec }));
  return { home, init, roles };
}

describe('broker init', () => {
  test('broker init: a second clusterset -> refused by the name of the first, nothing is written for it', async () => {
    const { home, init } = await startBroker();
    expect(await init('prod')).toContain('created ClusterRole portolan-readers.prod');
    await expect(init('test')).rejects.toThrow(
      'clusterset test: this broker serves clusterset prod, and a broker serves one; run another broker for it, for example with portolan api',
    );
    const { items } = await home.admin.list(namespaceType);
    expect(items.map(({ metadata }) => metadata.name).filter((name) => name.startsWith('test'))).toEqual([]);
    expect(await init('prod', { ports: 'intersection' })).toContain('updated ClusterSet prod/prod');
  });

  test('broker init: a set that the release before gave another layout -> the one that all agents read', async () => {
    const { home, init } = await startBroker();
    await init('prod');
    const ref = { namespace: 'prod', name: 'prod' };
    const layoutOf = async () => (await home.admin.get<ClusterSet>(clusterSetType, ref)).spec?.layout;
    await home.admin.patch(clusterSetType, ref, { kind: 'merge', body: { spec: { layout: 'PerMember' } } });
    await init('prod');
    expect(await layoutOf()).toBe('AllNamespaces');
  });

  test('broker init: a namespace of another set, of a member or of somebody else -> refused, nothing is written there', async () => {
    const { home, init } = await startBroker();
    const take = async (set: string, name: string, metadata: object) => {
      await home.admin.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, ...metadata } });
      const before = await home.admin.get(namespaceType, { name });
      await expect(init(set)).rejects.toThrow(`clusterset ${set}: namespace ${name} is there already and belongs to`);
      expect(await home.admin.get(namespaceType, { name })).toEqual(before);
    };
    await take('one', 'one', { labels: { [clusterSetLabel]: 'prod' } });
    await take('two', 'two-members', { labels: { [clusterSetLabel]: 'prod' } });
    const annotations = { 'portolan.dev/cluster': 'east' };
    await take('three', 'three', { labels: { [clusterSetLabel]: 'three' }, annotations });
    await take('four', 'four', {});
  });

  test('broker init: a namespace that was given to the set, and the set itself again -> taken', async () => {
    const { home, init } = await startBroker();
    const metadata = { name: 'test', labels: { [clusterSetLabel]: 'test' } };
    await home.admin.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata });
    await init('test');
    expect((await init('test'))[0]).toBe('clusterset test is laid out already');
  });

  test('broker init: our definition of an older release is there -> upgraded once; fields that the home added stay', async () => {
    const { home, init } = await startBroker();
    await init('prod');
    const ref = { name: 'clusters.portolan.dev' };
    const definition = await home.admin.get(definitionType, ref);
    const spec = structuredClone(definition['spec']) as {
      versions: { additionalPrinterColumns?: unknown[] }[];
      preserveUnknownFields?: boolean;
    };
    spec.versions[0]!.additionalPrinterColumns = [];
    spec.preserveUnknownFields = false;
    await home.admin.update(definitionType, { ...definition, spec });
    expect((await init('prod'))[0]).toBe('made definition clusters.portolan.dev');
    expect((await home.admin.get(definitionType, ref))['spec']).toMatchObject({
      preserveUnknownFields: false,
      versions: (definition['spec'] as typeof spec).versions,
    });
    expect((await init('prod'))[0]).toBe('clusterset prod is laid out already');
  });

  test('broker init: the set has another quota for members than before -> each member has it, and one that leaves does no harm', async () => {
    const { home, init } = await startBroker();
    await init('prod', { memberQuota: { services: 10 } });
    for (const id of ['east', 'west']) {
      const namespace = `prod-m-${id}`;
      if (id === 'east') await createNamespace(home, namespace);
      const spec = { namespace };
      const cluster = {
        apiVersion: 'portolan.dev/v1alpha1',
        kind: 'Cluster',
        metadata: { name: id, namespace: 'prod' },
        spec,
      };
      await home.admin.create(clusterType, cluster);
    }
    const hard = async () =>
      (await find<ResourceQuota>(home.admin, resourceQuotaType, 'prod-m-east/portolan-member'))?.spec?.hard;
    await init('prod');
    expect(await hard()).toMatchObject({ 'count/serviceshards.portolan.dev': '10' });
    expect(await init('prod', { memberQuota: { services: 20 } })).toContain('updated quota of member east');
    expect(await hard()).toMatchObject({ 'count/serviceshards.portolan.dev': '20' });
  });

  test('broker init: ranges and lease times that make no sense -> refused with what to do; a short lease -> a note', async () => {
    const { init } = await startBroker();
    const ranges = (...clusterSet: string[]) => init('prod', { addressRanges: { clusterSet } });
    await expect(ranges('169.254.0.0/16')).rejects.toThrow('give another');
    await expect(ranges('243.0.0.0/16', '244.0.0.0/16')).rejects.toThrow('are both IPv4; give one of each family');
    await expect(ranges('10.100.0.0/16')).rejects.toThrow(
      'overlaps 10.96.0.0/12 (services of every home that was not told otherwise); give other ranges',
    );
    const lease = (renewSeconds: number, durationSeconds: number) =>
      init('prod', { lease: { renewSeconds, durationSeconds } });
    await expect(lease(30, 10)).rejects.toThrow('let it last 60 s or more');
    expect((await lease(2, 6)).join('\n')).toContain('note: a lease of 6 s is shorter than');
    expect((await init('prod', { lease: { renewSeconds: 10, durationSeconds: 30 } })).join('\n')).not.toContain(
      'note:',
    );
  });

  test('broker init --inventory-writer: the definition, rights of the named alone, the label; none -> ours go, others stay', async () => {
    const { home, init, roles } = await startBroker();
    await init('prod', { inventory: { writers: ['hub', 'east'] } });
    const binding = () => roles.get('rolebindings/prod/portolan-inventory') as { subjects?: object[] } | undefined;
    const account = (name: string) => ({ kind: 'ServiceAccount', name, namespace: 'prod-members' });
    expect(binding()?.subjects).toEqual([account('hub'), account('east')]);
    const set = await home.admin.get(namespaceType, { name: 'prod' });
    expect(set.metadata.labels?.['multicluster.x-k8s.io/clusterset']).toBe('prod');
    const profile = (name: string, manager: string) => ({
      apiVersion: 'multicluster.x-k8s.io/v1alpha1',
      kind: 'ClusterProfile',
      metadata: { name, namespace: 'prod' },
      spec: { clusterManager: { name: manager } },
    });
    await home.admin.create(clusterProfileType, profile('east', 'portolan-prod'));
    await home.admin.create(clusterProfileType, profile('far', 'other'));
    await init('prod', { ports: 'intersection' });
    expect(binding()?.subjects).toHaveLength(2);
    expect(await init('prod', { inventory: { writers: [] } })).toContain('removed ClusterProfile prod/east');
    expect(binding()?.subjects).toEqual([]);
    const { items } = await home.admin.list(clusterProfileType, { namespace: 'prod' });
    expect(items.map(({ metadata }) => metadata.name)).toEqual(['far']);
  });

  test('broker init --inventory-writer: a definition of another project is there -> left as it is; without the flag none is made', async () => {
    const { home, init } = await startBroker();
    const ref = { name: 'clusterprofiles.multicluster.x-k8s.io' };
    const { metadata: _metadata, ...ours } = await home.admin.get(definitionType, ref);
    await home.admin.delete(definitionType, ref);
    await init('prod');
    expect(await find(home.admin, definitionType, `/${ref.name}`)).toBeUndefined();
    const theirs = structuredClone(ours) as typeof ours & { spec: { versions: { schema: unknown }[] } };
    theirs.spec.versions[0]!.schema = {
      openAPIV3Schema: { type: 'object', description: 'of others', 'x-kubernetes-preserve-unknown-fields': true },
    };
    await home.admin.create(definitionType, { ...theirs, metadata: ref } as KubernetesObject);
    const before = await home.admin.get(definitionType, ref);
    await init('prod', { inventory: { writers: ['east'] } });
    expect((await home.admin.get(definitionType, ref))['spec']).toEqual(before['spec']);
  });
});

describe('broker remove', () => {
  // Its clock is an hour ahead or behind: by the times in its lease it would have died long ago, or live long after.
  for (const wallSkewMs of [-3_600_000, 3_600_000]) {
    const start = async () => {
      const clock = (name: string) => (name === 'agent-east' ? { wallSkewMs } : {});
      const set = await new SimClusterSet({ clusters: ['east', 'west'], clock }).start();
      await set.time.advance(20_000);
      for (const id of ['east', 'west']) {
        const { metadata, ...rest } = await set.broker.admin.get(namespaceType, { name: memberNamespace(id) });
        const labels = { ...metadata.labels, [clusterSetLabel]: setName };
        const annotations = { 'portolan.dev/cluster': id };
        await set.broker.admin.update(namespaceType, { ...rest, metadata: { ...metadata, labels, annotations } });
      }
      await createNamespace(set.broker, `${setName}-members`);
      const deps = { world: set.simulation.world('cli') };
      const request = { client: set.broker.admin, deps, clusterset: setName, id: 'east', isForced: false };
      return { set, remove: () => set.time.settle(brokerRemove(request)) };
    };

    test(`broker remove: a member that lives, its clock off by ${wallSkewMs / 1000} s -> refused`, async () => {
      const { set, remove } = await start();
      await expect(remove()).rejects.toThrow('cluster east has just renewed its lease: run portolan leave there');
      expect(await find<Cluster>(set.broker.admin, clusterType, `${setName}/east`)).toBeDefined();
    });

    test(`broker remove: a member that has just died, its clock off by ${wallSkewMs / 1000} s -> removed after one lease`, async () => {
      const { set, remove } = await start();
      set.killAgent('east');
      expect(await remove()).toEqual([`cluster east has been removed from clusterset ${setName}`]);
    });
  }
});

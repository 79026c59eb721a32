// ClusterProfiles at the broker of a simulated clusterset: who writes them, what they say, and what is left to others.

import { expect, test } from 'vitest';
import type { ClusterSpec } from '../../src/clusterset/kinds/cluster.ts';
import { type ClusterProfile, clusterProfileType } from '../../src/clusterset/kinds/cluster-profile.ts';
import { type ClusterProperty, clusterPropertyType } from '../../src/clusterset/kinds/cluster-property.ts';
import { type ClusterSet, clusterSetType } from '../../src/clusterset/kinds/cluster-set.ts';
import { conditionOf } from '../../src/kube/objects/conditions.ts';
import type { ResourceType } from '../../src/kube/objects/object.ts';
import { SimClusterSet, type SimClusterSetOptions, setName } from '../clusterset.ts';
import { find } from '../look.ts';

const definitionType: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  isNamespaced: false,
};

async function start(more: Partial<SimClusterSetOptions> & { readonly agents?: readonly string[] } = {}) {
  const { agents, ...options } = more;
  const set = new SimClusterSet({ clusters: ['east', 'west'], set: { inventory: { writers: ['east'] } }, ...options });
  await set.start(agents === undefined ? {} : { agents });
  await set.time.advance(5_000);
  const profile = (id: string) => find<ClusterProfile>(set.broker.admin, clusterProfileType, `${setName}/${id}`);
  const conditions = async (id: string) =>
    (await profile(id))?.status?.conditions?.map(({ type, status, reason }) => `${type}=${status}/${reason}`);
  const inventory = async () => {
    const found = await find<ClusterSet>(set.broker.admin, clusterSetType, `${setName}/${setName}`);
    const condition = conditionOf(found?.status?.conditions, 'Inventory');
    return condition && `${condition.status}/${condition.reason}: ${condition.message}`;
  };
  return { set, profile, conditions, inventory };
}

/** Another manager's, under the name of a member. */
const foreign = (name: string, manager = 'other-fleet') => ({
  apiVersion: 'multicluster.x-k8s.io/v1alpha1',
  kind: 'ClusterProfile',
  metadata: { name, namespace: setName, labels: { 'x-k8s.io/cluster-manager': manager } },
  spec: { displayName: 'theirs', clusterManager: { name: manager } },
});

const living = ['Joined=True/Joined', 'ControlPlaneHealthy=True/Answers'];

test('inventory: two members -> a profile of each, with name, manager, version, properties, access without secrets', async () => {
  const access = {
    name: 'kubeconfig',
    cluster: { server: 'https://east.example:6443', 'tls-server-name': 'east', 'proxy-url': 'socks5://hop:1080' },
  };
  const member = (id: string): Partial<ClusterSpec> =>
    id === 'east' ? { displayName: 'Frankfurt', region: 'eu', zone: 'eu-1', accessProviders: [access] } : {};
  const { set, profile, conditions, inventory } = await start({ member });
  const property = {
    apiVersion: 'about.k8s.io/v1beta1',
    kind: 'ClusterProperty',
    metadata: { name: 'tier.example.org' },
    spec: { value: 'gold' },
  };
  await set.home('east').admin.create<ClusterProperty>(clusterPropertyType, property);
  await set.time.advance(2_000);
  const east = await profile('east');
  expect(east?.spec).toEqual({ displayName: 'Frankfurt', clusterManager: { name: 'portolan-prod' } });
  expect(east?.metadata.labels?.['x-k8s.io/cluster-manager']).toBe('portolan-prod');
  expect(east?.metadata.ownerReferences?.map(({ kind, name }) => `${kind}/${name}`)).toEqual(['Cluster/east']);
  expect(east?.status).toMatchObject({
    version: { kubernetes: 'v1.33.0' },
    properties: [
      { name: 'portolan.dev/region', value: 'eu' },
      { name: 'portolan.dev/zone', value: 'eu-1' },
      { name: 'tier.example.org', value: 'gold' },
    ],
    accessProviders: [access],
  });
  expect(await conditions('east')).toEqual(living);
  expect((await profile('west'))?.spec?.displayName).toBe('west');
  expect(await conditions('west')).toEqual(living);
  expect(await inventory()).toBe('True/Written: each of the 2 members has its ClusterProfile');
});

test('inventory: a set that names no writers -> no profile, and nobody reads them', async () => {
  const seen: string[] = [];
  const { profile, inventory } = await start({
    set: {},
    onRequest: (_home, _user, { resource }) => resource === 'clusterprofiles' && seen.push(resource),
  });
  expect(await inventory()).toBeUndefined();
  expect(seen).toEqual([]);
  expect(await profile('east')).toBeUndefined();
});

test('inventory: a member that never came, one that dies, one whose home is away -> shown as what the broker knows', async () => {
  const { set, conditions } = await start({
    clusters: ['east', 'north', 'south', 'west'],
    agents: ['east', 'south', 'west'],
  });
  await set.time.advance(70_000);
  expect(await conditions('north')).toEqual(['Joined=False/NotJoined', 'ControlPlaneHealthy=Unknown/NotJoined']);
  set.killAgent('west');
  set.home('south').kill();
  await set.time.advance(60_000);
  expect(await conditions('west')).toEqual(['Joined=True/Joined', 'ControlPlaneHealthy=Unknown/LeaseExpired']);
  expect(await conditions('south')).toEqual(['Joined=True/Joined', 'ControlPlaneHealthy=False/NoAnswer']);
  set.startAgent('west');
  await set.home('south').start();
  set.startAgent('north');
  await set.time.advance(90_000);
  for (const id of ['east', 'north', 'south', 'west']) expect(await conditions(id)).toEqual(living);
});

test('inventory: the writer dies -> the next of the named goes on; another member never writes', async () => {
  const writers = new Set<string>();
  const { set, conditions } = await start({
    clusters: ['east', 'south', 'west'],
    set: { inventory: { writers: ['west', 'south'] } },
    onRequest: (_home, user, { resource, verb }) =>
      resource === 'clusterprofiles' && ['create', 'update'].includes(verb) && writers.add(user),
  });
  expect([...writers]).toEqual(['agent-west']);
  set.killAgent('west');
  await set.time.advance(60_000);
  expect(await conditions('west')).toEqual(['Joined=True/Joined', 'ControlPlaneHealthy=Unknown/LeaseExpired']);
  expect([...writers].sort()).toEqual(['agent-south', 'agent-west']);
});

test('inventory: a profile of another manager has the name of a member -> left as it is, the set says so; written when it goes', async () => {
  const { set, profile, inventory } = await start({ agents: [] });
  await set.broker.admin.create(clusterProfileType, foreign('west'));
  await set.broker.admin.create(clusterProfileType, foreign('elsewhere'));
  const before = [await profile('west'), await profile('elsewhere')];
  for (const id of ['east', 'west']) set.startAgent(id);
  await set.time.advance(120_000);
  expect([await profile('west'), await profile('elsewhere')]).toEqual(before);
  expect(await inventory()).toBe(
    'False/NameTaken: cluster west: its ClusterProfile belongs to cluster manager other-fleet',
  );
  await set.broker.admin.delete(clusterProfileType, { namespace: setName, name: 'west' });
  await set.time.advance(5_000);
  expect((await profile('west'))?.spec?.clusterManager?.name).toBe('portolan-prod');
  expect(await inventory()).toBe('True/Written: each of the 2 members has its ClusterProfile');
});

test('inventory: a member leaves, also while its writer is away -> its profile goes, that of another manager stays', async () => {
  const { set, profile } = await start();
  await set.broker.admin.create(clusterProfileType, foreign('elsewhere'));
  await set.leave('west');
  await set.time.advance(5_000);
  expect(await profile('west')).toBeUndefined();
  expect(await profile('elsewhere')).toBeDefined();
  await set.join('west');
  await set.time.advance(5_000);
  expect(await profile('west')).toBeDefined();
  set.killAgent('east');
  await set.leave('west');
  set.startAgent('east');
  await set.time.advance(60_000);
  expect(await profile('west')).toBeUndefined();
});

test('inventory: somebody edits a profile again and again -> put back, ever more slowly', async () => {
  let writes = 0;
  const { set, profile } = await start({
    onRequest: (_home, user, { resource, verb }) => {
      if (resource === 'clusterprofiles' && verb === 'update' && user === 'agent-east') writes += 1;
    },
  });
  const ref = { namespace: setName, name: 'west' };
  const body = { spec: { displayName: 'mine' } };
  const before = writes;
  for (let round = 0; round < 60; round += 1) {
    await set.broker.admin.patch(clusterProfileType, ref, { kind: 'merge', body });
    await set.time.advance(1_000);
  }
  expect(writes - before).toBeLessThan(30);
  await set.time.advance(60_000);
  expect((await profile('west'))?.spec?.displayName).toBe('west');
});

test('inventory: the definition is missing, comes, and is one with a narrower schema -> the set says what is wrong', async () => {
  const { set, profile, inventory } = await start({ hasDefinitions: true, agents: [] });
  const { admin } = set.broker;
  const name = 'clusterprofiles.multicluster.x-k8s.io';
  const ours = await admin.get(definitionType, { name });
  await admin.delete(definitionType, { name });
  await set.time.advance(2_000);
  for (const id of ['east', 'west']) set.startAgent(id);
  await set.time.advance(30_000);
  expect(await inventory()).toMatch(/^False\/Unreadable: ClusterProfiles cannot be read at the broker: /);
  const narrow = structuredClone(ours) as unknown as { metadata: object; spec: { versions: { schema: unknown }[] } };
  const spec = { type: 'object', properties: { displayName: { type: 'string', maxLength: 3 }, clusterManager: {} } };
  spec.properties.clusterManager = { type: 'object', properties: { name: { type: 'string' } } };
  narrow.spec.versions[0]!.schema = { openAPIV3Schema: { type: 'object', properties: { spec } } };
  await admin.create(definitionType, { ...(narrow as unknown as typeof ours), metadata: { name } });
  await set.time.advance(120_000);
  expect(await inventory()).toMatch(/^False\/Refused: cluster east: .*displayName/);
  const present = await admin.get(definitionType, { name });
  await admin.update(definitionType, { ...present, spec: ours['spec'] });
  await set.time.advance(180_000);
  expect(await inventory()).toBe('True/Written: each of the 2 members has its ClusterProfile');
  expect(await profile('east')).toBeDefined();
});

// The rights of a member at the broker, tried with its own token while the agents of all members run.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, clusterType } from '../src/clusterset/kinds/cluster.ts';
import { type ClusterProfile, clusterProfileType } from '../src/clusterset/kinds/cluster-profile.ts';
import { type ClusterSet, clusterSetType } from '../src/clusterset/kinds/cluster-set.ts';
import { endpointShardType } from '../src/clusterset/kinds/endpoint-shard.ts';
import { heartbeatType } from '../src/clusterset/kinds/heartbeat.ts';
import { livenessReportType } from '../src/clusterset/kinds/liveness-report.ts';
import { type ServiceImport, serviceImportType } from '../src/clusterset/kinds/service-import.ts';
import { serviceShardType } from '../src/clusterset/kinds/service-shard.ts';
import { memberLeaseName, memberNamespace } from '../src/clusterset/rules/broker-layout.ts';
import { getOrUndefined } from '../src/kube/client/absent.ts';
import { isForbidden } from '../src/kube/objects/api-error.ts';
import { configMapType } from '../src/kube/objects/config-map.ts';
import { type EndpointSlice, endpointSliceType } from '../src/kube/objects/endpoint-slice.ts';
import { leaseType } from '../src/kube/objects/lease.ts';
import { namespaceType } from '../src/kube/objects/namespace.ts';
import type { KubernetesObject, ResourceType } from '../src/kube/objects/object.ts';
import { roleType, serviceAccountType } from '../src/kube/objects/rbac.ts';
import { secretType } from '../src/kube/objects/secret.ts';
import { everything, type TestHome, until } from './support/clusterset.ts';
import { MemberSet, memberAt, record } from './support/member-set.ts';

const members = new MemberSet();
let broker: TestHome;
let east: TestHome;
let west: TestHome;
let north: TestHome;

beforeAll(async () => {
  ({ broker, east, west, north } = await members.startMembers());
  await members.exportCheckout();
});
afterAll(() => members.stop());

describe('rights', () => {
  const ofEast = { namespace: 'prod-m-east' };

  async function refused(work: Promise<unknown>): Promise<void> {
    const error = await work.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(isForbidden(error), `expected a refusal, got ${error}`).toBe(true);
  }

  test('rights: a member reads all namespaces -> the records of members, and nothing else of the broker', async () => {
    const member = await memberAt(west);
    for (const type of [serviceShardType, endpointShardType, heartbeatType, livenessReportType])
      await member.list(type);
    for (const type of [endpointSliceType, leaseType, configMapType, secretType, clusterType])
      await refused(member.list(type));
  });

  test("rights: a member writes another's shard, slices, lease -> refused, however it tries [003-11]", async () => {
    const member = await memberAt(west);
    const things: [ResourceType, string][] = [
      [serviceShardType, record],
      [heartbeatType, memberLeaseName],
    ];
    const slices = await member.list<EndpointSlice>(endpointShardType, ofEast);
    things.push([endpointShardType, slices.items[0]!.metadata.name]);
    for (const [kind, name] of things) {
      const present = await member.get<KubernetesObject>(kind, { ...ofEast, name });
      await refused(member.update(kind, present));
      await refused(
        member.patch(kind, { ...ofEast, name }, { kind: 'merge', body: { metadata: { labels: { a: 'b' } } } }),
      );
      await refused(member.delete(kind, { ...ofEast, name }));
      await refused(member.deleteCollection(kind, ofEast));
      const metadata = { ...ofEast, name: `new.${name}`.slice(0, 60) };
      await refused(member.create(kind, { ...present, metadata }));
    }
    member.close();
  });

  test('rights: a member writes Cluster objects, its own too, or the ClusterSet -> refused [003-11]', async () => {
    const member = await memberAt(west);
    for (const name of ['east', 'west.eu']) {
      const present = await member.get<Cluster>(clusterType, { namespace: 'prod', name });
      await refused(member.update(clusterType, present));
      await refused(member.updateStatus(clusterType, present));
      await refused(member.delete(clusterType, { namespace: 'prod', name }));
    }
    const metadata = { namespace: 'prod', name: 'evil' };
    await refused(
      member.create(clusterType, {
        apiVersion: 'portolan.dev/v1alpha1',
        kind: 'Cluster',
        metadata,
        spec: { namespace: 'prod-m-east' },
      } as Cluster),
    );
    const present = await member.get<ClusterSet>(clusterSetType, { namespace: 'prod', name: 'prod' });
    await refused(member.update(clusterSetType, present));
    member.close();
  });

  test("rights: another's namespace, account, token, leader lease, Secrets, Roles, or anything elsewhere -> refused", async () => {
    const member = await memberAt(west);
    const accounts = { namespace: 'prod-members' };
    await refused(member.delete(namespaceType, { name: 'prod-m-east' }));
    await refused(member.delete(namespaceType, { name: 'prod' }));
    await refused(member.list(secretType, accounts));
    await refused(member.get(secretType, { ...accounts, name: 'portolan-join.east' }));
    await refused(member.delete(serviceAccountType, { ...accounts, name: 'west.eu' }));
    const request = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: { name: 'east' },
      spec: {},
    };
    await refused(
      member.createSubresource(serviceAccountType, { ...accounts, name: 'east', subresource: 'token' }, request),
    );
    await refused(member.get(leaseType, { ...accounts, name: 'east' }));
    const ownRole = { namespace: memberNamespace('prod', 'west.eu'), name: 'portolan-member' };
    await refused(member.patch(roleType, ownRole, { kind: 'merge', body: { rules: [] } }));
    await refused(member.list(namespaceType));
    await refused(member.list(endpointSliceType));
    member.close();
  });

  test('rights: the namespace of older agents, if the set names one -> members keep imports and slices there, nothing else [002-37]', async () => {
    await members.atBroker('init --legacy-namespace older');
    const member = await memberAt(west);
    const metadata = { name: 'checkout-shop-west', namespace: 'older' };
    const spec = { type: 'ClusterSetIP' as const, ports: [] };
    await member.create(serviceImportType, {
      apiVersion: 'multicluster.x-k8s.io/v1beta1',
      kind: 'ServiceImport',
      metadata,
      spec,
    });
    await member.delete(serviceImportType, metadata);
    expect((await member.list(endpointSliceType, { namespace: 'older' })).items).toEqual([]);
    await refused(member.list(secretType, { namespace: 'older' }));
    await refused(member.delete(namespaceType, { name: 'older' }));
    member.close();
    const merge = { kind: 'merge', body: { spec: { legacyNamespace: null } } } as const;
    await broker.client.patch(clusterSetType, { namespace: 'prod', name: 'prod' }, merge);
  });

  test('rights: a set names east for its inventory -> profiles of all members; another member writes none, and points none elsewhere', async () => {
    await members.atBroker('init --inventory-writer east');
    const list = () => broker.client.list<ClusterProfile>(clusterProfileType, { namespace: 'prod' });
    await until('each member has its profile', async () => {
      const { items } = await list();
      const healthy = items.filter(({ status }) =>
        status?.conditions?.some((one) => one.type === 'ControlPlaneHealthy' && one.status === 'True'),
      );
      return healthy.length === 3 && healthy.every(({ status }) => status?.version?.kubernetes?.startsWith('v1.'));
    });
    const member = await memberAt(west);
    const [first] = (await list()).items;
    await refused(member.list(clusterProfileType, { namespace: 'prod' }));
    await refused(member.update(clusterProfileType, first!));
    await refused(member.updateStatus(clusterProfileType, first!));
    await refused(member.create(clusterProfileType, { ...first!, metadata: { name: 'evil', namespace: 'prod' } }));
    member.close();
    await members.atBroker('init --inventory-writer none');
    await until('all profiles are gone', async () => (await list()).items.length === 0);
    const writer = await memberAt(east);
    await refused(writer.list(clusterProfileType, { namespace: 'prod' }));
    writer.close();
  });

  test('view: a member vandalises it -> nothing changes anywhere, and the view is put right', async () => {
    const member = await memberAt(west);
    const ref = { namespace: 'prod', name: record };
    await until('the view is there', async () => (await getOrUndefined(member, serviceImportType, ref)) !== undefined);
    await until('the view names both', async () => {
      const { status } = await member.get<ServiceImport>(serviceImportType, ref);
      return status?.clusters?.length === 2;
    });
    const homesBefore = await Promise.all([east, west, north].map(({ client }) => everything(client)));
    const good = await member.get<ServiceImport>(serviceImportType, ref);
    const isRight = async () => {
      const view = await getOrUndefined<ServiceImport>(member, serviceImportType, ref);
      return (
        JSON.stringify([view?.spec, view?.status?.clusters]) === JSON.stringify([good.spec, good.status?.clusters])
      );
    };
    const body = { spec: { type: 'Headless', ports: [{ port: 1, protocol: 'TCP' }] } };
    const view = await member.get<ServiceImport>(serviceImportType, ref);
    await member.update(serviceImportType, { ...view, spec: { ...view.spec, ...body.spec } } as ServiceImport);
    await until('an edited view is put right', isRight);
    await member.delete(serviceImportType, ref);
    await until('a deleted view is made again', isRight);
    const bogus = { ...good, metadata: { namespace: 'prod', name: 'bogus.shop', labels: good.metadata.labels } };
    await member.create(serviceImportType, bogus);
    await until(
      'a view of nothing goes',
      async () => (await getOrUndefined(member, serviceImportType, bogus.metadata)) === undefined,
    );
    const homesAfter = await Promise.all([east, west, north].map(({ client }) => everything(client)));
    expect(homesAfter).toEqual(homesBefore);
    member.close();
  });
});

// A clusterset from the outside: a broker and three homes with real rights, agents as processes of their own, and what a
// person types. The tests follow each other, as a person's day does.

import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { importLine, sliceLines } from '../sim/look.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { brokerClient } from '../src/clusterset/explain/consult.ts';
import { type Cluster, clusterType } from '../src/clusterset/kinds/cluster.ts';
import {
  type ClusterProperty,
  clusterIdProperty,
  clusterPropertyType,
} from '../src/clusterset/kinds/cluster-property.ts';
import { type ClusterSet, clusterSetType } from '../src/clusterset/kinds/cluster-set.ts';
import { endpointShardType } from '../src/clusterset/kinds/endpoint-shard.ts';
import { heartbeatType } from '../src/clusterset/kinds/heartbeat.ts';
import { livenessReportType } from '../src/clusterset/kinds/liveness-report.ts';
import { type ServiceImport, serviceImportType } from '../src/clusterset/kinds/service-import.ts';
import { type ServiceShard, serviceShardType } from '../src/clusterset/kinds/service-shard.ts';
import { membershipSecretName, readMembership } from '../src/clusterset/membership/membership.ts';
import {
  memberLeaseName,
  memberNamespace,
  memberRecordName,
  memberRoleName,
} from '../src/clusterset/rules/broker-layout.ts';
import { getOrUndefined } from '../src/kube/client/absent.ts';
import type { Client } from '../src/kube/client/client.ts';
import { isForbidden } from '../src/kube/objects/api-error.ts';
import { type ConfigMap, configMapType } from '../src/kube/objects/config-map.ts';
import { type EndpointSlice, endpointSliceType } from '../src/kube/objects/endpoint-slice.ts';
import { type Lease, leaseType } from '../src/kube/objects/lease.ts';
import { namespaceType } from '../src/kube/objects/namespace.ts';
import { nodeType } from '../src/kube/objects/node.ts';
import type { KubernetesObject, ResourceType } from '../src/kube/objects/object.ts';
import { systemNamespace } from '../src/kube/objects/ours.ts';
import { roleType, serviceAccountType } from '../src/kube/objects/rbac.ts';
import { type Secret, secretType } from '../src/kube/objects/secret.ts';
import {
  type AgentProcess,
  everything,
  makeNamespace,
  TestClusterSet,
  type TestHome,
  type,
  until,
} from './support/clusterset.ts';

const set = new TestClusterSet();
const world = createRealWorld();
const agents = new Map<string, AgentProcess>();
const agentKubeconfigs = new Map<string, string>();
let broker: TestHome;
let east: TestHome;
let west: TestHome;
let north: TestHome;
const key = 'shop/checkout';
const record = 'checkout.shop';

beforeAll(async () => {
  broker = await set.startHome('broker');
  east = await set.startHome('east');
  west = await set.startHome('west');
  north = await set.startHome('north');
});

afterAll(() => set.stop());

const atBroker = (words: string) => type(`broker ${words} --clusterset prod --kubeconfig ${broker.kubeconfig}`);
const token = async (id: string, more = '') => (await atBroker(`token ${id}${more}`)).lines[0]!;
const at = (home: TestHome, words: string) => type(`${words} --kubeconfig ${home.kubeconfig}`);

async function membershipOf(home: TestHome) {
  const ref = { namespace: systemNamespace, name: membershipSecretName };
  return readMembership(await home.client.get<Secret>(secretType, ref));
}

/** At the broker, with the rights of that member and nothing more. */
async function memberAt(home: TestHome): Promise<Client> {
  return brokerClient(world, await membershipOf(home));
}

async function startAgent(home: TestHome): Promise<void> {
  const kubeconfig = agentKubeconfigs.get(home.name) ?? (await set.agentKubeconfig(home));
  agentKubeconfigs.set(home.name, kubeconfig);
  agents.set(home.name, await set.startAgent(kubeconfig));
}

async function stateOf(agent: AgentProcess): Promise<string> {
  const response = await fetch(`${agent.admin}/status`);
  return ((await response.json()) as { kind: string }).kind;
}

describe('broker', () => {
  test('broker init: on an empty home -> namespaces, ClusterSet and rights; again -> nothing is written', async () => {
    const { lines } = await atBroker('init --ports union --lease-renew 1 --lease-duration 4');
    expect(lines).toContain('created ClusterSet prod/prod');
    expect(lines.at(-1)).toBe('next: portolan broker token CLUSTER_ID --clusterset prod');
    const made = await broker.client.get<ClusterSet>(clusterSetType, { namespace: 'prod', name: 'prod' });
    expect(made.spec?.lease).toMatchObject({ renewSeconds: 1, durationSeconds: 4, holdDownSeconds: 60 });
    const before = await everything(broker.client);
    expect((await atBroker('init')).lines[0]).toBe('clusterset prod is laid out already');
    expect(await everything(broker.client)).toEqual(before);
  });

  test('broker init: one option later -> that one changes, the others stay', async () => {
    await atBroker('init --lease-duration 5 --staleness NotReady');
    const { spec } = await broker.client.get<ClusterSet>(clusterSetType, { namespace: 'prod', name: 'prod' });
    expect(spec).toMatchObject({ staleness: 'NotReady', lease: { renewSeconds: 1, durationSeconds: 5 } });
  });

  test('broker init: a ClusterSet in a file, bad names and ranges -> taken, or refused with what is wrong', async () => {
    const file = set.write(
      'set.yaml',
      'apiVersion: portolan.dev/v1alpha1\nkind: ClusterSet\nmetadata: {name: test}\nspec: {endpoints: ClusterIP}\n',
    );
    const printed = (await at(broker, `broker init --file ${file} --print`)).lines.join('\n');
    expect(printed).toMatch(/name: test\n {2}namespace: test\n(?: {2}.*\n)*spec:\n {2}endpoints: ClusterIP/);
    await expect(at(broker, `broker init --file ${file}`)).rejects.toThrow(
      'members of clusterset prod read all namespaces',
    );
    await expect(at(broker, 'broker init --clusterset Prod')).rejects.toThrow('--clusterset "Prod": ');
    await expect(atBroker('init --clusterset-range 10.0.0/8')).rejects.toThrow(
      '--clusterset-range "10.0.0/8": not a range',
    );
    await expect(atBroker('init --clusterset-range 242.1.0.0/16')).rejects.toThrow(
      '242.1.0.0/16 (clusterset IPs of clusterset prod) overlaps 242.0.0.0/8 (addresses of external services',
    );
    await expect(atBroker('init --ports some')).rejects.toThrow('spec.ports');
  });

  test('broker token: no such set, a bad id, a short time -> refused with what to do', async () => {
    await expect(at(broker, 'broker token east --clusterset none')).rejects.toThrow(
      'clusterset none: there is none at this broker; lay it out with portolan broker init --clusterset none',
    );
    await expect(token('east.eu.prod')).rejects.toThrow('has more than two labels');
    await expect(token('East')).rejects.toThrow('cluster id "East": ');
    await expect(token('east', ' --minutes 1')).rejects.toThrow('10 or more');
  });
});

describe('join', () => {
  test('join: with a token -> the cluster knows its id, its set, and the broker; the token is used up [003-09]', async () => {
    const text = await token('east', ' --region eu --zone a');
    expect(text).toMatch(/^portolan1\.[\w-]+\.[\w-]+$/);
    await at(east, `join ${text} --cluster-id east --pod-cidr 10.1.0.0/16 --service-cidr 10.96.0.0/12`);
    const id = await east.client.get<ClusterProperty>(clusterPropertyType, { name: clusterIdProperty });
    expect(id.spec.value).toBe('east');
    expect(await membershipOf(east)).toMatchObject({ clusterset: 'prod', clusterId: 'east', namespace: 'prod-m-east' });
    const cluster = await broker.client.get<Cluster>(clusterType, { namespace: 'prod', name: 'east' });
    expect(cluster.spec).toMatchObject({ namespace: 'prod-m-east', region: 'eu', zone: 'a' });
    await expect(at(north, `join ${text}`)).rejects.toThrow('it was used already or has expired');
  });

  test('join: an id of two labels -> works like any other', async () => {
    await at(west, `join ${await token('west.eu')} --pod-cidr 10.2.0.0/16 --service-cidr 10.96.0.0/12`);
    const cluster = await broker.client.get<Cluster>(clusterType, { namespace: 'prod', name: 'west.eu' });
    expect(cluster.spec.namespace).toBe(memberNamespace('prod', 'west.eu'));
    expect(cluster.spec.namespace).not.toBe(memberNamespace('prod', 'west-eu'));
  });

  test('join: an id in use -> refused, by the broker to the admin and to a second cluster [003-13]', async () => {
    await expect(token('east')).rejects.toThrow(/^cluster id east is in use since .*; choose another/);
    const again = await token('east', ' --renew');
    await expect(at(north, `join ${again}`)).rejects.toThrow(/^cluster id east is in use by another cluster since/);
    expect(
      await getOrUndefined(north.client, secretType, { namespace: systemNamespace, name: membershipSecretName }),
    ).toBeUndefined();
  });

  test('join: the same cluster with a renewed token -> new credentials, still the same member', async () => {
    const before = await membershipOf(east);
    const place = { namespace: 'prod-m-east', name: memberRecordName };
    const joined = async () => (await broker.client.get<ConfigMap>(configMapType, place)).data?.['joined-at'];
    const joinedAt = await joined();
    await at(east, `join ${await token('east', ' --renew')} --pod-cidr 10.1.0.0/16 --service-cidr 10.96.0.0/12`);
    const after = await membershipOf(east);
    expect(after.token).not.toBe(before.token);
    expect({ ...after, token: '', tokenIssuedAt: '', tokenExpiresAt: '' }).toEqual({
      ...before,
      token: '',
      tokenIssuedAt: '',
      tokenExpiresAt: '',
    });
    expect(joinedAt).toMatch(/^\d{4}-/);
    expect(await joined()).toBe(joinedAt);
  });

  test('join: ranges that overlap -> refused with both named; service ranges may be the same while pods are published', async () => {
    const text = await token('north');
    await expect(at(north, `join ${text} --pod-cidr 10.1.128.0/17`)).rejects.toThrow(
      'cluster north cannot join clusterset prod: 10.1.128.0/17 (pods of this cluster) overlaps 10.1.0.0/16 (pods of cluster east)',
    );
    await expect(at(north, `join ${text} --pod-cidr 243.0.0.0/24`)).rejects.toThrow(
      '243.0.0.0/24 (pods of this cluster) overlaps 243.0.0.0/12 (clusterset IPs of clusterset prod)',
    );
    await expect(at(north, `join ${text} --pod-cidr 10.100.0.0/16 --service-cidr 10.96.0.0/12`)).rejects.toThrow(
      '10.100.0.0/16 (pods of this cluster) overlaps 10.96.0.0/12 (services of this cluster)',
    );
    await expect(at(north, `join ${text} --pod-cidr 10.3.0.0`)).rejects.toThrow('--pod-cidr "10.3.0.0": not a range');
    await at(north, `join ${text} --pod-cidr 10.3.0.0/16 --service-cidr 10.96.0.0/12`);
    await expect(atBroker('init --clusterset-range 10.3.1.0/24')).rejects.toThrow('(pods of cluster north)');
    await expect(token('south', ' --allowed-range 10.2.0.0/24')).rejects.toThrow('(pods of cluster west.eu)');
  });

  test('join: without ranges -> those that the home knows are checked, and what is not known is said', async () => {
    const plain = await set.startHome('plain');
    const { lines } = await at(plain, `join ${await token('plain')}`);
    expect(lines).toContain(
      'not checked: this home does not say where its pods are; give --pod-cidr to have that checked',
    );
    expect(lines).toContain(
      'checked: services in 10.96.0.0/12, fd00:10:96::/112, as this home says (--service-cidr says otherwise)',
    );
    expect((await at(plain, 'leave')).lines).toEqual(['this cluster has left clusterset prod']);
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'one' }, spec: { podCIDR: '10.2.7.0/24' } };
    await plain.client.create(nodeType, node);
    await expect(at(plain, `join ${await token('plain')}`)).rejects.toThrow(
      '10.2.7.0/24 (pods of this cluster) overlaps 10.2.0.0/16 (pods of cluster west.eu)',
    );
    await atBroker('remove plain');
  });

  test('join: a range outside what the admin allowed -> refused', async () => {
    const text = await token('south', ' --allowed-range 10.9.0.0/16');
    const south = await set.startHome('south');
    await expect(at(south, `join ${text} --pod-cidr 10.8.0.0/16`)).rejects.toThrow(
      'cluster south may have addresses in 10.9.0.0/16, not in 10.8.0.0/16 (pods of this cluster)',
    );
    expect((await atBroker('remove south')).lines).toEqual(['cluster south has been removed from clusterset prod']);
    await expect(at(south, `join ${text}`)).rejects.toThrow('used already or has expired');
  });

  test('join: another id, another token, half a token, as an admin without one -> what to do [003-14]', async () => {
    await expect(at(east, `join ${await token('other')}`)).rejects.toThrow(
      'this cluster is east in clusterset prod and would become other in prod; a changed id is leave and join',
    );
    await atBroker('remove other');
    const text = await token('east', ' --renew');
    await expect(at(east, `join ${text} --cluster-id west`)).rejects.toThrow('the join token was made for east');
    await expect(at(east, `join ${text.slice(0, -9)}`)).rejects.toThrow('join token: it is not whole');
    await expect(at(east, 'join hello')).rejects.toThrow('invalid join token');
    await expect(at(east, 'join')).rejects.toThrow('give the join token, or --broker-kubeconfig');
    // The admin of both needs no token in between.
    await at(
      east,
      `join --broker-kubeconfig ${broker.kubeconfig} --clusterset prod --cluster-id east --pod-cidr 10.1.0.0/16`,
    );
  });

  test('broker accept: what a member says of itself -> becomes the word of the admin', async () => {
    await at(north, `join ${await token('north', ' --renew')} --region us --zone b --pod-cidr 10.3.0.0/16`);
    expect((await atBroker('accept north --ranges')).lines[0]).toContain('region us, zone b, ranges 10.3.0.0/16');
    const { spec } = await broker.client.get<Cluster>(clusterType, { namespace: 'prod', name: 'north' });
    expect(spec).toMatchObject({
      region: 'us',
      zone: 'b',
      allowedRanges: ['10.3.0.0/16', '10.96.0.0/12', 'fd00:10:96::/112'],
    });
  });
});

describe('agents as processes', () => {
  test('agent: one for each cluster -> they lead, are ready and measured [003-12]', async () => {
    for (const home of [east, west, north]) {
      await makeNamespace(home.client, 'shop');
      await startAgent(home);
    }
    for (const agent of agents.values()) {
      await until('leading', async () => (await stateOf(agent)) === 'leading');
      expect(await (await fetch(`${agent.admin}/readyz`)).text()).toBe('ok\n');
      expect(await (await fetch(`${agent.admin}/livez`)).text()).toBe('ok\n');
      expect(await (await fetch(`${agent.admin}/metrics`)).text()).toContain('portolan_agent_leading 1');
    }
  });

  test('export: in one cluster -> import and slices in the others [002-07, 002-18]', async () => {
    await at(east, `register ${key} --address 10.1.0.5 --port http=80:8080`);
    const { lines } = await at(east, `export ${key} --wait`);
    expect(lines).toEqual([`${key} is exported`, `${key} is ready: exported to the clusterset`]);
    for (const home of [east, west, north]) {
      const imported = 'ClusterSetIP http:80/TCP from east';
      await until('imported', async () => (await importLine(home.client, key)) === imported);
      await until('slices', async () => (await sliceLines(home.client, key)).length === 1);
      expect(await sliceLines(home.client, key)).toEqual(['east: 10.1.0.5 on http>8080']);
    }
  });

  test('export: how long it took -> measured, by the exporter until it is published and by importers until it is there', async () => {
    const textOf = async (home: TestHome) => (await fetch(`${agents.get(home.name)!.admin}/metrics`)).text();
    for (const [home, queue] of [
      [east, 'export'],
      [west, 'import'],
    ] as const) {
      for (const part of ['wait', 'work'])
        expect(await textOf(home)).toMatch(
          new RegExp(`^portolan_queue_${part}_seconds_count\\{queue="${queue}"\\} [1-9]`, 'm'),
        );
    }
  });

  test('export: a second cluster -> both behind the import, its id of two labels in the slices [002-22]', async () => {
    await at(west, `register ${key} --address 10.2.0.5 --port http=80:8080`);
    await at(west, `export ${key} --wait`);
    for (const home of [east, west, north]) {
      await until('both', async () => (await sliceLines(home.client, key)).length === 2);
      expect(await importLine(home.client, key)).toBe('ClusterSetIP http:80/TCP from east,west.eu');
    }
  });
});

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
    await atBroker('init --legacy-namespace older');
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

describe('what a person types', () => {
  test('status: clusters, leases, services, conflicts, lag -> in a table, and in JSON', async () => {
    const { lines } = await at(north, 'status');
    const text = lines.join('\n');
    expect(text).toMatch(/^clusterset prod at https:\/\/\S+, this cluster is north/);
    expect(text).toMatch(/^east +eu +a +alive +\d+s ago +1 +1$/m);
    expect(text).toMatch(/^shop\/checkout +ClusterSetIP +east,west\.eu +- +in step$/m);
    expect(text).toContain('1 service, 0 in conflict');
    expect(text).toContain('lag: none');
    const json = JSON.parse((await at(north, 'status -o json')).lines.join('\n'));
    expect(json).toMatchObject({
      cluster: 'north',
      behind: [],
      clusters: [{ id: 'east' }, { id: 'north' }, { id: 'west.eu' }],
    });
    expect((await at(north, 'status -o yaml')).lines[0]).toContain('clusterset: ');
    expect((await at(north, 'status -o name')).lines).toContain(key);
    await expect(at(north, 'status -o xml')).rejects.toThrow('write text, wide, json, yaml, name');
  });

  test('plan: an export that would conflict -> said with exit code 9, and nothing is changed [003-03]', async () => {
    await at(north, `register ${key} --address 10.3.0.5 --port http=81:8080`);
    const file = set.write('export.yaml', exportYaml('checkout'));
    const before = [await everything(broker.client), await everything(north.client)];
    const { lines, exitCode } = await at(north, `plan -f ${file}`);
    expect(exitCode).toBe(9);
    expect(lines.join('\n')).toMatch(
      /Conflict +True +PortConflict +spec\.ports\[http\]: using "http" TCP\/80 of cluster east/,
    );
    expect(lines.join('\n')).toContain('in cluster east: Conflict False/NoConflicts would become True/PortConflict');
    expect([await everything(broker.client), await everything(north.client)]).toEqual(before);
    const json = JSON.parse((await at(north, `plan -f ${file} -o json`)).lines.join('\n'));
    expect(json.exports[0].conflicts[0]).toMatchObject({ reason: 'PortConflict', winner: 'east' });
  });

  test('plan: missing service, fine export, another type, bad file -> exit codes 7, 0, 7 and errors', async () => {
    const nothing = set.write('nothing.yaml', exportYaml('nothing'));
    expect((await at(north, `plan -f ${nothing}`)).exitCode).toBe(7);
    const fine = set.write('fine.yaml', `${exportYaml('fine')}---\n${serviceYaml('fine')}`);
    expect((await at(north, `plan -f ${fine}`)).exitCode).toBe(0);
    const headless = set.write('headless.yaml', `${exportYaml('checkout')}---\n${serviceYaml('checkout', 'None')}`);
    await expect(at(north, `plan -f ${headless}`)).rejects.toThrow('clusterIP');
    const list = set.write('list.yaml', 'kind: List\nitems: [{a: 1}]\n');
    await expect(at(north, `plan -f ${list}`)).rejects.toThrow('document 1 is not an object');
    await expect(at(north, 'plan -f /nowhere')).rejects.toThrow('-f /nowhere: no such file');
  });

  test('export: would conflict -> warned, done, and explained field by field', async () => {
    const { lines } = await at(north, `export ${key} --wait`);
    expect(lines[0]).toBe(
      'warning: PortConflict: spec.ports[http] differs between clusters; "http" TCP/80 of cluster east is used',
    );
    const text = (await at(west, `explain ${key}`)).lines.join('\n');
    expect(text).toMatch(/decided by cluster east \((the oldest export|exported at \S+ like that of west\.eu)/);
    expect(text).toMatch(/^north +\S+ +alive +yes +- +1 +all$/m);
    expect(text).toContain('north says "http" TCP/81');
    expect(text).toContain('if a cluster left:');
    const json = JSON.parse((await at(west, `explain ${key} -o json`)).lines.join('\n'));
    expect(json).toMatchObject({ service: key, decider: 'east', conflicts: [{ reason: 'PortConflict' }] });
    await until('status says so', async () => (await at(west, 'status')).lines.join('\n').includes('lag: none'));
    const status = (await at(west, 'status')).lines.join('\n');
    expect(status).toMatch(/^shop\/checkout +ClusterSetIP +east,north,west\.eu +PortConflict +in step$/m);
    expect(status).toContain('1 service, 1 in conflict (portolan explain NAMESPACE/NAME says why)');
    await expect(at(west, 'explain shop/none')).rejects.toThrow(
      'service shop/none: no cluster of the clusterset exports it',
    );
  });

  test('export: system namespaces, no such namespace, no service yet, unknown clusters -> refused, or warned [003-38]', async () => {
    await expect(at(north, 'export kube-system/dns')).rejects.toThrow('give --allow-system if you mean it');
    await expect(at(north, 'export default/web')).rejects.toThrow('give --allow-system if you mean it');
    await expect(at(north, 'export none/web')).rejects.toThrow('there is no namespace none');
    await expect(at(north, 'export default/web --allow-system --to east,mars')).rejects.toThrow(
      'the clusterset has no cluster mars',
    );
    const { lines } = await at(north, 'export default/web --allow-system --to east');
    expect(lines).toEqual([
      'warning: service default/web does not exist in this cluster; create it',
      'default/web is exported',
    ]);
    await expect(at(north, 'export default/web --allow-system --wait --timeout 1')).rejects.toThrow(
      'export default/web: not done after 1 s: service default/web does not exist in this cluster',
    );
    expect((await at(north, 'unexport default/web')).lines).toContain('default/web is no longer exported');
    expect((await at(north, 'unexport default/web')).lines).toEqual(['default/web is not exported']);
  });

  test('export: another type than the oldest -> warned that it is not part of the import [003-51]', async () => {
    await east.client.create({ ...serviceTypeOf() }, serviceObject('flip', '10.96.7.7'));
    await at(east, 'export shop/flip --wait');
    await west.client.create({ ...serviceTypeOf() }, serviceObject('flip', 'None'));
    await pause(1_100);
    const { lines } = await at(west, 'export shop/flip');
    expect(lines).toContainEqual(expect.stringContaining('warning: TypeConflict: spec.type differs'));
    expect(lines).toContainEqual(expect.stringContaining('not part of the import while its type differs'));
    await until('west is left out', async () => {
      const [own] = (await at(east, 'status -o json')).lines;
      return JSON.parse(own!).services.some(({ excluded }: { excluded: string[] }) => excluded.includes('west.eu'));
    });
    const leaving = await at(east, 'unexport shop/flip --wait');
    expect(leaving.lines).toContain(
      'warning: the type of shop/flip would flip from ClusterSetIP to Headless in every cluster',
    );
    await at(west, 'unexport shop/flip --wait');
  });
});

describe('agents that stop and start', () => {
  test('agents: all restarted -> the revisions of the broker and of every home stay, leases aside', async () => {
    await until('nobody is behind', async () => (await at(east, 'status')).lines.join().includes('lag: none'));
    await pause(1_000);
    const homes = [broker, east, west, north];
    const before = await Promise.all(homes.map(({ client }) => everything(client)));
    for (const agent of agents.values()) expect(await agent.stop()).toBe(0);
    const leader = await broker.client.get<Lease>(leaseType, { namespace: 'prod-members', name: 'east' });
    expect(leader.spec?.holderIdentity ?? '').toBe('');
    for (const home of [east, west, north]) await startAgent(home);
    for (const agent of agents.values()) {
      await until('leading again', async () => (await stateOf(agent)) === 'leading');
      await until('all controllers have synced', () => agent.log().split('controller has synced').length > 7);
    }
    await pause(3_000);
    // The counted usage goes up and down with the leases.
    const without = (all: Awaited<typeof before>) =>
      all.map((objects) => [...objects].filter(([name]) => !/^(ResourceQuota|Heartbeat|LivenessReport) /.test(name)));
    expect(without(await Promise.all(homes.map(({ client }) => everything(client))))).toEqual(without(before));
  });

  test('agent: two of one cluster -> one waits, and takes over when the other stops', async () => {
    const second = await set.startAgent(agentKubeconfigs.get('east')!);
    await until('it waits', async () => (await stateOf(second)) === 'standby');
    expect(await stateOf(agents.get('east')!)).toBe('leading');
    await agents.get('east')!.stop();
    await until('it takes over', async () => (await stateOf(second)) === 'leading');
    agents.set('east', second);
    expect(await importLine(west.client, key)).toContain('from east');
  });

  test('agent: its leader Lease is deleted at the broker -> created again, owned by the namespace of the member', async () => {
    const agent = agents.get('west')!;
    const ref = { namespace: 'prod-members', name: 'west.eu' };
    const owners = async () =>
      (await getOrUndefined<Lease>(broker.client, leaseType, ref))?.metadata.ownerReferences?.map(({ name }) => name);
    const namespace = memberNamespace('prod', 'west.eu');
    expect(await owners()).toEqual([namespace]);
    await broker.client.delete(leaseType, ref);
    await until('it is there again', async () => (await owners()) !== undefined);
    expect(await owners()).toEqual([namespace]);
    expect(await stateOf(agent)).toBe('leading');
    expect(agent.log().match(/leadership lost/g)).toBeNull();
  });

  test('broker init: a member that joined an earlier release -> may create its leader Lease too', async () => {
    const ref = { namespace: 'prod-members', name: memberRoleName('west.eu') };
    const rulesOf = async () => (await broker.client.get<KubernetesObject & { rules: object[] }>(roleType, ref)).rules;
    const rules = await rulesOf();
    await broker.client.patch(roleType, ref, { kind: 'merge', body: { rules: [] } });
    expect((await atBroker('init')).lines).toContain('updated rights of member west.eu');
    expect(await rulesOf()).toEqual(rules);
  });

  test('agent: its token is old -> renewed at the broker, kept at home, and the work goes on', async () => {
    await agents.get('east')!.stop();
    const before = await membershipOf(east);
    const old = Buffer.from('2020-01-01T00:00:00Z').toString('base64');
    const ref = { namespace: systemNamespace, name: membershipSecretName };
    await east.client.patch(secretType, ref, { kind: 'merge', body: { data: { 'token-issued-at': old } } });
    await startAgent(east);
    await until('renewed', async () => (await membershipOf(east)).token !== before.token);
    expect((await membershipOf(east)).tokenIssuedAt > before.tokenIssuedAt.slice(0, 4)).toBe(true);
    const ownLease = { namespace: 'prod-m-east', name: memberLeaseName };
    const { renewTime } = (await broker.client.get<Lease>(heartbeatType, ownLease)).spec!;
    await until(
      'it goes on',
      async () => (await broker.client.get<Lease>(heartbeatType, ownLease)).spec!.renewTime !== renewTime,
    );
  });
});

describe('leaving', () => {
  test('unexport: the oldest takes it back -> gone from the broker, the others decide [002-29]', async () => {
    const { lines } = await at(east, `unexport ${key} --wait`);
    expect(lines.at(-1)).toBe(`${key} is withdrawn`);
    for (const home of [east, west, north]) {
      await until('without east', async () =>
        (await sliceLines(home.client, key)).every((line) => !line.startsWith('east:')),
      );
      await until('the import too', async () => !(await importLine(home.client, key)).includes('east'));
    }
    expect(
      await getOrUndefined<ServiceShard>(broker.client, serviceShardType, { namespace: 'prod-m-east', name: record }),
    ).toBeUndefined();
  });

  test('leave: a member whose agent runs -> no trace at the broker nor at home; what people made stays [003-09]', async () => {
    const { lines } = await at(west, 'leave');
    expect(lines).toEqual(['this cluster has left clusterset prod']);
    await until('forgotten', async () =>
      [...(await everything(broker.client)).keys()].every((name) => !name.includes('west')),
    );
    const left = [...(await everything(west.client)).keys()];
    const ours = /ServiceImport|AddressClaim|ClusterProperty|Secret |ConfigMap /;
    expect(left.filter((name) => ours.test(name))).toEqual([]);
    expect(left.filter((name) => name.startsWith('EndpointSlice'))).toEqual([expect.stringContaining('checkout-reg-')]);
    expect(left).toContain('ServiceExport shop/checkout');
    expect((await at(west, 'status').catch((error: Error) => error.message)) as string).toContain('is not a member');
    const agent = agents.get('west')!;
    expect((await fetch(`${agent.admin}/readyz`)).status).toBe(503);
    for (const home of [east, north]) {
      await until(
        'others see it',
        async () => (await importLine(home.client, key)) === 'ClusterSetIP http:81/TCP from north',
      );
    }
    expect((await at(west, 'leave')).lines).toEqual(['this cluster is not a member of a clusterset']);
  });

  test('join: after leaving under another id, the agent still running -> it works for the new one [003-14]', async () => {
    await at(west, `join ${await token('west-2')} --pod-cidr 10.2.0.0/16`);
    await until('exported again', async () => (await importLine(east.client, key)).includes('north,west-2'));
    expect(await stateOf(agents.get('west')!)).toBe('leading');
  });

  test('broker remove: a cluster that lives -> refused; one that is gone -> removed with all it had', async () => {
    await expect(atBroker('remove west-2')).rejects.toThrow(
      /^cluster west-2 has just renewed its lease: run portolan leave/,
    );
    await agents.get('west')!.stop('SIGKILL');
    await until('the others judge it', async () => {
      const { clusters } = JSON.parse((await at(east, 'status -o json')).lines.join('\n'));
      return clusters.some(({ id, lease }: { id: string; lease: string }) => id === 'west-2' && lease === 'stale');
    });
    expect((await at(east, `explain ${key}`)).lines.join('\n')).toMatch(
      // It joined last: of the port on which they disagree it has the other number.
      /^west-2 +\S+ +stale since \S+Z +yes +- +1 +all$/m,
    );
    await until(
      'its lease has run out',
      async () => (await atBroker('remove west-2').catch(() => undefined)) !== undefined,
    );
    await until('gone', async () =>
      [...(await everything(broker.client)).keys()].every((name) => !name.includes('west')),
    );
    await until(
      'others see it',
      async () => (await importLine(east.client, key)) === 'ClusterSetIP http:81/TCP from north',
    );
    expect((await atBroker('remove west-2')).lines).toEqual(['cluster west-2 is not a member of clusterset prod']);
    // The cluster comes back and is notified; leaving cleans its home.
    expect((await at(west, 'leave')).lines).toEqual(['this cluster has left clusterset prod']);
  });

  test('broker remove: forced while its agent runs -> the agent says so; joined again -> it goes on', async () => {
    await atBroker('remove north --force');
    const agent = agents.get('north')!;
    await until('it is told', async () => (await stateOf(agent)) === 'refused');
    const answer = await fetch(`${agent.admin}/readyz`);
    expect([answer.status, await answer.text()]).toEqual([
      503,
      expect.stringContaining('portolan broker token north --renew'),
    ]);
    await expect(at(north, 'status')).rejects.toThrow(
      'this cluster was removed from clusterset prod, or its credentials',
    );
    await at(north, `join ${await token('north')} --pod-cidr 10.3.0.0/16`);
    await until('it works again', async () => (await stateOf(agent)) === 'leading');
    await until(
      'others see it',
      async () => (await importLine(east.client, key)) === 'ClusterSetIP http:81/TCP from north',
    );
  });

  test('leave: the last member -> the merged view is empty [002-28]', async () => {
    await at(east, 'leave');
    await at(north, 'leave');
    const left = [...(await everything(broker.client)).keys()];
    expect(left.filter((name) => /^(ServiceImport|Cluster|ServiceShard|EndpointSlice) /.test(name))).toEqual([]);
  });

  test('leave: the broker is away -> an error that says so; --offline -> the home is cleaned all the same', async () => {
    const other = await set.startHome('other-broker');
    await type(`broker init --clusterset prod --kubeconfig ${other.kubeconfig}`);
    const text = (
      await type(`broker token lost --clusterset prod --kubeconfig ${other.kubeconfig} --server https://127.0.0.1:9`)
    ).lines[0]!;
    await expect(at(north, `join ${text}`)).rejects.toThrow();
    await at(
      north,
      `join ${(await type(`broker token lost --clusterset prod --kubeconfig ${other.kubeconfig}`)).lines[0]}`,
    );
    const server = Buffer.from('https://127.0.0.1:9').toString('base64');
    const ref = { namespace: systemNamespace, name: membershipSecretName };
    await north.client.patch(secretType, ref, { kind: 'merge', body: { data: { server } } });
    await expect(at(north, 'leave')).rejects.toThrow('the broker https://127.0.0.1:9 cannot be reached');
    expect((await at(north, 'leave --offline')).lines).toEqual([
      'tell the admin of the broker: portolan broker remove lost',
      'this cluster has left clusterset prod',
    ]);
    expect(await getOrUndefined(north.client, secretType, ref)).toBeUndefined();
  });
});

describe('everything goes at once', () => {
  test('agent: told to stop while its broker and its home go away -> it ends, cleanly', async () => {
    for (const round of [1, 2, 3]) {
      const lateBroker = await set.startHome(`late-broker-${round}`);
      const late = await set.startHome(`late-${round}`);
      await at(lateBroker, 'broker init');
      await at(late, `join --broker-kubeconfig ${lateBroker.kubeconfig} --cluster-id late`);
      const agent = await set.startAgent(await set.agentKubeconfig(late));
      await until('leading', async () => (await stateOf(agent)) === 'leading');
      await until('at work', () => agent.log().includes('controller has synced'));
      const [code] = await Promise.all([agent.stop(), lateBroker.stop(), late.stop()]);
      expect(code).toBe(0);
    }
  });
});

function exportYaml(name: string): string {
  return `apiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceExport\nmetadata: {name: ${name}, namespace: shop}\n`;
}

function serviceYaml(name: string, clusterIP?: string): string {
  const ip = clusterIP === undefined ? '' : `clusterIP: ${clusterIP}, `;
  return `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}, namespace: shop}\nspec: {${ip}ports: [{name: http, port: 80}]}\n`;
}

function serviceTypeOf(): ResourceType {
  return { group: '', version: 'v1', plural: 'services', kind: 'Service', isNamespaced: true };
}

function serviceObject(name: string, clusterIP: string): KubernetesObject & { spec: object } {
  const spec = { clusterIP, ports: [{ name: 'http', port: 80 }] };
  return { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: 'shop' }, spec };
}

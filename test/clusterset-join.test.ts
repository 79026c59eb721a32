// A clusterset is laid out and clusters join it, as a person types it, with real rights. The tests follow each other.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { type Cluster, clusterType } from '../src/clusterset/kinds/cluster.ts';
import {
  type ClusterProperty,
  clusterIdProperty,
  clusterPropertyType,
} from '../src/clusterset/kinds/cluster-property.ts';
import { type ClusterSet, clusterSetType } from '../src/clusterset/kinds/cluster-set.ts';
import { membershipSecretName } from '../src/clusterset/membership/membership.ts';
import { memberNamespace, memberRecordName } from '../src/clusterset/rules/broker-layout.ts';
import { getOrUndefined } from '../src/kube/client/absent.ts';
import { type ConfigMap, configMapType } from '../src/kube/objects/config-map.ts';
import { endpointSliceType } from '../src/kube/objects/endpoint-slice.ts';
import { nodeType } from '../src/kube/objects/node.ts';
import { systemNamespace } from '../src/kube/objects/ours.ts';
import { secretType } from '../src/kube/objects/secret.ts';
import { everything, type TestHome } from './support/clusterset.ts';
import { MemberSet, membershipOf } from './support/member-set.ts';

const members = new MemberSet();
let broker: TestHome;
let east: TestHome;
let west: TestHome;
let north: TestHome;

beforeAll(async () => {
  ({ broker, east, west, north } = await members.startHomes());
});
afterAll(() => members.stop());

describe('broker', () => {
  test('broker init: on an empty home -> namespaces, ClusterSet and rights; again -> nothing is written', async () => {
    const { lines } = await members.atBroker('init --ports union --lease-renew 1 --lease-duration 4');
    expect(lines).toContain('created ClusterSet prod/prod');
    expect(lines.at(-1)).toBe('next: portolan broker token CLUSTER_ID --clusterset prod');
    const made = await broker.client.get<ClusterSet>(clusterSetType, { namespace: 'prod', name: 'prod' });
    expect(made.spec?.lease).toMatchObject({ renewSeconds: 1, durationSeconds: 4, holdDownSeconds: 60 });
    const before = await everything(broker.client);
    expect((await members.atBroker('init')).lines[0]).toBe('clusterset prod is laid out already');
    expect(await everything(broker.client)).toEqual(before);
  });

  test('broker init: one option later -> that one changes, the others stay', async () => {
    await members.atBroker('init --lease-duration 5 --staleness NotReady');
    const { spec } = await broker.client.get<ClusterSet>(clusterSetType, { namespace: 'prod', name: 'prod' });
    expect(spec).toMatchObject({ staleness: 'NotReady', lease: { renewSeconds: 1, durationSeconds: 5 } });
  });

  test('broker init: --compatible lighthouse -> its four settings, single ones by their own options; anything else -> refused', async () => {
    const printed = async (more = '') => {
      const { lines } = await members.atBroker(`init --print --compatible lighthouse${more}`);
      return parseAllDocuments(lines.join('\n')).flatMap((one) => {
        const object = one.toJSON() as { kind?: string; spec?: object } | null;
        return object?.kind === 'ClusterSet' ? [object.spec] : [];
      });
    };
    const settings = {
      ...{ ports: 'intersection', endpoints: 'ClusterIP', clusterSetIP: 'none' },
      dns: { clusterNames: 'Served' },
    };
    expect(await printed()).toMatchObject([settings]);
    expect(await printed(' --ports union --ttl 30')).toMatchObject([
      { ...settings, ports: 'union', dns: { clusterNames: 'Served', ttlSeconds: 30 } },
    ]);
    await expect(members.atBroker('init --print --compatible nothing')).rejects.toThrow('lighthouse');
  });

  test('broker init: a ClusterSet in a file, bad names and ranges -> taken, or refused with what is wrong', async () => {
    const file = members.set.write(
      'set.yaml',
      'apiVersion: portolan.dev/v1alpha1\nkind: ClusterSet\nmetadata: {name: test}\nspec: {endpoints: ClusterIP}\n',
    );
    const printed = (await members.at(broker, `broker init --file ${file} --print`)).lines.join('\n');
    expect(printed).toMatch(/name: test\n {2}namespace: test\n(?: {2}.*\n)*spec:\n {2}endpoints: ClusterIP/);
    await expect(members.at(broker, `broker init --file ${file}`)).rejects.toThrow(
      'clusterset test: this broker serves clusterset prod, and a broker serves one',
    );
    await expect(members.at(broker, 'broker init --clusterset Prod')).rejects.toThrow('--clusterset "Prod": ');
    await expect(members.atBroker('init --clusterset-range 10.0.0/8')).rejects.toThrow(
      '--clusterset-range "10.0.0/8": not a range',
    );
    await expect(members.atBroker('init --clusterset-range 242.1.0.0/16')).rejects.toThrow(
      '242.1.0.0/16 (clusterset IPs of clusterset prod) overlaps 242.0.0.0/8 (addresses of external services',
    );
    await expect(members.atBroker('init --ports some')).rejects.toThrow('spec.ports');
  });

  test('broker token: no such set, a bad id, a short time -> refused with what to do', async () => {
    await expect(members.at(broker, 'broker token east --clusterset none')).rejects.toThrow(
      'clusterset none: this broker has prod; give --clusterset prod',
    );
    await expect(members.token('east.eu.prod')).rejects.toThrow('has more than two labels');
    await expect(members.token('East')).rejects.toThrow('cluster id "East": ');
    await expect(members.token('east', ' --minutes 1')).rejects.toThrow('10 or more');
  });
});

describe('join', () => {
  test('join: with a token -> the cluster knows its id, its set, and the broker; the token is used up [003-09]', async () => {
    const text = await members.token('east', ' --region eu --zone a');
    expect(text).toMatch(/^portolan1\.[\w-]+\.[\w-]+$/);
    await members.at(east, `join ${text} --cluster-id east --pod-cidr 10.1.0.0/16 --service-cidr 10.96.0.0/12`);
    const id = await east.client.get<ClusterProperty>(clusterPropertyType, { name: clusterIdProperty });
    expect(id.spec.value).toBe('east');
    expect(await membershipOf(east)).toMatchObject({ clusterset: 'prod', clusterId: 'east', namespace: 'prod-m-east' });
    const cluster = await broker.client.get<Cluster>(clusterType, { namespace: 'prod', name: 'east' });
    expect(cluster.spec).toMatchObject({ namespace: 'prod-m-east', region: 'eu', zone: 'a' });
    await expect(members.at(north, `join ${text}`)).rejects.toThrow('it was used already or has expired');
  });

  test('join: an id of two labels -> works like any other', async () => {
    await members.at(west, `join ${await members.token('west.eu')} --pod-cidr 10.2.0.0/16 --service-cidr 10.96.0.0/12`);
    const cluster = await broker.client.get<Cluster>(clusterType, { namespace: 'prod', name: 'west.eu' });
    expect(cluster.spec.namespace).toBe(memberNamespace('prod', 'west.eu'));
    expect(cluster.spec.namespace).not.toBe(memberNamespace('prod', 'west-eu'));
  });

  test('join: an id in use -> refused, by the broker to the admin and to a second cluster [003-13]', async () => {
    await expect(members.token('east')).rejects.toThrow(/^cluster id east is in use since .*; choose another/);
    const again = await members.token('east', ' --renew');
    await expect(members.at(north, `join ${again}`)).rejects.toThrow(
      /^cluster id east is in use by another cluster since/,
    );
    expect(
      await getOrUndefined(north.client, secretType, { namespace: systemNamespace, name: membershipSecretName }),
    ).toBeUndefined();
  });

  test('join: the same cluster with a renewed token -> new credentials, still the same member', async () => {
    const before = await membershipOf(east);
    const place = { namespace: 'prod-m-east', name: memberRecordName };
    const joined = async () => (await broker.client.get<ConfigMap>(configMapType, place)).data?.['joined-at'];
    const joinedAt = await joined();
    await members.at(
      east,
      `join ${await members.token('east', ' --renew')} --pod-cidr 10.1.0.0/16 --service-cidr 10.96.0.0/12`,
    );
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
    const text = await members.token('north');
    await expect(members.at(north, `join ${text} --pod-cidr 10.1.128.0/17`)).rejects.toThrow(
      'cluster north cannot join clusterset prod: 10.1.128.0/17 (pods of this cluster) overlaps 10.1.0.0/16 (pods of cluster east)',
    );
    await expect(members.at(north, `join ${text} --pod-cidr 243.0.0.0/24`)).rejects.toThrow(
      '243.0.0.0/24 (pods of this cluster) overlaps 243.0.0.0/12 (clusterset IPs of clusterset prod)',
    );
    await expect(
      members.at(north, `join ${text} --pod-cidr 10.100.0.0/16 --service-cidr 10.96.0.0/12`),
    ).rejects.toThrow('10.100.0.0/16 (pods of this cluster) overlaps 10.96.0.0/12 (services of this cluster)');
    await expect(members.at(north, `join ${text} --pod-cidr 10.3.0.0`)).rejects.toThrow(
      '--pod-cidr "10.3.0.0": not a range',
    );
    await members.at(north, `join ${text} --pod-cidr 10.3.0.0/16 --service-cidr 10.96.0.0/12`);
    await expect(members.atBroker('init --clusterset-range 10.3.1.0/24')).rejects.toThrow('(pods of cluster north)');
    await expect(members.token('south', ' --allowed-range 10.2.0.0/24')).rejects.toThrow('(pods of cluster west.eu)');
  });

  test('join: without ranges -> those that the home knows are checked, and what is not known is said', async () => {
    const plain = await members.set.startHome('plain');
    const { lines } = await members.at(plain, `join ${await members.token('plain')}`);
    expect(lines).toContain(
      'not checked: this home does not say where its pods are; give --pod-cidr to have that checked',
    );
    expect(lines).toContain(
      'checked: services in 10.96.0.0/12, fd00:10:96::/112, as this home says (--service-cidr says otherwise)',
    );
    expect((await members.at(plain, 'leave')).lines).toEqual(['this cluster has left clusterset prod']);
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'one' }, spec: { podCIDR: '10.2.7.0/24' } };
    await plain.client.create(nodeType, node);
    await expect(members.at(plain, `join ${await members.token('plain')}`)).rejects.toThrow(
      '10.2.7.0/24 (pods of this cluster) overlaps 10.2.0.0/16 (pods of cluster west.eu)',
    );
    await members.atBroker('remove plain');
  });

  test('join: a range outside what the admin allowed -> refused', async () => {
    const text = await members.token('south', ' --allowed-range 10.9.0.0/16');
    const south = await members.set.startHome('south');
    await expect(members.at(south, `join ${text} --pod-cidr 10.8.0.0/16`)).rejects.toThrow(
      'cluster south may have addresses in 10.9.0.0/16, not in 10.8.0.0/16 (pods of this cluster)',
    );
    expect((await members.atBroker('remove south')).lines).toEqual([
      'cluster south has been removed from clusterset prod',
    ]);
    await expect(members.at(south, `join ${text}`)).rejects.toThrow('used already or has expired');
  });

  test('join: another id, another token, half a token, as an admin without one -> what to do [003-14]', async () => {
    await expect(members.at(east, `join ${await members.token('other')}`)).rejects.toThrow(
      'this cluster is east in clusterset prod and would become other in prod; a changed id is leave and join',
    );
    await members.atBroker('remove other');
    const text = await members.token('east', ' --renew');
    await expect(members.at(east, `join ${text} --cluster-id west`)).rejects.toThrow(
      'the join token was made for east',
    );
    await expect(members.at(east, `join ${text.slice(0, -9)}`)).rejects.toThrow('join token: it is not whole');
    await expect(members.at(east, 'join hello')).rejects.toThrow('invalid join token');
    await expect(members.at(east, 'join')).rejects.toThrow('give the join token, or --broker-kubeconfig');
    // The admin of both needs no token in between.
    await members.at(
      east,
      `join --broker-kubeconfig ${broker.kubeconfig} --clusterset prod --cluster-id east --pod-cidr 10.1.0.0/16`,
    );
  });

  test('broker accept: what a member says of itself -> becomes the word of the admin', async () => {
    await members.at(
      north,
      `join ${await members.token('north', ' --renew')} --region us --zone b --pod-cidr 10.3.0.0/16`,
    );
    expect((await members.atBroker('accept north --no-ranges')).lines).toEqual([
      expect.stringContaining('region us, zone b, ranges any'),
      'cluster north: packets come from 10.3.0.0/16',
    ]);
    expect((await members.atBroker('accept north')).lines[0]).toContain('region us, zone b, ranges 10.3.0.0/16');
    const { spec } = await broker.client.get<Cluster>(clusterType, { namespace: 'prod', name: 'north' });
    expect(spec).toMatchObject({
      region: 'us',
      zone: 'b',
      allowedRanges: ['10.3.0.0/16', '10.96.0.0/12', 'fd00:10:96::/112'],
    });
  });

  test('broker accept: the ranges that a member joined with -> its limit from then on; addresses outside that it has published -> refused and named', async () => {
    const ranges = async () =>
      (await broker.client.get<Cluster>(clusterType, { namespace: 'prod', name: 'north' })).spec.allowedRanges;
    const set = async (allowedRanges: string[] | undefined) => {
      const present = await broker.client.get<Cluster>(clusterType, { namespace: 'prod', name: 'north' });
      await broker.client.update(clusterType, { ...present, spec: { ...present.spec, allowedRanges } });
      return present.spec.namespace;
    };
    const slice = (name: string, address: string) => ({
      ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4', ports: [] },
      ...{ metadata: { name, namespace: '' }, endpoints: [{ addresses: [address] }] },
    });
    const namespace = await set(undefined);
    const put = (made: ReturnType<typeof slice>) =>
      broker.client.create(endpointSliceType, { ...made, metadata: { ...made.metadata, namespace } });
    await put(slice('inside', '10.3.0.7'));
    await put(slice('pool', '10.200.0.7'));
    await expect(members.atBroker('accept north')).rejects.toThrow('10.200.0.7 (pool); add their ranges');
    expect(await ranges()).toBeUndefined();
    await members.atBroker('accept north --allowed-range 10.200.0.0/16');
    const reported = ['10.3.0.0/16', '10.96.0.0/12', 'fd00:10:96::/112'];
    expect(await ranges()).toEqual([...reported, '10.200.0.0/16']);
    // What the admin said stays, until the admin says otherwise.
    expect((await members.atBroker('accept north')).lines).not.toContainEqual(expect.stringContaining('--ranges'));
    expect(await ranges()).toEqual([...reported, '10.200.0.0/16']);
    await set(['10.9.0.0/16']);
    expect((await members.atBroker('accept north')).lines).toContainEqual(
      expect.stringContaining('--ranges puts them in place'),
    );
    expect(await ranges()).toEqual(['10.9.0.0/16']);
    await members.atBroker('accept north --ranges');
    expect(await ranges()).toEqual(reported);
    const again = `join ${await members.token('north', ' --renew')} --pod-cidr`;
    await expect(members.at(north, `${again} 10.7.0.0/16`)).rejects.toThrow('accept north --allowed-range 10.7.0.0/16');
    await members.atBroker('accept north --allowed-range 10.7.0.0/16');
    await members.at(north, `${again} 10.7.0.0/16`);
    for (const name of ['inside', 'pool']) await broker.client.delete(endpointSliceType, { namespace, name });
  });

  test('broker accept: sealed exports are allowed, no agent has reported its key -> said, with the next step', async () => {
    await members.atBroker('init --sealed-exports Allowed');
    expect((await members.atBroker('accept north')).lines.at(-1)).toBe(
      'cluster north has reported no key for sealed exports yet: give this command again when its agent runs',
    );
  });
});

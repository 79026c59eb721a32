// Clusters of a set in networks that do not meet, seen from the home of a member.

import { describe, expect, test } from 'vitest';
import { type AddressClaim, addressClaimType } from '../../src/addresses/address-claim.ts';
import { candidates } from '../../src/addresses/candidates.ts';
import { claimFor } from '../../src/addresses/claim.ts';
import { silentLog } from '../../src/base/log.ts';
import { parseRange } from '../../src/base/net/ip.ts';
import { Attachment } from '../../src/catalog/attach.ts';
import { Catalog } from '../../src/catalog/catalog.ts';
import { type Cluster, clusterType } from '../../src/clusterset/kinds/cluster.ts';
import { clusterSetDefaults } from '../../src/clusterset/kinds/cluster-set.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { type ServiceImportPolicy, serviceImportPolicyType } from '../../src/clusterset/kinds/service-import-policy.ts';
import { readNetworks } from '../../src/clusterset/rules/networks/networks.ts';
import { endpointLabel } from '../../src/clusterset/rules/networks/virtual-endpoints.ts';
import { readRouting, routingAnnotation } from '../../src/clusterset/rules/routing/routing.ts';
import { Asker } from '../../src/dns/testing/ask.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { conditionOf } from '../../src/kube/objects/conditions.ts';
import { type ConfigMap, configMapType } from '../../src/kube/objects/config-map.ts';
import { type EndpointSlice, endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { leaseType } from '../../src/kube/objects/lease.ts';
import { SimClusterSet, setName } from '../clusterset.ts';
import { openDesk, typeAt } from '../command.ts';
import { find } from '../look.ts';
import { exportService, proxyLease } from '../manifests.ts';

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

describe('an import with clusters in other networks', () => {
  const key = 'shop/checkout';
  const pods = '10.1.0.';

  /** east and west have the same pod addresses; east is in a network of its own, north in that of west. */
  async function threeClusters(ofWest: Partial<Cluster['spec']> = {}) {
    const set = await new SimClusterSet({
      clusters: ['east', 'north', 'west'],
      member: (id) =>
        id === 'east' ? { network: 'aws', gatewayRanges: ['203.0.113.0/24'] } : id === 'west' ? ofWest : {},
    }).start({ namespaces: ['shop'] });
    for (const id of ['east', 'west'])
      await exportService(set.home(id).admin, key, { endpoints: [`${pods}1`, `${pods}2`] });
    await exportService(set.home('north').admin, key, { endpoints: ['10.2.0.1'] });
    await set.time.advance(4_000);
    return { set, west: set.home('west').admin, settle: () => set.time.advance(4_000) };
  }

  const slicesFrom = async (client: Client, cluster: string) => {
    const labelSelector = `multicluster.kubernetes.io/service-name=checkout,multicluster.kubernetes.io/source-cluster=${cluster}`;
    return (await client.list<EndpointSlice>(endpointSliceType, { namespace: 'shop', labelSelector })).items;
  };
  const reached = async (client: Client, type = 'ClustersReached') =>
    conditionOf((await find<ServiceImport>(client, serviceImportType, key))?.status?.conditions, type);

  test('networks: the same pod range in two networks -> no address of the other network at home, its endpoints counted', async () => {
    const { west } = await threeClusters();
    const [remote] = await slicesFrom(west, 'east');
    expect(remote?.addressType).toBe('FQDN');
    expect(remote?.endpoints).toHaveLength(2);
    expect(JSON.stringify(remote)).not.toContain(pods);
    const [own] = await slicesFrom(west, 'west');
    expect(own?.endpoints?.map(({ addresses }) => addresses?.[0])).toEqual([`${pods}1`, `${pods}2`]);
    const [near] = await slicesFrom(west, 'north');
    expect(near?.endpoints?.map(({ addresses }) => addresses?.[0])).toEqual(['10.2.0.1']);
  });

  test('networks: import conditions -> directly, not at all and why, through a gateway as soon as there is one', async () => {
    const { set, west, settle } = await threeClusters();
    expect(await reached(west)).toMatchObject({
      status: 'False',
      message: 'east: not reached, it is in network aws: no gateway published; north: directly; west: directly',
    });
    await giveGateway(set, 'east', '203.0.113.7:15443');
    await settle();
    expect(await reached(west)).toMatchObject({
      status: 'True',
      message: 'east: through a gateway of network aws; north: directly; west: directly',
    });
    expect(await reached(west, 'ReachedWithoutProxy')).toMatchObject({
      ...{ status: 'False', reason: 'SomeClusters' },
      message: expect.stringContaining('get the endpoints of north, west alone: east is in another network'),
    });
  });

  test('networks: a cluster holds another address for the service -> its gateway is asked by name, and the condition says so', async () => {
    const set = await new SimClusterSet({
      clusters: ['east', 'west'],
      member: (id) => (id === 'east' ? { network: 'aws', gatewayRanges: ['203.0.113.0/24'] } : {}),
    }).start({ namespaces: ['shop'] });
    await giveGateway(set, 'east', '203.0.113.7:15443');
    const [west, east] = [set.home('west').admin, set.home('east').admin];
    const range = parseRange(clusterSetDefaults.addressRanges.clusterSet[0]!)!;
    const owner = { kind: 'ServiceImport', namespace: 'shop', name: 'checkout' };
    const address = candidates({ owner, range, preferred: [], isTaken: () => false }).next().value as string;
    // In east it belongs to something else.
    await east.create(addressClaimType, claimFor({ kind: 'PeerService', namespace: 'shop', name: 'other' }, address));
    await exportService(west, key, { endpoints: [`${pods}1`] });
    await set.time.advance(4_000);
    await exportService(east, key, { endpoints: [`${pods}2`] });
    await set.time.advance(8_000);
    const ips = async (client: Client) => (await find<ServiceImport>(client, serviceImportType, key))?.spec.ips;
    expect(await ips(west)).toEqual([address]);
    expect(await ips(east)).not.toContain(address);
    const [slice] = await slicesFrom(west, 'east');
    expect(slice?.endpoints).toMatchObject([
      { addresses: ['ipv4.name.gateway.invalid'], conditions: { ready: false, serving: true } },
    ]);
    expect(await reached(west)).toMatchObject({
      status: 'True',
      message:
        'east: through a gateway of network aws, asked by name: it has another clusterset address for this service; west: directly',
    });
  });

  test('networks: a cluster comes back into the network -> its addresses are used again, and the condition says so', async () => {
    const { set, west, settle } = await threeClusters();
    const { admin } = set.broker;
    const east = await admin.get<Cluster>(clusterType, { namespace: setName, name: 'east' });
    await admin.update(clusterType, { ...east, spec: { namespace: east.spec.namespace } } as Cluster);
    await settle();
    expect((await slicesFrom(west, 'east'))[0]?.addressType).toBe('IPv4');
    expect(await reached(west)).toMatchObject({ status: 'True', message: 'all clusters are in this network' });
    expect(await reached(west, 'ReachedWithoutProxy')).toMatchObject({ status: 'True', reason: 'AllClusters' });
  });

  test('networks: status and explain at a member -> who is in which network, reached how; one network -> no such line', async () => {
    const { set, settle } = await threeClusters();
    await giveGateway(set, 'east', '203.0.113.7:15443');
    await settle();
    const desk = await openDesk(set, 'west');
    const traced = await set.time.settle(typeAt(desk, `trace ${key}`));
    expect(traced.join('\n')).not.toMatch(/0 ready, 2 at the broker/);
    const status = await set.time.settle(typeAt(desk, 'status'));
    expect(status.filter((line) => line.startsWith('network:'))).toEqual([
      'network: cluster east is in network aws, reached from other networks through 203.0.113.7:15443',
      'network: cluster north is in network default, not reached from other networks; no gateway published',
      'network: cluster west is in network default, not reached from other networks; no gateway published',
    ]);
    expect(await set.time.settle(typeAt(desk, `explain ${key}`))).toContain(
      'reached from here: east: through a gateway of network aws; north: directly; west: directly',
    );
    const { admin } = set.broker;
    const east = await admin.get<Cluster>(clusterType, { namespace: setName, name: 'east' });
    await admin.update(clusterType, { ...east, spec: { namespace: east.spec.namespace } } as Cluster);
    await settle();
    expect((await set.time.settle(typeAt(desk, 'status'))).filter((line) => line.startsWith('network:'))).toEqual([]);
  });

  test('networks: a member publishes a gateway outside the accepted ranges, or that of another member -> refused with a condition at its Cluster', async () => {
    const { set, settle } = await threeClusters();
    const accepted = async (id: string) => {
      const { status } = await set.broker.admin.get<Cluster>(clusterType, { namespace: setName, name: id });
      return conditionOf(status?.conditions, 'GatewaysAccepted');
    };
    expect(await accepted('east')).toBeUndefined();
    await giveGateway(set, 'east', '203.0.113.7:15443');
    await giveGateway(set, 'north', '203.0.113.7:15443');
    await settle();
    expect(await accepted('east')).toMatchObject({ status: 'True', reason: 'Accepted' });
    expect(await accepted('north')).toMatchObject({
      status: 'False',
      reason: 'Refused',
      message: expect.stringContaining('accepted no gateway ranges'),
    });
    await set.broker.admin.patch(
      clusterType,
      { namespace: setName, name: 'north' },
      { kind: 'merge', body: { spec: { gatewayRanges: ['203.0.0.0/16'] } } },
    );
    await settle();
    expect((await accepted('north'))?.message).toContain('it is in a gateway range of cluster east');
  });

  test('networks: a policy asks for direct connections -> no cluster of another network is used, and the condition says so; taken back -> used again', async () => {
    const { set, west, settle } = await threeClusters();
    await giveGateway(set, 'east', '203.0.113.7:15443');
    const policy = {
      ...{ apiVersion: 'portolan.dev/v1alpha1', kind: 'ServiceImportPolicy', metadata: { name: 'near' } },
      spec: { reach: 'Direct' },
    };
    await west.create(serviceImportPolicyType, policy as ServiceImportPolicy);
    await settle();
    const excluded = async () => {
      const found = await find<ServiceImport>(west, serviceImportType, key);
      return readRouting(found?.metadata.annotations?.[routingAnnotation] ?? '').excluded;
    };
    expect(await excluded()).toEqual(['east']);
    expect(await reached(west)).toMatchObject({
      status: 'True',
      message:
        'east: not used, it is in network aws: left out by ServiceImportPolicy near; north: directly; west: directly',
    });
    await west.delete(serviceImportPolicyType, { name: 'near' });
    await settle();
    expect(await excluded()).toEqual([]);
    expect((await reached(west))?.message).toContain('east: through a gateway');
  });

  test('networks: a headless service -> each endpoint of the other network has a virtual address under its name, and keeps it', async () => {
    const { set, west, settle } = await threeClusters();
    await giveGateway(set, 'east', '203.0.113.7:15443');
    const { admin } = set.home('east');
    await exportService(admin, 'shop/db', { endpoints: [`${pods}3`, `${pods}4`], spec: { clusterIP: 'None' } });
    await settle();
    const world = set.simulation.world('dns-west');
    const catalog = new Catalog({ clock: world.clock, timers: world.timers, cluster: { id: 'west' } });
    const attachment = new Attachment({ catalog, client: set.home('west').clientOf(world), world, log: silentLog });
    catalog.setNetworks(readNetworks(await west.get<ConfigMap>(configMapType, ref)));
    const asker = new Asker(catalog);
    await settle();
    const claims = async () =>
      (await west.list<AddressClaim>(addressClaimType)).items.filter(
        ({ spec }) => spec.owner.name === 'db' && spec.releasedAt === undefined,
      );
    const held = (await claims()).map(({ spec }) => spec.address).sort();
    expect(held).toHaveLength(2);
    const answer = async () => (await asker.ask('db.shop.svc.clusterset.local A')).split(', ').sort();
    expect(await answer()).toEqual(held);
    const condition = async () =>
      conditionOf(
        (await find<ServiceImport>(west, serviceImportType, 'shop/db'))?.status?.conditions,
        'ClustersReached',
      );
    expect(await condition()).toMatchObject({ status: 'False', message: expect.stringContaining('no portolan proxy') });
    await west.create(leaseType, proxyLease(set.time, 3600));
    await settle();
    expect(await condition()).toMatchObject({ status: 'True', message: 'east: through a gateway of network aws' });
    const [slice] = (await west.list<EndpointSlice>(endpointSliceType, { namespace: 'shop' })).items.filter(
      ({ metadata: { labels } }) => labels?.['multicluster.kubernetes.io/service-name'] === 'db',
    );
    expect(JSON.stringify(slice)).not.toContain(pods);
    // One is replaced: the other keeps its address.
    const own = (await admin.list<EndpointSlice>(endpointSliceType, { namespace: 'shop' })).items.find(
      ({ metadata: { labels } }) => labels?.['kubernetes.io/service-name'] === 'db',
    )!;
    const kept = slice!.endpoints!.find(({ hostname }) => hostname === endpointLabel({ addresses: [`${pods}4`] }))!;
    const change = (endpoints: EndpointSlice['endpoints']) =>
      admin.patch(endpointSliceType, own.metadata, { kind: 'merge', body: { endpoints } });
    await change([{ addresses: [`${pods}4`] }, { addresses: [`${pods}5`] }]);
    await settle();
    expect(await answer()).toContain(kept.addresses![0]);
    expect(await claims()).toHaveLength(2);
    // More than are carried.
    await change(Array.from({ length: 103 }, (_, at) => ({ addresses: [`${pods}${at + 1}`], hostname: `db-${at}` })));
    await settle();
    expect(await condition()).toMatchObject({
      status: 'False',
      message: expect.stringContaining('3 ready endpoints are not reached'),
    });
    expect(await claims()).toHaveLength(100);
    await admin.delete(serviceExportType, { namespace: 'shop', name: 'db' });
    await settle();
    expect(await claims()).toEqual([]);
    attachment.stop();
  });

  test('networks: a headless service where addresses are not allocated -> the condition says how many endpoints are not carried', async () => {
    const { set, west, settle } = await threeClusters({ clusterSetIP: 'derived' });
    await giveGateway(set, 'east', '203.0.113.7:15443');
    const { admin } = set.home('east');
    await exportService(admin, 'shop/db', { endpoints: [`${pods}3`, `${pods}4`], spec: { clusterIP: 'None' } });
    await settle();
    const db = await find<ServiceImport>(west, serviceImportType, 'shop/db');
    expect(conditionOf(db?.status?.conditions, 'ClustersReached')).toMatchObject({
      status: 'False',
      message: expect.stringContaining('2 ready endpoints are not reached'),
    });
  });

  test('networks: a service with a UDP port -> the condition says that it is not carried', async () => {
    const { set, west, settle } = await threeClusters();
    await giveGateway(set, 'east', '203.0.113.7:15443');
    const ports = [{ name: 'dns', port: 53, protocol: 'UDP' as const }];
    await exportService(set.home('east').admin, 'shop/dns', { endpoints: [`${pods}5`], spec: { ports }, ports });
    await settle();
    const dns = await find<ServiceImport>(west, serviceImportType, 'shop/dns');
    expect(conditionOf(dns?.status?.conditions, 'ClustersReached')).toMatchObject({
      status: 'False',
      message: expect.stringContaining('UDP port 53 is not carried between networks, unless'),
    });
  });

  test('networks: a policy wants UDP carried -> two imports have ports of their own, kept by another agent; withdrawn, none', async () => {
    const { set, west, settle } = await threeClusters();
    await giveGateway(set, 'east', '203.0.113.7:15443');
    const ports = [{ name: 'dns', port: 53, protocol: 'UDP' as const }];
    for (const name of ['dns', 'ntp'])
      await exportService(set.home('east').admin, `shop/${name}`, { endpoints: [`${pods}5`], spec: { ports }, ports });
    const metadata = { name: 'udp' };
    const policy = { apiVersion: 'portolan.dev/v1alpha1', kind: 'ServiceImportPolicy', metadata, spec: { udp: 'Any' } };
    await west.create<ServiceImportPolicy>(serviceImportPolicyType, policy as ServiceImportPolicy);
    await settle();
    const waysOf = async (name: string) => {
      const found = await find<ServiceImport>(west, serviceImportType, `shop/${name}`);
      const { status } = conditionOf(found?.status?.conditions, 'ClustersReached')!;
      return { status, udp: readRouting(found?.metadata.annotations?.[routingAnnotation] ?? '').udp };
    };
    const [dns, ntp] = [await waysOf('dns'), await waysOf('ntp')];
    expect([dns.status, dns.udp?.length, ntp.udp?.[0]?.cluster]).toEqual(['True', 1, 'east']);
    expect(dns.udp![0]!.listenerPort).not.toBe(ntp.udp![0]!.listenerPort);
    set.killAgent('west');
    set.startAgent('west');
    await settle();
    expect([await waysOf('dns'), await waysOf('ntp')]).toEqual([dns, ntp]);
    await west.delete(serviceImportPolicyType, metadata);
    await settle();
    expect(await waysOf('dns')).toEqual({ status: 'False', udp: undefined });
  });

  test('networks: one network for all -> no condition about ways', async () => {
    const set = await new SimClusterSet({ clusters: ['east', 'west'] }).start({ namespaces: ['shop'] });
    await exportService(set.home('east').admin, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(4_000);
    expect(await reached(set.home('west').admin)).toBeUndefined();
  });
});

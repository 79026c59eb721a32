// A member that lies at the broker, within its rights: about its age, about what it may export, in the merged view.

import { describe, expect, test } from 'vitest';
import { type Cluster, clusterType } from '../../src/clusterset/kinds/cluster.ts';
import { endpointShardType } from '../../src/clusterset/kinds/endpoint-shard.ts';
import { heartbeatType } from '../../src/clusterset/kinds/heartbeat.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { type ServiceShard, serviceShardType } from '../../src/clusterset/kinds/service-shard.ts';
import { memberRecord } from '../../src/clusterset/membership/member-record.ts';
import type { Client } from '../../src/kube/client/client.ts';
import type { EndpointSlice } from '../../src/kube/objects/endpoint-slice.ts';
import { type Service, serviceType } from '../../src/kube/objects/service.ts';
import { createNamespace, memberNamespace, SimClusterSet, setName } from '../clusterset.ts';
import { conditionMessage, eventLines, exportLine, find, importLine, sliceLines } from '../look.ts';
import { exportService, serviceExport } from '../manifests.ts';

const key = 'shop/checkout';
const ourLabel = { 'app.kubernetes.io/managed-by': 'portolan' };

/** With the rights of that member, over the network. */
async function as<T>(set: SimClusterSet, id: string, act: (client: Client) => Promise<T>): Promise<T> {
  return set.time.settle(act(set.memberClient(id)));
}

async function lie(set: SimClusterSet, id: string, exportedAt: string, more: object = {}): Promise<void> {
  await as(set, id, (client) =>
    client.create(serviceShardType, {
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'ServiceShard',
      metadata: { namespace: memberNamespace(id), name: 'checkout.shop' },
      spec: { type: 'Headless', exportedAt, ports: [{ name: 'evil', port: 666, protocol: 'TCP' }], ...more },
    }),
  );
}

async function change(client: Client, id: string, spec: Partial<Cluster['spec']>): Promise<void> {
  const present = await client.get<Cluster>(clusterType, { namespace: setName, name: id });
  await client.update(clusterType, { ...present, spec: { ...present.spec, ...spec } } as Cluster);
}

describe('a lying member', () => {
  test('age: a record that claims 1970 -> comes after those that the broker stored before it', async () => {
    const set = await new SimClusterSet({ clusters: ['east', 'mallory'] }).start({
      namespaces: ['shop'],
      agents: ['east'],
    });
    const east = set.home('east').admin;
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(4_000);
    await lie(set, 'mallory', '1970-01-01T00:00:00Z');
    await set.time.advance(4_000);
    expect(await importLine(east, key)).toBe('ClusterSetIP http:80/TCP from east');
    expect(await exportLine(east, key)).toContain('Ready=True/Exported');
  });

  test('age: agents restart -> the same cluster decides', async () => {
    const set = await new SimClusterSet({ clusters: ['east', 'west'] }).start({ namespaces: ['shop'] });
    const [east, west] = [set.home('east').admin, set.home('west').admin];
    // The one that is second by id came first.
    await exportService(west, key, { endpoints: ['10.2.0.1'], spec: { sessionAffinity: 'ClientIP' } });
    await set.time.advance(4_000);
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(4_000);
    for (const id of ['east', 'west']) set.killAgent(id);
    for (const id of ['east', 'west']) set.startAgent(id);
    await set.time.advance(20_000);
    for (const home of [east, west]) {
      expect((await find<ServiceImport>(home, serviceImportType, key))?.spec.sessionAffinity).toBe('ClientIP');
    }
  });

  for (const [seed, restarts] of [1, 2, 3, 4].flatMap((seed) => [[seed, false] as const, [seed, true] as const])) {
    const agents = restarts ? ', all agents killed and started meanwhile' : '';
    test(`age: the broker loses the records of three clusters${agents}, seed ${seed} -> made again in their old order, the same one decides`, async () => {
      const clusters = ['east', 'north', 'west'];
      const set = await new SimClusterSet({ clusters, seed }).start({ namespaces: ['shop'] });
      await set.time.advance(23_000);
      const copy = set.broker.backup();
      for (const [at, id] of ['west', 'north', 'east'].entries()) {
        const spec = { sessionAffinityConfig: { clientIP: { timeoutSeconds: 100 + at } } };
        await exportService(set.home(id).admin, key, {
          endpoints: [`10.${at}.0.1`],
          spec: { sessionAffinity: 'ClientIP', ...spec },
        });
        await set.time.advance(4_000);
      }
      if (restarts) for (const id of clusters) set.killAgent(id);
      await set.broker.restore(copy);
      if (restarts) for (const id of clusters) set.startAgent(id);
      await set.time.advance(90_000);
      const records = await Promise.all(
        ['west', 'north', 'east'].map((id) =>
          find<ServiceShard>(set.broker.admin, serviceShardType, `${memberNamespace(id)}/checkout.shop`),
        ),
      );
      const stored = records.map((record) => Date.parse(record!.metadata.creationTimestamp!));
      expect(stored).toEqual([...new Set(stored)].sort((a, b) => a - b));
      for (const id of clusters) {
        const found = await find<ServiceImport>(set.home(id).admin, serviceImportType, key);
        expect(found?.spec.sessionAffinityConfig?.clientIP?.timeoutSeconds).toBe(100);
        expect(found?.status?.clusters).toHaveLength(3);
      }
    });
  }

  test('endpoints: metadata services, loopback, our own virtual addresses, ranges of others -> nobody imports them', async () => {
    const set = await new SimClusterSet({
      clusters: ['east', 'mallory'],
      member: (id) => (id === 'mallory' ? { allowedRanges: ['10.2.0.0/16', '0.0.0.0/1'] } : {}),
    }).start({ namespaces: ['shop'], agents: ['east'] });
    await lie(set, 'mallory', '2026-01-01T00:00:00Z');
    // Addresses that the broker itself accepts, as Kubernetes would.
    const bad = ['100.100.100.200', '168.63.129.16', '127.0.0.1', '243.0.0.7', '192.168.7.7'];
    await as(set, 'mallory', (client) =>
      client.create(endpointShardType, {
        apiVersion: 'portolan.dev/v1alpha1',
        kind: 'EndpointShard',
        metadata: {
          namespace: memberNamespace('mallory'),
          name: 'checkout-1',
          labels: {
            'multicluster.kubernetes.io/service-name': 'checkout',
            'portolan.dev/service-namespace': 'shop',
            'endpointslice.kubernetes.io/managed-by': 'portolan.dev',
          },
        },
        addressType: 'IPv4',
        endpoints: [...bad, '10.2.0.1'].map((address) => ({ addresses: [address] })),
        ports: [{ name: 'evil', port: 666, protocol: 'TCP' }],
      } as EndpointSlice),
    );
    await set.time.advance(4_000);
    expect(await sliceLines(set.home('east').admin, key)).toEqual(['mallory: 10.2.0.1 on evil>666']);
  });

  test('endpoints: in the ranges that the reader joined with, or at its API server -> it imports none of them, whatever the admin allows', async () => {
    const set = new SimClusterSet({
      clusters: ['east', 'west', 'mallory'],
      member: (id) => (id === 'mallory' ? { allowedRanges: ['10.0.0.0/8'] } : {}),
    });
    await set.start({ namespaces: ['shop'], agents: [] });
    const joined = { homeUid: 'u', joinedAt: '', region: '', zone: '', podRanges: ['10.1.0.0/16'] };
    const record = memberRecord(memberNamespace('east'), { ...joined, serviceRanges: ['10.96.0.0/16'] });
    await set.broker.admin.create(record.type, record.object);
    for (const id of ['east', 'west']) {
      const home = set.home(id).admin;
      if ((await find(home, serviceType, 'default/kubernetes')) === undefined)
        await home.create(serviceType, {
          apiVersion: 'v1',
          kind: 'Service',
          metadata: { namespace: 'default', name: 'kubernetes' },
          spec: { ports: [{ port: 443 }] },
        } as Service);
      set.startAgent(id);
    }
    const api = (await find<Service>(set.home('west').admin, serviceType, 'default/kubernetes'))?.spec?.clusterIP ?? '';
    await lie(set, 'mallory', '2026-01-01T00:00:00Z', { endpointShards: 1 });
    const addresses = ['10.1.0.5', '10.96.0.1', '10.96.7.7', api, '10.6.0.1'];
    await as(set, 'mallory', (client) =>
      client.create(endpointShardType, {
        apiVersion: 'portolan.dev/v1alpha1',
        kind: 'EndpointShard',
        metadata: {
          namespace: memberNamespace('mallory'),
          name: 'checkout-1',
          labels: {
            'multicluster.kubernetes.io/service-name': 'checkout',
            'portolan.dev/service-namespace': 'shop',
            'endpointslice.kubernetes.io/managed-by': 'portolan.dev',
          },
        },
        addressType: 'IPv4',
        endpoints: [...new Set(addresses)].map((address) => ({ addresses: [address] })),
        ports: [{ name: 'evil', port: 666, protocol: 'TCP' }],
      } as unknown as EndpointSlice),
    );
    await set.time.advance(6_000);
    expect(await sliceLines(set.home('east').admin, key)).toEqual([`mallory: ${api} 10.6.0.1 on evil>666`]);
    const [west] = await sliceLines(set.home('west').admin, key);
    expect(west).toContain('10.6.0.1');
    expect(west?.split(' ')).not.toContain(api);
  });

  // A kind of our own: the broker checks its shape and none of its addresses.
  test('endpoints in a shard: the same, link-local and mapped ones, other families, nonsense and nothing -> nobody imports them', async () => {
    const set = await new SimClusterSet({
      clusters: ['east', 'mallory'],
      member: (id) => (id === 'mallory' ? { allowedRanges: ['10.2.0.0/16', '0.0.0.0/1'] } : {}),
    }).start({ namespaces: ['shop'], agents: ['east'] });
    await lie(set, 'mallory', '2026-01-01T00:00:00Z', { endpointShards: 20 });
    const bad = ['169.254.169.254', '127.0.0.1', '0.0.0.0', '243.0.0.7', '192.168.7.7'];
    const worse = [
      '::ffff:169.254.169.254',
      '::ffff:10.2.0.9',
      'fe80::1',
      '::1',
      '10.2.0.300',
      'metadata.internal',
      '',
    ];
    const shard = (name: string, endpoints: unknown) => ({
      ...{ apiVersion: 'portolan.dev/v1alpha1', kind: 'EndpointShard', addressType: 'IPv4', endpoints },
      metadata: {
        namespace: memberNamespace('mallory'),
        name,
        labels: {
          'multicluster.kubernetes.io/service-name': 'checkout',
          'portolan.dev/service-namespace': 'shop',
          'endpointslice.kubernetes.io/managed-by': 'portolan.dev',
        },
      },
      ports: [{ name: 'evil', port: 666, protocol: 'TCP' }],
    });
    const withAddresses = (...list: string[]) => list.map((address) => ({ addresses: [address], conditions: {} }));
    const lists = [
      withAddresses(...bad, '10.2.0.1'),
      null,
      [],
      [null],
      [{}],
      ...worse.map((one) => withAddresses(one)),
    ];
    const made: number[] = [];
    for (const [at, endpoints] of lists.entries())
      await as(set, 'mallory', (client) =>
        client.create(endpointShardType, shard(`checkout-${at}`, endpoints) as never).then(
          () => void made.push(at),
          () => undefined,
        ),
      );
    expect(made).toContain(0);
    await set.time.advance(4_000);
    const isEmpty = (line: string) => line === 'mallory:  on evil>666';
    const lines = await sliceLines(set.home('east').admin, key);
    expect(lines.filter((line) => !isEmpty(line))).toEqual(['mallory: 10.2.0.1 on evil>666']);
  });

  test('may export: a namespace that the admin has not given it -> nobody imports it, its export says so; given -> imported', async () => {
    const set = await new SimClusterSet({
      clusters: ['east', 'west'],
      member: (id) => (id === 'east' ? { mayExport: ['team-*'] } : {}),
    }).start({ namespaces: ['shop'] });
    const [east, west] = [set.home('east').admin, set.home('west').admin];
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(4_000);
    expect(await importLine(west, key)).toBe('none');
    expect(await exportLine(east, key)).toBe('Valid=True/Valid Ready=False/Refused Conflict=False/NoConflicts');
    expect(await conditionMessage(east, key, 'Ready')).toContain('does not let cluster east export shop/checkout');
    expect(await eventLines(east, key)).toContain('Warning Refused');
    await change(set.broker.admin, 'east', { mayExport: ['team-*', 'shop'] });
    await set.time.advance(4_000);
    expect(await importLine(west, key)).toBe('ClusterSetIP http:80/TCP from east');
    await change(set.broker.admin, 'east', { mayExport: [] });
    await set.time.advance(4_000);
    expect(await importLine(west, key)).toBe('none');
  });

  test('may export: a member that writes its record all the same -> no reader counts it', async () => {
    const set = await new SimClusterSet({
      clusters: ['east', 'mallory'],
      member: (id) => (id === 'mallory' ? { mayExport: [] } : {}),
    }).start({ namespaces: ['shop'], agents: ['east'] });
    await lie(set, 'mallory', '2026-01-01T00:00:00Z');
    await set.time.advance(4_000);
    const east = set.home('east').admin;
    expect(await importLine(east, key)).toBe('none');
    expect(await find(set.broker.admin, serviceImportType, `${setName}/checkout.shop`)).toBeUndefined();
  });

  test.each([
    ['kube-system/kube-dns', 'kube-system'],
    ['default/kubernetes', 'default/kubernetes'],
  ])(
    'may export: %s without a word of the admin -> no reader counts it, the export says so; named -> imported',
    async (system, pattern) => {
      const set = await new SimClusterSet({ clusters: ['east', 'west'] }).start();
      const [east, west] = [set.home('east').admin, set.home('west').admin];
      const [namespace = '', name = ''] = system.split('/');
      await createNamespace(set.home('east'), namespace).catch(() => {});
      await createNamespace(set.home('west'), namespace).catch(() => {});
      const isThere = (await find(east, serviceType, system)) !== undefined;
      if (isThere) await east.create(serviceExportType, serviceExport(system));
      else await exportService(east, system, { endpoints: ['10.1.0.1'] });
      await set.time.advance(4_000);
      expect(await importLine(west, system)).toBe('none');
      expect(await exportLine(east, system)).toContain('Ready=False/Refused');
      expect(await conditionMessage(east, system, 'Ready')).toContain('belongs to the system of its cluster');
      // Its own agent is not the one that keeps it out.
      await as(set, 'east', (client) =>
        client.create(serviceShardType, {
          apiVersion: 'portolan.dev/v1alpha1',
          kind: 'ServiceShard',
          metadata: { namespace: memberNamespace('east'), name: `${name}.${namespace}` },
          spec: {
            type: 'ClusterSetIP',
            exportedAt: '2026-01-01T00:00:00Z',
            ports: [{ name: 'x', port: 1, protocol: 'TCP' }],
          },
        }),
      );
      await set.time.advance(2_000);
      expect(await importLine(west, system)).toBe('none');
      await change(set.broker.admin, 'east', { mayExport: [pattern] });
      await set.time.advance(6_000);
      expect(await importLine(west, system)).toContain('from east');
    },
  );

  const invented = (name: string, labels: Record<string, string> = {}): ServiceImport => ({
    apiVersion: 'multicluster.x-k8s.io/v1beta1',
    kind: 'ServiceImport',
    metadata: { namespace: setName, name, labels },
    spec: { type: 'ClusterSetIP', ports: [{ port: 666, protocol: 'TCP' }] },
  });

  test('merged view: invented entries, of services and of none, with our label or without -> removed at once', async () => {
    const set = await new SimClusterSet({ clusters: ['east', 'west'] }).start({ namespaces: ['shop'] });
    await exportService(set.home('east').admin, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(4_000);
    for (const view of [invented('ghost.shop'), invented('ghost2.shop', ourLabel), invented('no-service')]) {
      await as(set, 'west', (client) => client.create(serviceImportType, view));
    }
    await set.time.advance(4_000);
    const { items } = await set.broker.admin.list<ServiceImport>(serviceImportType, { namespace: setName });
    expect(items.map(({ metadata }) => metadata.name)).toEqual(['checkout.shop']);
    expect(await sliceLines(set.home('west').admin, key)).toEqual(['east: 10.1.0.1 on http>8080']);
  });

  test('merged view: the one whose turn it is does nothing -> the next living member puts it right within a minute', async () => {
    const set = await new SimClusterSet({ clusters: ['aaa', 'east', 'west'] }).start({
      namespaces: ['shop'],
      agents: ['east', 'west'],
    });
    const metadata = { namespace: memberNamespace('aaa'), name: 'portolan-agent' };
    const heartbeat = { apiVersion: 'portolan.dev/v1alpha1', kind: 'Heartbeat', metadata };
    await as(set, 'aaa', (client) => client.create(heartbeatType, heartbeat));
    await set.time.advance(4_000);
    await as(set, 'aaa', (client) => client.create(serviceImportType, invented('ghost.shop')));
    for (let turn = 0; turn < 6; turn += 1) {
      const body = { spec: { leaseDurationSeconds: 30 + turn } };
      await as(set, 'aaa', (client) => client.patch(heartbeatType, metadata, { kind: 'merge', body }));
      await set.time.advance(10_000);
    }
    expect(await find(set.broker.admin, serviceImportType, `${setName}/ghost.shop`)).toBeUndefined();
  });
});

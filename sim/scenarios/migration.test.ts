import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { planLegacyImport } from '../../src/clusterset/rules/legacy-import.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { type EndpointSlice, endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import type { KubernetesObject } from '../../src/kube/objects/object.ts';
import { type Service, serviceType } from '../../src/kube/objects/service.ts';
import { createNamespace, legacyNamespace, SimClusterSet, setName } from '../clusterset.ts';
import { find, importLine, sliceLines } from '../look.ts';
import { exportService, service, serviceExport, slice } from '../manifests.ts';

const key = 'shop/checkout';
const ref = { namespace: 'shop', name: 'checkout' };

// north has the older form: its agent of then wrote this to the broker and knows nothing of shards.
async function northIsOld(options: { latencyMs?: { min: number; max: number } } = {}) {
  const set = new SimClusterSet({ clusters: ['east', 'west', 'north'], set: { legacyNamespace }, ...options });
  await set.start({ namespaces: ['shop'], members: ['east', 'west'] });
  await createNamespace(set.broker, legacyNamespace);
  const north = set.home('north').admin;
  const made = await north.create<Service>(serviceType, service(key));
  await north.create(endpointSliceType, slice(key, { endpoints: ['10.3.0.1'] }));
  await set.broker.admin.create(serviceImportType, planLegacyImport(made, 'north', legacyNamespace));
  await set.time.advance(4_000);
  const [east, west] = ['east', 'west'].map((id) => set.home(id).admin) as [Client, Client];
  return { set, east, west, north, address: made.spec!.clusterIP! };
}

async function olderNames(set: SimClusterSet): Promise<string[]> {
  const { items } = await set.broker.admin.list(serviceImportType, { namespace: legacyNamespace });
  return items.map(({ metadata }) => metadata.name).sort();
}

/**
 * Records of other software at a broker: labels, annotations and fields that ours never writes, and some that are
 * missing.
 */
const foreignRecords = [
  `apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata:
  name: web-shop-north
  annotations: { cluster-ip: 100.92.4.11, origin-name: web, origin-namespace: shop }
  labels:
    lighthouse.submariner.io/sourceCluster: north
    lighthouse.submariner.io/sourceName: web
    lighthouse.submariner.io/sourceNamespace: shop
    submariner-io/clusterID: north
    submariner-io/originatingNamespace: submariner-operator
spec:
  ips: [100.92.4.11]
  ports: [{ name: http, port: 8080, protocol: TCP }]
  sessionAffinityConfig: {}
  type: ClusterSetIP
status:
  clusters: [{ cluster: north }]`,
  `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: web-north
  labels:
    endpointslice.kubernetes.io/managed-by: lighthouse-agent.submariner.io
    lighthouse.submariner.io/sourceNamespace: shop
    multicluster.kubernetes.io/service-name: web
    multicluster.kubernetes.io/source-cluster: north
    submariner-io/clusterID: north
addressType: IPv4
endpoints:
  - addresses: [11.16.0.12]
    conditions: { ready: true }
    deprecatedTopology: { kubernetes.io/hostname: node-1 }
    hostname: web-db695794b-6jh7d
ports: [{ name: http, port: 8080, protocol: TCP }]`,
  // The first generation said no ports, and nothing in its status.
  `apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata:
  name: old-shop-north
  annotations: { cluster-ip: 100.92.4.12, origin-name: old, origin-namespace: shop }
  labels:
    lighthouse.submariner.io/sourceCluster: north
    lighthouse.submariner.io/sourceName: old
    lighthouse.submariner.io/sourceNamespace: shop
    submariner-io/clusterID: north
spec:
  ips: [100.92.4.12]
  type: ClusterSetIP`,
  `apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata:
  name: db-shop-north
  annotations: { origin-name: db, origin-namespace: shop }
  labels:
    lighthouse.submariner.io/sourceCluster: north
    lighthouse.submariner.io/sourceName: db
    lighthouse.submariner.io/sourceNamespace: shop
spec:
  ports: [{ name: sql, port: 5432, protocol: TCP }]
  type: Headless`,
  // Its slices had the name of the import where later ones have that of the service.
  `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: db-north
  labels:
    endpointslice.kubernetes.io/managed-by: lighthouse-agent.submariner.io
    lighthouse.submariner.io/sourceCluster: north
    lighthouse.submariner.io/sourceName: db
    lighthouse.submariner.io/sourceNamespace: shop
    multicluster.kubernetes.io/service-name: db-shop-north
addressType: IPv4
endpoints:
  - addresses: [10.242.0.5]
    conditions: { ready: true }
    hostname: db-0
  - addresses: [10.242.0.6]
    conditions: { ready: false }
    hostname: db-1
ports: [{ name: sql, port: 5432, protocol: TCP }]`,
];

describe('migration', () => {
  test('migration: a cluster of the older form -> imported by its service address, merged with the others [003-05]', async () => {
    const { set, east, west, address } = await northIsOld();
    expect(await importLine(east, key)).toBe('ClusterSetIP http:80/TCP from north');
    expect(await sliceLines(west, key)).toEqual([`north: ${address} on http>80`]);
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(4_000);
    expect(await importLine(west, key)).toBe('ClusterSetIP http:80/TCP from east,north');
    expect(await sliceLines(west, key)).toEqual(['east: 10.1.0.1 on http>8080', `north: ${address} on http>80`]);
  });

  test('migration: while one is old -> the new ones publish their older form too, and the view names only new ones [002-34]', async () => {
    const { set, east } = await northIsOld();
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(4_000);
    expect(await olderNames(set)).toEqual(['checkout-shop-east', 'checkout-shop-north']);
    const older = await find<ServiceImport>(
      set.broker.admin,
      serviceImportType,
      `${legacyNamespace}/checkout-shop-east`,
    );
    expect(older?.spec.ips).toEqual([(await find<Service>(east, serviceType, key))?.spec?.clusterIP]);
    const view = await find<ServiceImport>(set.broker.admin, serviceImportType, `${setName}/checkout.shop`);
    expect(view?.status?.clusters).toEqual([{ cluster: 'east' }]);
    await east.delete(serviceExportType, ref);
    await set.time.advance(4_000);
    expect(await olderNames(set)).toEqual(['checkout-shop-north']);
  });

  test('migration: the old one is upgraded under continuous reading -> no service is ever missing, the older form goes [002-35]', async () => {
    // Slow links, so that the first shard is seen long before the last one.
    const { set, east, west, north } = await northIsOld({ latencyMs: { min: 50, max: 150 } });
    const keys = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((name) => `shop/${name}`);
    for (const one of keys) {
      const made = await north.create<Service>(serviceType, service(one));
      await north.create(endpointSliceType, slice(one, { endpoints: ['10.3.0.1'] }));
      await set.broker.admin.create(serviceImportType, planLegacyImport(made, 'north', legacyNamespace));
    }
    await exportService(east, 'shop/cart', { endpoints: ['10.1.0.2'] });
    await set.time.advance(10_000);
    // Objects that the older agent had copied into its own home.
    await createNamespace(set.home('north'), 'submariner');
    const cart = (await find<Service>(east, serviceType, 'shop/cart'))!;
    await north.create(serviceImportType, planLegacyImport(cart, 'east', 'submariner'));
    for (const one of [key, ...keys]) await north.create(serviceExportType, serviceExport(one));
    await set.join('north');
    set.startAgent('north');
    for (let step = 0; step < 200; step += 1) {
      await set.time.advance(50);
      for (const one of keys) {
        const lines = (await sliceLines(west, one)).filter((line) => /^north: \d/.test(line));
        expect(lines.length, `${one} after ${step * 50} ms`).toBeGreaterThan(0);
      }
    }
    await set.time.advance(60_000);
    for (const one of [key, ...keys]) expect(await sliceLines(west, one)).toEqual(['north: 10.3.0.1 on http>8080']);
    expect(await olderNames(set)).toEqual([]);
    expect(await importLine(north, 'submariner/cart-shop-east')).toBe('none');
  });

  test('migration: three old clusters upgraded one by one -> no reader of either form ever misses a service', async () => {
    const ids = ['east', 'west', 'north'];
    const set = new SimClusterSet({ clusters: ids, set: { legacyNamespace }, latencyMs: { min: 20, max: 80 } });
    await set.start({ namespaces: ['shop'], members: [] });
    await createNamespace(set.broker, legacyNamespace);
    // Each has a service of its own, and all have one in common.
    const exported = ids.flatMap((id) => [`shop/only-${id}`, 'shop/common'].map((one) => [id, one] as const));
    for (const [index, [id, one]] of exported.entries()) {
      const { admin } = set.home(id);
      const made = await admin.create<Service>(serviceType, service(one));
      await admin.create(endpointSliceType, slice(one, { endpoints: [`10.${index}.0.1`] }));
      await set.broker.admin.create(serviceImportType, planLegacyImport(made, id, legacyNamespace));
    }
    const olderForm = exported.map(([id, one]) => `${one.slice('shop/'.length)}-shop-${id}`).sort();
    const upgraded: string[] = [];
    const expectComplete = async (when: string) => {
      for (const reader of upgraded) {
        for (const [id, one] of exported) {
          const lines = (await sliceLines(set.home(reader).admin, one)).filter((line) => line.startsWith(`${id}: 1`));
          expect(lines.length, `${one} of ${id} in ${reader} ${when}`).toBeGreaterThan(0);
        }
      }
      if (upgraded.length < ids.length) expect(await olderNames(set), `older form ${when}`).toEqual(olderForm);
    };
    for (const id of ids) {
      for (const [owner, one] of exported)
        if (owner === id) await set.home(id).admin.create(serviceExportType, serviceExport(one));
      await set.join(id);
      set.startAgent(id);
      for (let step = 0; step < 100; step += 1) {
        await set.time.advance(100);
        await expectComplete(`${step * 100} ms into the upgrade of ${id}`);
      }
      upgraded.push(id);
      await expectComplete(`after the upgrade of ${id}`);
    }
    for (let second = 0; second < 60; second += 1) {
      await set.time.advance(1_000);
      await expectComplete(`${second} s after the last`);
    }
    expect(await olderNames(set)).toEqual([]);
    expect(await importLine(set.home('west').admin, 'shop/common')).toBe(
      'ClusterSetIP http:80/TCP from east,north,west',
    );
  });

  test('migration: a cluster with records of today -> what it left in the older form does not count', async () => {
    const { set, east, west } = await northIsOld();
    await exportService(east, 'shop/cart', { endpoints: ['10.1.0.2'] });
    await set.time.advance(40_000);
    const lie = planLegacyImport(service(key, { clusterIPs: ['10.66.0.1'] }), 'east', legacyNamespace);
    await set.broker.admin.create(serviceImportType, lie);
    await set.time.advance(4_000);
    expect(await importLine(west, key)).toBe('ClusterSetIP http:80/TCP from north');
  });

  test('migration: an old service without ready pods -> nobody is sent there [002-33]', async () => {
    const { set, west } = await northIsOld();
    const health: EndpointSlice = {
      ...slice(key, { endpoints: ['!10.3.0.1'] }),
      metadata: {
        name: 'checkout-north',
        namespace: legacyNamespace,
        labels: {
          'multicluster.kubernetes.io/service-name': 'checkout',
          'multicluster.kubernetes.io/source-cluster': 'north',
          'lighthouse.submariner.io/sourceNamespace': 'shop',
        },
      },
    };
    await set.broker.admin.create(endpointSliceType, health);
    await set.time.advance(4_000);
    expect(await sliceLines(west, key)).toEqual(['north:  on http>80']);
  });

  test('migration: records as other agents wrote them, of two generations and nothing of ours -> read as what they are [002-36]', async () => {
    const set = new SimClusterSet({ clusters: ['east'], set: { legacyNamespace } });
    await set.start({ namespaces: ['shop'] });
    await createNamespace(set.broker, legacyNamespace);
    for (const text of foreignRecords) {
      const object = parse(text) as KubernetesObject;
      const type = object.kind === 'EndpointSlice' ? endpointSliceType : serviceImportType;
      object.metadata.namespace = legacyNamespace;
      await set.broker.admin.create(type, object);
    }
    await set.time.advance(4_000);
    const east = set.home('east').admin;
    expect(await importLine(east, 'shop/web')).toBe('ClusterSetIP http:8080/TCP from north');
    expect(await sliceLines(east, 'shop/web')).toEqual(['north: 100.92.4.11 on http>8080']);
    expect(await importLine(east, 'shop/old')).toBe('ClusterSetIP  from north');
    expect(await sliceLines(east, 'shop/old')).toEqual(['north: 100.92.4.12 on ']);
    expect(await importLine(east, 'shop/db')).toBe('Headless sql:5432/TCP from north');
    expect(await sliceLines(east, 'shop/db')).toEqual(['north: 10.242.0.5 10.242.0.6! on sql>5432']);
    const { items } = await east.list<EndpointSlice>(endpointSliceType, { namespace: 'shop' });
    expect(items.flatMap(({ endpoints }) => endpoints.map(({ hostname }) => hostname)).filter(Boolean)).toEqual([
      'db-0',
      'db-1',
    ]);
  });

  test('migration: the ClusterSet names no namespace -> records of the older form are not read [002-37]', async () => {
    const set = new SimClusterSet({ clusters: ['east'] });
    await set.start({ namespaces: ['shop'] });
    await createNamespace(set.broker, legacyNamespace);
    await set.broker.admin.create(
      serviceImportType,
      planLegacyImport(service(key, { clusterIPs: ['10.9.0.1'] }), 'north', legacyNamespace),
    );
    await set.time.advance(4_000);
    expect(await importLine(set.home('east').admin, key)).toBe('none');
  });
});

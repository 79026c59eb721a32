// Transparent names: the cluster's own name of a service leads to the clusterset, where its cluster wants that and nothing is lost by it.

import { describe, expect, test } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { Attachment } from '../../src/catalog/attach.ts';
import { Catalog } from '../../src/catalog/catalog.ts';
import { clusterType } from '../../src/clusterset/kinds/cluster.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import {
  type ServiceImportPolicy,
  type ServiceImportPolicySpec,
  serviceImportPolicyType,
} from '../../src/clusterset/kinds/service-import-policy.ts';
import { Asker } from '../../src/dns/testing/ask.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { keepPartLease } from '../../src/kube/controller/part-lease.ts';
import { type EndpointSlice, endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { type Service, serviceType } from '../../src/kube/objects/service.ts';
import { createNamespace, SimClusterSet, setName } from '../clusterset.ts';
import { find } from '../look.ts';
import { service, serviceExport, slice } from '../manifests.ts';

const key = 'shop/checkout';
const name = 'checkout.shop.svc.cluster.local A';

function policy(spec: ServiceImportPolicySpec, metadata = { name: 'moving' }): ServiceImportPolicy {
  return { apiVersion: 'portolan.dev/v1alpha1', kind: 'ServiceImportPolicy', metadata, spec };
}

const transparent = policy({ namespaces: ['shop'], services: ['checkout'], importAs: 'Transparent' });

/** Both have a node proxy and a resolver. Homes are embedded unless cluster IPs are routed there. */
async function twoClusters({ routesServices = false } = {}) {
  const clusters = ['east', 'west'];
  const set = await new SimClusterSet({ clusters, embedded: routesServices ? [] : clusters }).start({
    namespaces: ['shop'],
  });
  const askers = new Map<string, Asker>();
  for (const id of clusters) {
    for (const more of ['kube-system', 'portolan-system']) await createNamespace(set.home(id), more).catch(() => {});
    const world = set.simulation.world(`node-${id}`);
    const client = set.home(id).clientOf(world);
    keepPartLease({ client, world, log: silentLog, part: 'proxy', id: 'node-1' });
    const catalog = new Catalog({ clock: world.clock, timers: world.timers, cluster: { id } });
    new Attachment({ catalog, client, world, log: silentLog });
    askers.set(id, new Asker(catalog));
  }
  const ask = (id: string, question: string) => askers.get(id)!.ask(question);
  const [east, west] = [set.home('east').admin, set.home('west').admin];
  const settle = () => set.time.advance(3_000);
  const put = async (client: Client, address: string, what = key) => {
    await client.create(serviceType, service(what));
    await client.create(endpointSliceType, slice(what, { endpoints: [address] }));
  };
  await settle();
  return { set, east, west, settle, put, ask };
}

async function condition(client: Client, type = 'Transparent'): Promise<string> {
  const found = (await find(client, serviceImportPolicyType, '/moving')) as ServiceImportPolicy;
  const one = (found.status?.conditions ?? []).find((each) => each.type === type);
  return `${one?.status} ${one?.reason}: ${one?.message}`;
}

async function addressOf(client: Client): Promise<string> {
  return ((await find(client, serviceImportType, key)) as ServiceImport).spec.ips![0]!;
}

async function behindOwn(client: Client): Promise<string[]> {
  const { items } = await client.list<EndpointSlice>(endpointSliceType, { namespace: 'shop' });
  return items
    .filter(({ metadata: { labels } }) => labels?.['kubernetes.io/service-name'] === 'checkout')
    .map(({ metadata: { labels }, endpoints }) => {
      const cluster = labels?.['multicluster.kubernetes.io/source-cluster'] ?? 'own';
      return `${cluster} ${endpoints.flatMap(({ addresses }) => addresses).join()}`;
    })
    .sort();
}

describe('transparent names', () => {
  test('both clusters export it -> the own name leads to the clusterset, own endpoints first; back when the policy goes', async () => {
    const { west, east, settle, put, ask } = await twoClusters();
    for (const [client, address] of [
      [east, '10.1.0.1'],
      [west, '10.2.0.1'],
    ] as const) {
      await put(client, address);
      await client.create(serviceExportType, serviceExport(key));
    }
    await settle();
    const before = await ask('west', name);
    await west.create(serviceImportPolicyType, transparent);
    await settle();
    expect(await condition(west)).toMatch(/^True Transparent/);
    const found = (await find(west, serviceImportType, key)) as ServiceImport;
    expect(found.metadata.annotations?.['portolan.dev/routing']).toBe('{"g":[[["west"]]],"t":1}');
    expect(await ask('west', name)).toBe(await addressOf(west));
    expect(await ask('east', name)).not.toBe(await addressOf(east));
    await west.delete(serviceImportPolicyType, { name: 'moving' });
    await settle();
    expect(await ask('west', name)).toBe(before);
  });

  test('a Service that is not exported here -> refused, by name; when the export goes later, the name leads on as before', async () => {
    const { west, east, settle, put, ask } = await twoClusters();
    await put(east, '10.1.0.1');
    await east.create(serviceExportType, serviceExport(key));
    await put(west, '10.2.0.1');
    await west.create(serviceImportPolicyType, transparent);
    await settle();
    const before = await ask('west', name);
    expect(await condition(west)).toContain('Service shop/checkout of cluster west is not exported');
    expect(before).not.toBe(await addressOf(west));
    await west.create(serviceExportType, serviceExport(key));
    await settle();
    expect(await ask('west', name)).toBe(await addressOf(west));
    await west.delete(serviceExportType, { namespace: 'shop', name: 'checkout' });
    await settle();
    expect(await ask('west', name)).toBe(await addressOf(west));
    expect(await condition(west)).toContain('False Refused: shop/checkout leads to the clusterset as before');
    await west.delete(serviceType, { namespace: 'shop', name: 'checkout' });
    await settle();
    expect(await ask('west', name)).toBe(await addressOf(west));
    expect(await condition(west)).toMatch(/^True/);
  });

  test('the control plane, no service named, somebody else selects -> never', async () => {
    const { set, west, east, settle, put, ask } = await twoClusters();
    await set.broker.admin.patch(
      clusterType,
      { namespace: setName, name: 'east' },
      { kind: 'merge', body: { spec: { mayExport: ['kube-system/dns', 'shop'] } } },
    );
    await settle();
    await put(east, '10.1.0.1', 'kube-system/dns');
    await east.create(serviceExportType, serviceExport('kube-system/dns'));
    await west.create(serviceImportPolicyType, policy({ services: ['dns'], importAs: 'Transparent' }));
    await settle();
    expect(await find(west, serviceImportType, 'kube-system/dns')).toBeDefined();
    expect(await condition(west)).toContain('kube-system/dns: a name of the control plane is never led elsewhere');
    expect(await ask('west', 'dns.kube-system.svc.cluster.local A')).toBe('NXDOMAIN');
    await west.create(serviceImportPolicyType, policy({ importAs: 'Transparent' }, { name: 'all' }));
    await settle();
    const all = (await find(west, serviceImportPolicyType, '/all')) as ServiceImportPolicy;
    expect(JSON.stringify(all.status)).toContain('importAs: Transparent needs services');
  });

  test('cluster IPs are routed here -> the Service carries others only when its own are gone, is made where there is none, and nothing of it is exported', async () => {
    const { west, east, settle, put } = await twoClusters({ routesServices: true });
    for (const [client, address] of [
      [east, '10.1.0.1'],
      [west, '10.2.0.1'],
    ] as const) {
      await put(client, address);
      await client.create(serviceExportType, serviceExport(key));
    }
    await west.create(serviceImportPolicyType, transparent);
    await settle();
    expect(await behindOwn(west)).toEqual(['own 10.2.0.1']);
    const [own] = (await west.list<EndpointSlice>(endpointSliceType, { namespace: 'shop' })).items.filter(
      ({ metadata }) => metadata.labels?.['multicluster.kubernetes.io/source-cluster'] === undefined,
    );
    await west.patch(
      endpointSliceType,
      { namespace: 'shop', name: own!.metadata.name },
      {
        kind: 'merge',
        body: { endpoints: [{ addresses: ['10.2.0.1'], conditions: { ready: false } }] },
      },
    );
    await settle();
    expect(await behindOwn(west)).toEqual(['east 10.1.0.1', 'own 10.2.0.1']);
    const east1 = (await find(east, serviceImportType, key)) as ServiceImport;
    expect(east1.status?.clusters).toHaveLength(2);
    const eastSlices = (await east.list<EndpointSlice>(endpointSliceType, { namespace: 'shop' })).items;
    const fromWest = eastSlices.filter(
      ({ metadata }) => metadata.labels?.['multicluster.kubernetes.io/source-cluster'] === 'west',
    );
    expect(fromWest.flatMap(({ endpoints }) => endpoints.flatMap(({ addresses }) => addresses))).toEqual(['10.2.0.1']);

    await west.delete(serviceType, { namespace: 'shop', name: 'checkout' });
    await settle();
    const standIn = (await find(west, serviceType, key)) as Service;
    expect(standIn.spec?.selector).toBeUndefined();
    expect(standIn.metadata.labels?.['portolan.dev/stands-in-for']).toBe('checkout');
    expect((await behindOwn(west)).filter((each) => each.startsWith('east'))).toEqual(['east 10.1.0.1']);
    const importInEast = (await find(east, serviceImportType, key)) as ServiceImport;
    expect(importInEast.status?.clusters).toEqual([{ cluster: 'east' }]);
    await west.delete(serviceImportPolicyType, { name: 'moving' });
    await settle();
    expect(await find(west, serviceType, key)).toBeUndefined();
    expect((await behindOwn(west)).filter((each) => each.startsWith('east'))).toEqual([]);
  });
});

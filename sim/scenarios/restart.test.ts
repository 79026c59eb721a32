import { describe, expect, test } from 'vitest';
import { type AddressClaim, addressClaimType } from '../../src/addresses/address-claim.ts';
import { endpointShardType } from '../../src/clusterset/kinds/endpoint-shard.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { serviceShardType } from '../../src/clusterset/kinds/service-shard.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { type EndpointSlice, endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import type { KubernetesObject, ResourceType } from '../../src/kube/objects/object.ts';
import { memberNamespace, SimClusterSet, setName } from '../clusterset.ts';
import { type Fault, withFaults } from '../faults.ts';
import { brokerContents, importLine, sliceLines } from '../look.ts';
import { exportService, serviceExport } from '../manifests.ts';

const key = 'shop/checkout';
const ref = { namespace: 'shop', name: 'checkout' };
const imported = 'ClusterSetIP http:80/TCP from east';

interface Leftover {
  readonly what: string;
  readonly home: 'broker' | 'west';
  readonly type: ResourceType;
  readonly namespace: string | undefined;
}

const leftovers: readonly Leftover[] = [
  { what: 'an import at home', home: 'west', type: serviceImportType, namespace: 'shop' },
  { what: 'an imported slice at home', home: 'west', type: endpointSliceType, namespace: 'shop' },
  { what: 'a record at the broker', home: 'broker', type: serviceShardType, namespace: memberNamespace('east') },
  { what: 'a slice at the broker', home: 'broker', type: endpointShardType, namespace: memberNamespace('east') },
  { what: 'a merged view', home: 'broker', type: serviceImportType, namespace: setName },
];

/** A copy of the object as it was while the service was exported. */
async function remember(client: Client, { type, namespace }: Leftover): Promise<KubernetesObject> {
  const { items } = await client.list(type, { namespace });
  const found = items.find(({ metadata }) => metadata.name.startsWith('checkout'))!;
  // Without its owner, so that only the agent could clean it away.
  const { uid: _uid, resourceVersion: _rv, ownerReferences: _owner, ...metadata } = found.metadata;
  return { ...found, metadata };
}

describe('restart', () => {
  for (const leftover of leftovers) {
    test(`restart: ${leftover.what} is left over -> cleaned, nothing live touched`, async () => {
      const set = await new SimClusterSet({ clusters: ['east', 'west'] }).start({ namespaces: ['shop'] });
      const east = set.home('east').admin;
      await exportService(east, key, { endpoints: ['10.1.0.1'] });
      await exportService(east, 'shop/cart', { endpoints: ['10.1.0.2'] });
      await set.time.advance(4_000);
      const place = set.home(leftover.home).admin;
      const object = await remember(place, leftover);
      await east.delete(serviceExportType, ref);
      await set.time.advance(4_000);
      const [broker, west] = [await brokerContents(set.broker.admin), await homeContents(set.home('west').admin)];
      for (const id of ['east', 'west']) set.killAgent(id);
      await place.create(leftover.type, object);
      for (const id of ['east', 'west']) set.startAgent(id);
      await set.time.advance(5_000);
      expect(await brokerContents(set.broker.admin)).toEqual(broker);
      expect(await homeContents(set.home('west').admin)).toEqual(west);
    });
  }

  test('restart: an address is claimed for an import that is gone -> released, then free', async () => {
    const set = await new SimClusterSet({ clusters: ['east', 'west'], set: { addressHoldSeconds: 60 } }).start({
      namespaces: ['shop'],
    });
    const [east, west] = [set.home('east').admin, set.home('west').admin];
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(4_000);
    set.killAgent('west');
    await west.delete(serviceImportType, ref);
    await east.delete(serviceExportType, ref);
    await set.time.advance(4_000);
    set.startAgent('west');
    await set.time.advance(4_000);
    const { items } = await west.list<AddressClaim>(addressClaimType);
    expect(items.map(({ spec }) => typeof spec.releasedAt)).toEqual(['string']);
    await set.time.advance(180_000);
    expect((await west.list(addressClaimType)).items).toEqual([]);
  });

  test('restart: all agents restarted -> no revision of the broker or of a home moves, leases aside', async () => {
    const set = await new SimClusterSet({ clusters: ['east', 'west', 'north'] }).start({ namespaces: ['shop'] });
    for (const [index, id] of ['east', 'west'].entries()) {
      await exportService(set.home(id).admin, key, {
        endpoints: [`10.${index}.0.1`],
        spec: { ports: [{ name: 'http', port: 80 + index }] },
      });
    }
    await exportService(set.home('north').admin, 'shop/cart', { endpoints: ['10.3.0.1'], spec: { clusterIP: 'None' } });
    await set.time.advance(15_000);
    const homes = [...set.homes.values()];
    const before = homes.map(({ revision }) => revision);
    const brokerBefore = await brokerContents(set.broker.admin);
    for (const id of set.homes.keys()) set.killAgent(id);
    for (const id of set.homes.keys()) set.startAgent(id);
    await set.time.advance(15_000);
    expect(homes.map(({ revision }) => revision)).toEqual(before);
    expect(await brokerContents(set.broker.admin)).toEqual(brokerBefore);
  });

  test('restart: leftovers of every kind -> all cleaned, nothing live touched', async () => {
    const set = await new SimClusterSet({ clusters: ['east', 'west'] }).start({ namespaces: ['shop'] });
    const east = set.home('east').admin;
    const west = set.home('west').admin;
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await exportService(east, 'shop/cart', { endpoints: ['10.1.0.2'] });
    await set.time.advance(4_000);
    for (const id of ['east', 'west']) set.killAgent(id);
    await east.delete(serviceExportType, ref);
    for (const id of ['east', 'west']) set.startAgent(id);
    await set.time.advance(5_000);
    for (const client of [east, west]) {
      expect(await importLine(client, key)).toBe('none');
      expect(await sliceLines(client, key)).toEqual([]);
      expect(await importLine(client, 'shop/cart')).toBe(imported);
      expect(await sliceLines(client, 'shop/cart')).toEqual(['east: 10.1.0.2 on http>8080']);
    }
    const namespace = memberNamespace('east');
    const shards = (await set.broker.admin.list(serviceShardType, { namespace })).items;
    expect(shards.map(({ metadata }) => metadata.name)).toEqual(['cart.shop']);
    expect((await set.broker.admin.list(endpointShardType, { namespace })).items).toHaveLength(1);
    const views = (await set.broker.admin.list(serviceImportType, { namespace: setName })).items;
    expect(views.map(({ metadata }) => metadata.name)).toEqual(['cart.shop']);
  });

  test('restart: the records of a member cannot be listed for a minute -> what it had stays, then is brought up to date', async () => {
    const faults: Fault[] = [];
    const wrap = withFaults(faults);
    const set = await new SimClusterSet({ clusters: ['east', 'west'], wrap }).start({ namespaces: ['shop'] });
    const [east, west] = [set.home('east').admin, set.home('west').admin];
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await exportService(east, 'shop/cart', { endpoints: ['10.1.0.2'] });
    await set.time.advance(4_000);
    set.killAgent('west');
    await east.delete(serviceExportType, ref);
    await set.time.advance(4_000);
    const path = '/v1alpha1/serviceshards';
    faults.push({ home: 'broker', method: 'GET', path, times: 8 });
    set.startAgent('west');
    await set.time.advance(15_000);
    for (const service of [key, 'shop/cart']) expect(await importLine(west, service)).toBe(imported);
    await set.time.advance(200_000);
    expect(await importLine(west, key)).toBe('none');
    expect(await importLine(west, 'shop/cart')).toBe(imported);
  });

  test('restart: orphans that nothing points at (a slice without its shard, an import without its export) -> cleaned', async () => {
    const set = await new SimClusterSet({ clusters: ['east', 'west'] }).start({ namespaces: ['shop'] });
    const [east, west] = [set.home('east').admin, set.home('west').admin];
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(4_000);
    for (const id of ['east', 'west']) set.killAgent(id);
    await east.delete(serviceExportType, ref);
    const shard = { namespace: memberNamespace('east'), name: 'checkout.shop' };
    await set.broker.admin.delete(serviceShardType, shard);
    await set.broker.admin.delete(serviceImportType, { namespace: setName, name: 'checkout.shop' });
    for (const id of ['east', 'west']) set.startAgent(id);
    await set.time.advance(5_000);
    expect((await set.broker.admin.list(endpointShardType)).items).toEqual([]);
    for (const client of [east, west]) {
      expect(await importLine(client, key)).toBe('none');
      expect(await sliceLines(client, key)).toEqual([]);
    }
  });

  test('restart: the broker is restored from yesterday -> what was exported since is back, what was withdrawn is gone', async () => {
    const lines: string[] = [];
    const onLog = (line: string) => void lines.push(line);
    const set = await new SimClusterSet({ clusters: ['east', 'west'], onLog }).start({ namespaces: ['shop'] });
    const east = set.home('east').admin;
    const west = set.home('west').admin;
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(4_000);
    const yesterday = set.broker.backup();
    await east.delete(serviceExportType, ref);
    await exportService(east, 'shop/cart', { endpoints: ['10.1.0.2'] });
    await set.time.advance(4_000);
    await set.broker.restore(yesterday);
    await set.time.advance(120_000);
    expect(lines.join('')).toMatch(/listing (again|everything anew)/);
    for (const client of [east, west]) {
      expect(await importLine(client, key)).toBe('none');
      expect(await importLine(client, 'shop/cart')).toBe(imported);
    }
    await east.create(serviceExportType, serviceExport(key));
    await set.time.advance(60_000);
    expect(await importLine(west, key)).toBe(imported);
  });
});

async function homeContents(home: Client): Promise<string[]> {
  const imports = (await home.list(serviceImportType)).items;
  const slices = (await home.list<EndpointSlice>(endpointSliceType)).items;
  return [...imports, ...slices].map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`);
}

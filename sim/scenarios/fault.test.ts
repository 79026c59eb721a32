import { describe, expect, test } from 'vitest';
import { endpointSliceType } from '../../src/model/endpoint-slice.ts';
import { serviceType } from '../../src/model/service.ts';
import { serviceExportType } from '../../src/model/service-export.ts';
import { serviceImportType } from '../../src/model/service-import.ts';
import { serviceShardType } from '../../src/model/service-shard.ts';
import { memberNamespace, SimClusterSet, setName } from '../clusterset.ts';
import { type Fault, withFaults } from '../faults.ts';
import { exportLine, find, importLine, sliceLines } from '../look.ts';
import { exportService, serviceExport, slice } from '../manifests.ts';

const key = 'shop/checkout';
const ref = { namespace: 'shop', name: 'checkout' };
const exported = 'Valid=True/Valid Ready=True/Exported Conflict=False/NoConflicts';
const imported = 'ClusterSetIP http:80/TCP from east';

async function withListOfFaults(faults: Fault[]) {
  const set = await new SimClusterSet({ clusters: ['east', 'west'], wrap: withFaults(faults) }).start({
    namespaces: ['shop'],
  });
  return { set, east: set.home('east').admin, west: set.home('west').admin };
}

describe('fault', () => {
  const single: Fault[] = [
    { home: 'broker', method: 'POST', path: '/serviceshards' },
    { home: 'broker', method: 'POST', path: '/serviceshards', when: 'after' },
    { home: 'broker', method: 'POST', path: '/endpointslices' },
    { home: 'broker', method: 'POST', path: '/endpointslices', when: 'after' },
    { home: 'broker', method: 'GET', path: '/serviceshards', times: 2 },
    { home: 'broker', method: 'GET', path: '/clusters', times: 2 },
    { home: 'broker', method: 'GET', path: '/clustersets', times: 2 },
    { home: 'broker', method: 'POST', path: '/leases' },
    { home: 'west', method: 'POST', path: '/serviceimports' },
    { home: 'west', method: 'POST', path: '/serviceimports', when: 'after' },
    { home: 'west', method: 'POST', path: '/addressclaims' },
    { home: 'west', method: 'POST', path: '/addressclaims', when: 'after' },
    { home: 'west', method: 'POST', path: '/endpointslices' },
    { home: 'west', method: 'PUT', path: '/serviceimports/checkout/status', code: 409 },
    { home: 'east', method: 'PUT', path: '/serviceexports/checkout/status', code: 409 },
    { home: 'east', method: 'POST', path: '/events' },
    { home: 'east', method: 'GET', path: '/configmaps' },
    { home: 'east', method: 'GET', path: '/services', times: 2 },
    { home: 'east', method: 'GET', path: '/serviceexports', times: 2 },
    { home: 'east', method: 'GET', path: '/endpointslices', times: 2 },
    { home: 'west', method: 'GET', path: '/namespaces', times: 2 },
    { home: 'west', method: 'GET', path: '/serviceimports', times: 2 },
    { home: 'west', method: 'GET', path: '/addressclaims', times: 2 },
  ];
  for (const fault of single) {
    const what = `${fault.method} ${fault.path} at ${fault.home}${fault.when === 'after' ? ', answer lost' : ''}`;
    test(`fault: the first ${what} fails -> all the same in the end`, async () => {
      const { set, east, west } = await withListOfFaults([{ ...fault }]);
      await exportService(east, key, { endpoints: ['10.1.0.1'] });
      await set.time.advance(20_000);
      expect(await importLine(west, key)).toBe(imported);
      expect(await sliceLines(west, key)).toEqual(['east: 10.1.0.1 on http>8080']);
      expect(await exportLine(east, key)).toBe(exported);
    });
  }

  for (const code of [500, 409]) {
    for (const [home, path] of [
      ['broker', '/endpointslices/'],
      ['broker', '/serviceshards/'],
      ['broker', '/serviceimports/'],
      ['broker', '/leases/'],
      ['west', '/endpointslices/'],
      ['west', '/serviceimports/'],
    ] as const) {
      test(`fault: the first updates of ${path} at ${home} fail with ${code} -> the change is there in the end`, async () => {
        const faults: Fault[] = [];
        const { set, east, west } = await withListOfFaults(faults);
        await exportService(east, key, { endpoints: ['10.1.0.1'] });
        await set.time.advance(4_000);
        faults.push({ home, method: 'PUT', path, times: 3, code });
        const { metadata, endpoints } = slice(key, { endpoints: ['10.1.0.2'] });
        await east.patch(endpointSliceType, metadata, { kind: 'merge', body: { endpoints } });
        const spec = { sessionAffinity: 'ClientIP' };
        await east.patch(serviceType, ref, { kind: 'merge', body: { spec } });
        await set.time.advance(30_000);
        expect(faults[0]?.times).toBe(0);
        expect(await sliceLines(west, key)).toEqual(['east: 10.1.0.2 on http>8080']);
        expect(await find(west, serviceImportType, key)).toMatchObject({ spec });
        const view = await find(set.broker.admin, serviceImportType, `${setName}/checkout.shop`);
        expect(view).toMatchObject({ spec });
        expect(await exportLine(east, key)).toBe(exported);
      });
    }
  }

  test('fault: connections are reset every few seconds -> nothing is written because of it, and changes still arrive', async () => {
    const { set, east, west } = await withListOfFaults([]);
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(15_000);
    const revisions = () => [...set.homes.values()].map(({ revision }) => revision);
    const before = [revisions(), await contents(set)];
    for (let round = 0; round < 20; round += 1) {
      set.simulation.network.breakStreams({});
      await set.time.advance(3_000);
    }
    expect([revisions(), await contents(set)]).toEqual(before);
    await east.delete(serviceExportType, ref);
    await set.time.advance(30_000);
    expect(await importLine(west, key)).toBe('none');
  });

  for (const home of ['broker', 'west']) {
    for (const path of ['/endpointslices/', '/serviceimports/', '/serviceshards/']) {
      test(`fault: the first deletes of ${path} at ${home} fail -> gone in the end`, async () => {
        const faults: Fault[] = [];
        const { set, east, west } = await withListOfFaults(faults);
        await exportService(east, key, { endpoints: ['10.1.0.1'] });
        await set.time.advance(4_000);
        faults.push({ home, method: 'DELETE', path, times: 3 });
        await east.delete(serviceExportType, ref);
        await set.time.advance(20_000);
        expect(await importLine(west, key)).toBe('none');
        expect(await sliceLines(west, key)).toEqual([]);
        const namespace = memberNamespace('east');
        expect((await set.broker.admin.list(endpointSliceType, { namespace })).items).toEqual([]);
        expect((await set.broker.admin.list(serviceShardType, { namespace })).items).toEqual([]);
        expect((await set.broker.admin.list(serviceImportType, { namespace: setName })).items).toEqual([]);
      });
    }
  }
});

describe('definitions', () => {
  const crdType = {
    group: 'apiextensions.k8s.io',
    version: 'v1',
    plural: 'customresourcedefinitions',
    kind: 'CustomResourceDefinition',
    isNamespaced: false,
  };

  for (const plural of ['serviceexports', 'serviceimports']) {
    test(`definitions: ${plural} are not there, come, go and come again -> noticed without a restart`, async () => {
      const set = new SimClusterSet({ clusters: ['east', 'west'], hasDefinitions: true });
      await set.start({ namespaces: ['shop'], agents: [] });
      const name = `${plural}.multicluster.x-k8s.io`;
      const homes = ['east', 'west'].map((id) => set.home(id).admin);
      const definition = await homes[0]!.get(crdType, { name });
      const { uid: _uid, resourceVersion: _rv, creationTimestamp: _at, ...metadata } = definition.metadata;
      const remove = async () => {
        for (const client of homes) await client.delete(crdType, { name });
        await set.time.advance(90_000);
      };
      const install = async () => {
        for (const client of homes) await client.create(crdType, { ...definition, metadata, status: undefined });
        await set.time.advance(1_000);
      };
      await remove();
      for (const id of ['east', 'west']) set.startAgent(id);
      await set.time.advance(90_000);
      for (let round = 0; round < 2; round += 1) {
        await install();
        const east = homes[0]!;
        const service = `shop/s${round}`;
        await exportService(east, service, { endpoints: ['10.1.0.1'] });
        await set.time.advance(120_000);
        expect(await importLine(homes[1]!, service)).toBe(imported);
        if (round === 0) await remove();
      }
    });
  }
});

describe('restart', () => {
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
    const brokerBefore = await contents(set);
    for (const id of set.homes.keys()) set.killAgent(id);
    for (const id of set.homes.keys()) set.startAgent(id);
    await set.time.advance(15_000);
    expect(homes.map(({ revision }) => revision)).toEqual(before);
    expect(await contents(set)).toEqual(brokerBefore);
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
    expect((await set.broker.admin.list(endpointSliceType, { namespace })).items).toHaveLength(1);
    const views = (await set.broker.admin.list(serviceImportType, { namespace: setName })).items;
    expect(views.map(({ metadata }) => metadata.name)).toEqual(['cart.shop']);
  });

  test('restart: the records of a member cannot be listed for a minute -> what it had stays, then is brought up to date', async () => {
    const faults: Fault[] = [];
    const { set, east, west } = await withListOfFaults(faults);
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await exportService(east, 'shop/cart', { endpoints: ['10.1.0.2'] });
    await set.time.advance(4_000);
    set.killAgent('west');
    await east.delete(serviceExportType, ref);
    await set.time.advance(4_000);
    const path = `/namespaces/${memberNamespace('east')}/serviceshards`;
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
    expect((await set.broker.admin.list(endpointSliceType)).items).toEqual([]);
    for (const client of [east, west]) {
      expect(await importLine(client, key)).toBe('none');
      expect(await sliceLines(client, key)).toEqual([]);
    }
  });

  test('restart: the broker is restored from yesterday -> what was exported since is back, what was withdrawn is gone', async () => {
    const set = await new SimClusterSet({ clusters: ['east', 'west'] }).start({ namespaces: ['shop'] });
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
    for (const client of [east, west]) {
      expect(await importLine(client, key)).toBe('none');
      expect(await importLine(client, 'shop/cart')).toBe(imported);
    }
    await east.create(serviceExportType, serviceExport(key));
    await set.time.advance(60_000);
    expect(await importLine(west, key)).toBe(imported);
  });
});

async function contents(set: SimClusterSet): Promise<string[]> {
  const lists = [serviceShardType, endpointSliceType, serviceImportType].map((type) => set.broker.admin.list(type));
  return (await Promise.all(lists)).flatMap(({ items }) =>
    items.map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`),
  );
}

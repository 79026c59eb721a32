import { describe, expect, test } from 'vitest';
import { endpointSliceType } from '../../src/model/endpoint-slice.ts';
import { serviceExportType } from '../../src/model/service-export.ts';
import { serviceImportType } from '../../src/model/service-import.ts';
import { serviceShardType } from '../../src/model/service-shard.ts';
import { memberNamespace, SimClusterSet, setName } from '../clusterset.ts';
import { type Fault, withFaults } from '../faults.ts';
import { exportLine, importLine, sliceLines } from '../look.ts';
import { exportService, serviceExport } from '../manifests.ts';

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

import { describe, expect, test } from 'vitest';
import { type AddressClaim, addressClaimType } from '../../src/addresses/address-claim.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { SimClusterSet, setName } from '../clusterset.ts';
import { type Fault, withFaults } from '../faults.ts';
import { brokerContents, exportLine, find, importLine, sliceLines } from '../look.ts';
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
    { home: 'broker', method: 'POST', path: '/endpointshards' },
    { home: 'broker', method: 'POST', path: '/endpointshards', when: 'after' },
    { home: 'broker', method: 'GET', path: '/serviceshards', times: 2 },
    { home: 'broker', method: 'GET', path: '/clusters', times: 2 },
    { home: 'broker', method: 'GET', path: '/clustersets', times: 2 },
    { home: 'broker', method: 'POST', path: '/heartbeats' },
    { home: 'west', method: 'POST', path: '/serviceimports' },
    { home: 'west', method: 'POST', path: '/serviceimports', when: 'after' },
    { home: 'west', method: 'POST', path: '/addressclaims' },
    { home: 'west', method: 'POST', path: '/addressclaims', when: 'after' },
    { home: 'west', method: 'POST', path: '/endpointslices' },
    { home: 'west', method: 'POST', path: '/endpointslices', when: 'after' },
    { home: 'west', method: 'POST', path: '/clusterproperties', when: 'after' },
    { home: 'west', method: 'PUT', path: '/serviceimports/checkout/status', code: 409 },
    { home: 'west', method: 'PUT', path: '/serviceimports/checkout/status' },
    { home: 'west', method: 'PUT', path: '/serviceimports/checkout/status', when: 'after' },
    { home: 'east', method: 'PUT', path: '/serviceexports/checkout/status', code: 409 },
    { home: 'east', method: 'PUT', path: '/serviceexports/checkout/status' },
    { home: 'east', method: 'PUT', path: '/serviceexports/checkout/status', when: 'after' },
    { home: 'broker', method: 'POST', path: '/serviceimports' },
    { home: 'broker', method: 'PUT', path: '/serviceimports/checkout.shop/status', code: 409 },
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
    const how = fault.when === 'after' ? ', answer lost' : fault.code === undefined ? '' : `, ${fault.code}`;
    const what = `${fault.method} ${fault.path} at ${fault.home}${how}`;
    test(`fault: the first ${what} fails -> all the same in the end`, async () => {
      const struck = { ...fault };
      const { set, east, west } = await withListOfFaults([struck]);
      await exportService(east, key, { endpoints: ['10.1.0.1'] });
      await set.time.advance(20_000);
      expect(struck.times).toBe(0);
      expect(await importLine(west, key)).toBe(imported);
      expect(await sliceLines(west, key)).toEqual(['east: 10.1.0.1 on http>8080']);
      expect(await exportLine(east, key)).toBe(exported);
    });
  }

  test('fault: an import is gone and its watch does not say so -> its slices are not written without end; later all is there', async () => {
    const faults: Fault[] = [];
    let slicesWritten = 0;
    const struck = withFaults(faults);
    const set = await new SimClusterSet({
      clusters: ['east', 'west'],
      wrap: (home, handler) =>
        struck(home, (request) => {
          if (home === 'west' && request.method === 'POST' && request.path.includes('/endpointslices'))
            slicesWritten += 1;
          return handler(request);
        }),
    }).start({ namespaces: ['shop'] });
    const { admin: east } = set.home('east');
    const { admin: west } = set.home('west');
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(20_000);
    // Lists and watches; a single import can be read.
    const unseen: Fault = { home: 'west', method: 'GET', path: '/serviceimports?', times: Number.POSITIVE_INFINITY };
    faults.push(unseen);
    set.simulation.network.breakStreams({ from: 'agent-west' });
    await set.time.advance(5_000);
    await east.delete(serviceExportType, ref);
    await set.time.advance(5_000);
    expect(await find(west, serviceImportType, key)).toBeUndefined();
    slicesWritten = 0;
    await east.create(serviceExportType, serviceExport(key));
    await set.time.advance(10_000);
    expect(slicesWritten).toBe(0);
    unseen.times = 0;
    await set.time.advance(60_000);
    expect(await importLine(west, key)).toBe(imported);
    expect(await sliceLines(west, key)).toEqual(['east: 10.1.0.1 on http>8080']);
  });

  for (const code of [500, 409]) {
    for (const [home, path] of [
      ['broker', '/endpointshards/'],
      ['broker', '/serviceshards/'],
      ['broker', '/serviceimports/'],
      ['broker', '/heartbeats/'],
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
    const before = [revisions(), await brokerContents(set.broker.admin)];
    for (let round = 0; round < 20; round += 1) {
      set.simulation.network.breakStreams({});
      await set.time.advance(3_000);
    }
    expect([revisions(), await brokerContents(set.broker.admin)]).toEqual(before);
    await east.delete(serviceExportType, ref);
    await set.time.advance(30_000);
    expect(await importLine(west, key)).toBe('none');
  });

  for (const when of ['before', 'after'] as const) {
    for (const [home, path] of [
      ['broker', '/endpointshards/'],
      ['broker', '/serviceshards/'],
      ['broker', '/serviceimports/'],
      ['west', '/endpointslices/'],
      ['west', '/serviceimports/'],
    ] as const) {
      const title = when === 'before' ? 'fail' : 'are done and their answers lost';
      test(`fault: the first deletes of ${path} at ${home} ${title} -> gone in the end`, async () => {
        const faults: Fault[] = [];
        const { set, east, west } = await withListOfFaults(faults);
        await exportService(east, key, { endpoints: ['10.1.0.1'] });
        await set.time.advance(4_000);
        // Slices at home go with their import: ours may need only one try, or none if the home was quicker.
        const isOwned = home === 'west' && path === '/endpointslices/';
        const fault: Fault = { home, method: 'DELETE', path, times: when === 'before' && !isOwned ? 3 : 1, when };
        faults.push(fault);
        await east.delete(serviceExportType, ref);
        await set.time.advance(20_000);
        expect(fault.times).toBeLessThanOrEqual(isOwned ? 1 : 0);
        expect(await importLine(west, key)).toBe('none');
        expect(await sliceLines(west, key)).toEqual([]);
        expect(await brokerContents(set.broker.admin)).toEqual([]);
      });
    }
  }

  for (const home of ['broker', 'west']) {
    test(`fault: one slice of two goes and its deletes at ${home} fail -> gone in the end, the other untouched`, async () => {
      const faults: Fault[] = [];
      const { set, east, west } = await withListOfFaults(faults);
      await exportService(east, key, { endpoints: ['10.1.0.1'] });
      const second = slice(key, { endpoints: ['10.1.0.2'], suffix: 'b' });
      await east.create(endpointSliceType, second);
      await set.time.advance(4_000);
      const path = home === 'broker' ? '/endpointshards/' : '/endpointslices/';
      const fault: Fault = { home, method: 'DELETE', path, times: 3 };
      faults.push(fault);
      await east.delete(endpointSliceType, second.metadata);
      await set.time.advance(20_000);
      expect(fault.times).toBe(0);
      expect(await sliceLines(west, key)).toEqual(['east: 10.1.0.1 on http>8080']);
      expect(await importLine(west, key)).toBe(imported);
    });
  }

  test('fault: releasing an address fails, then succeeds -> it is kept for its owner and free afterwards', async () => {
    const faults: Fault[] = [];
    const { set, east, west } = await withListOfFaults(faults);
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(4_000);
    const fault: Fault = { home: 'west', method: 'PUT', path: '/addressclaims/', times: 3 };
    faults.push(fault);
    await east.delete(serviceExportType, ref);
    await set.time.advance(20_000);
    expect(fault.times).toBe(0);
    const { items } = await west.list<AddressClaim>(addressClaimType);
    expect(items.map(({ spec }) => typeof spec.releasedAt)).toEqual(['string']);
  });

  test('fault: what was judged of a dead member cannot be written at home -> it is in the end, and survives a restart', async () => {
    const faults: Fault[] = [];
    const { set, east, west } = await withListOfFaults(faults);
    await exportService(east, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(4_000);
    const fault: Fault = { home: 'west', method: 'POST', path: '/configmaps', times: 3 };
    faults.push(fault);
    set.killAgent('east');
    await set.time.advance(120_000);
    expect(fault.times).toBe(0);
    set.killAgent('west');
    set.startAgent('west');
    for (let second = 0; second < 20; second += 1) {
      await set.time.advance(1_000);
      expect(await importLine(west, key)).toBe('none');
    }
  });
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
    test(`definitions: ${plural} are not there, come, go and come again -> noticed without a restart [003-82]`, async () => {
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

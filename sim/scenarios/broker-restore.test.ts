import { describe, expect, test } from 'vitest';
import { endpointShardType } from '../../src/clusterset/kinds/endpoint-shard.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { serviceShardType } from '../../src/clusterset/kinds/service-shard.ts';
import { configMapType } from '../../src/kube/objects/config-map.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { memberNamespace, SimClusterSet, setName } from '../clusterset.ts';
import { type Fault, withFaults } from '../faults.ts';
import { importLine, sliceLines } from '../look.ts';
import { exportService, serviceExport } from '../manifests.ts';

const clusters = ['east', 'west', 'north'];
const ghost = 'shop/ghost';
const ref = { namespace: 'shop', name: 'ghost' };

/** So that revisions the agents know stand for something else. */
async function writeMuch(set: SimClusterSet): Promise<void> {
  for (let index = 0; index < 60; index += 1) {
    const metadata = { namespace: setName, name: `note-${index}` };
    await set.broker.admin.create(configMapType, { apiVersion: 'v1', kind: 'ConfigMap', metadata });
  }
}

async function importsOf(set: SimClusterSet, key: string): Promise<string[]> {
  return Promise.all([...set.homes.values()].map(({ admin }) => importLine(admin, key)));
}

async function shardsOf(set: SimClusterSet, id: string): Promise<string[]> {
  const { items } = await set.broker.admin.list(serviceShardType, { namespace: memberNamespace(id) });
  return items.map(({ metadata }) => metadata.name);
}

describe('broker restore', () => {
  for (const ageMs of [1_000, 40_000]) {
    test(`broker restore: a copy ${ageMs / 1000} s old, then 60 writes, an export withdrawn meanwhile -> no ghost anywhere`, async () => {
      const set = await new SimClusterSet({ clusters }).start({ namespaces: ['shop'] });
      const east = set.home('east').admin;
      await exportService(east, 'shop/cart', { endpoints: ['10.1.0.2'] });
      // Between two renewals: a young copy holds every lease as it is.
      await set.time.advance(23_000);
      const copy = set.broker.backup();
      await exportService(east, ghost, { endpoints: ['10.1.0.1'] });
      await set.time.advance(ageMs);
      expect(await importsOf(set, ghost)).toEqual(clusters.map(() => 'ClusterSetIP http:80/TCP from east'));
      set.broker.kill();
      await east.delete(serviceExportType, ref);
      await east.delete(serviceType, ref);
      await set.broker.restore(copy);
      await writeMuch(set);
      await set.time.advance(60_000);
      expect(await importsOf(set, ghost)).toEqual(['none', 'none', 'none']);
      for (const id of clusters) expect(await sliceLines(set.home(id).admin, ghost)).toEqual([]);
      expect(await importsOf(set, 'shop/cart')).toEqual(clusters.map(() => 'ClusterSetIP http:80/TCP from east'));
    });

    test(`broker restore: a copy ${ageMs / 1000} s old, then 60 writes -> what it lost is published again, what came back is withdrawn`, async () => {
      const set = await new SimClusterSet({ clusters }).start({ namespaces: ['shop'] });
      const east = set.home('east').admin;
      await exportService(east, ghost, { endpoints: ['10.1.0.1'] });
      await exportService(set.home('west').admin, 'shop/other', { endpoints: ['10.2.0.1'] });
      // Between two renewals: a young copy holds every lease as it is.
      await set.time.advance(23_000);
      const copy = set.broker.backup();
      await east.delete(serviceExportType, ref);
      await exportService(east, 'shop/cart', { endpoints: ['10.1.0.2'] });
      await set.time.advance(ageMs);
      expect(await importsOf(set, ghost)).toEqual(['none', 'none', 'none']);
      await set.broker.restore(copy);
      await writeMuch(set);
      await set.time.advance(60_000);
      expect(await shardsOf(set, 'east')).toEqual(['cart.shop']);
      expect(
        (await set.broker.admin.list(endpointShardType, { namespace: memberNamespace('east') })).items.length,
      ).toBe(1);
      expect(await importsOf(set, ghost)).toEqual(['none', 'none', 'none']);
      expect(await importsOf(set, 'shop/cart')).toEqual(clusters.map(() => 'ClusterSetIP http:80/TCP from east'));
      await east.create(serviceExportType, serviceExport(ghost));
      await set.time.advance(5_000);
      expect(await importsOf(set, ghost)).toEqual(clusters.map(() => 'ClusterSetIP http:80/TCP from east'));
    });
  }

  test('broker restore: it loses a delete that it acknowledged while our watch was down -> deleted again', async () => {
    const faults: Fault[] = [];
    const options = { clusters: ['east', 'west'], wrap: withFaults(faults) };
    const set = await new SimClusterSet(options).start({ namespaces: ['shop'] });
    const east = set.home('east').admin;
    await exportService(east, ghost, { endpoints: ['10.1.0.1'] });
    await exportService(east, 'shop/cart', { endpoints: ['10.1.0.2'] });
    await set.time.advance(23_000);
    const copy = set.broker.backup();
    // Writes get through, and nothing can be watched.
    faults.push({ home: 'broker', method: 'GET', path: '', times: 1_000 });
    set.simulation.network.breakStreams({});
    await set.time.advance(5_000);
    await east.delete(serviceExportType, ref);
    await set.time.advance(500);
    expect(await shardsOf(set, 'east')).toEqual(['cart.shop']);
    await set.broker.restore(copy);
    faults.length = 0;
    await set.time.advance(60_000);
    expect(await shardsOf(set, 'east')).toEqual(['cart.shop']);
    expect(await importLine(set.home('west').admin, ghost)).toBe('none');
  });

  test('broker restore: an agent began after what the copy brings back was deleted -> it hears of it all the same', async () => {
    const set = await new SimClusterSet({ clusters: ['east', 'west'] }).start({ namespaces: ['shop'] });
    const east = set.home('east').admin;
    await exportService(east, ghost, { endpoints: ['10.1.0.1'] });
    await set.time.advance(20_000);
    const copy = set.broker.backup();
    await east.delete(serviceExportType, ref);
    await set.time.advance(15_000);
    for (const id of ['east', 'west']) set.killAgent(id);
    for (const id of ['east', 'west']) set.startAgent(id);
    await set.time.advance(15_000);
    await set.broker.restore(copy);
    await writeMuch(set);
    await set.time.advance(60_000);
    expect(await shardsOf(set, 'east')).toEqual([]);
  });
});

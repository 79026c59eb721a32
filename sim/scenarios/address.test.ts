import { describe, expect, test } from 'vitest';
import { addressClaimType } from '../../src/addresses/address-claim.ts';
import { candidates } from '../../src/addresses/candidates.ts';
import { claimFor } from '../../src/addresses/claim.ts';
import { parseRange } from '../../src/base/net/ip.ts';
import { clusterSetType } from '../../src/clusterset/kinds/cluster-set.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { SimClusterSet, setName } from '../clusterset.ts';
import { find, importedIps, sliceLines } from '../look.ts';
import { exportService } from '../manifests.ts';

const key = 'shop/checkout';
const clusters = ['east', 'west', 'north'];

/** Addresses that the owner would try, in order, if nothing were taken. */
function choicesOf(name: string, range = '243.0.0.0/12'): string[] {
  const owner = { kind: serviceImportType.kind, namespace: 'shop', name };
  const all = candidates({ owner, range: parseRange(range)!, preferred: [], isTaken: () => false });
  return [all.next().value as string, all.next().value as string];
}

async function ipsIn(set: SimClusterSet, service: string): Promise<(readonly string[])[]> {
  return Promise.all([...set.homes.values()].map(({ admin }) => importedIps(admin, service)));
}

describe('address', () => {
  test('address: several services of several clusters -> every cluster comes to the same ones without asking', async () => {
    const set = await new SimClusterSet({ clusters }).start({ namespaces: ['shop'] });
    const services = ['a', 'b', 'c', 'd', 'e', 'f'];
    for (const [index, name] of services.entries()) {
      const { admin } = set.home(clusters[index % 3]!);
      await exportService(admin, `shop/${name}`, { endpoints: ['10.1.0.1'] });
    }
    await set.time.advance(4_000);
    for (const name of services) {
      const [expected] = choicesOf(name);
      expect(await ipsIn(set, `shop/${name}`)).toEqual([[expected], [expected], [expected]]);
    }
  });

  test('address: its first choice is taken in one cluster -> another there, and who comes later takes that of the exporter', async () => {
    const set = await new SimClusterSet({ clusters }).start({ namespaces: ['shop'], agents: ['east', 'west'] });
    const [first, second] = choicesOf('checkout') as [string, string];
    const somebody = { kind: 'PeerService', namespace: '', name: 'somebody' };
    await set.home('east').admin.create(addressClaimType, claimFor(somebody, first));
    await set.time.advance(1_000);
    await exportService(set.home('east').admin, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(4_000);
    expect(await importedIps(set.home('east').admin, key)).toEqual([second]);
    expect(await importedIps(set.home('west').admin, key)).toEqual([first]);
    expect(await sliceLines(set.home('west').admin, key)).toEqual(['east: 10.1.0.1 on http>8080']);
    set.startAgent('north');
    await set.time.advance(4_000);
    expect(await importedIps(set.home('north').admin, key)).toEqual([second]);
    await set.time.advance(120_000);
    expect(await ipsIn(set, key)).toEqual([[second], [first], [second]]);
  });

  test('address: many in a small range, agents restarted in another order, exports made anew -> each keeps its own', async () => {
    const addressRanges = { clusterSet: ['243.0.0.0/28'] };
    const set = await new SimClusterSet({ clusters, set: { addressRanges } }).start({ namespaces: ['shop'] });
    const services = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'].map((name) => `shop/${name}`);
    for (const one of services) await exportService(set.home('east').admin, one, { endpoints: ['10.1.0.1'] });
    await set.time.advance(6_000);
    const all = async () => Promise.all(services.map((one) => ipsIn(set, one)));
    const before = await all();
    for (const held of [0, 1, 2].map((index) => before.map((ips) => ips[index]![0])))
      expect(new Set(held).size).toBe(services.length);
    for (const id of clusters) set.killAgent(id);
    for (const id of clusters.toReversed()) set.startAgent(id);
    await set.time.advance(6_000);
    expect(await all()).toEqual(before);
    for (const one of services.toReversed()) {
      const [namespace, name] = one.split('/') as [string, string];
      const metadata = { namespace, name };
      await set.home('east').admin.delete(serviceExportType, metadata);
      const object = { apiVersion: 'multicluster.x-k8s.io/v1beta1', kind: 'ServiceExport', metadata };
      await set.home('east').admin.create(serviceExportType, object);
    }
    await set.time.advance(6_000);
    expect(await all()).toEqual(before);
  });

  test('address: the range of a live set is changed, then taken away -> imports keep their addresses, new ones come from the new range', async () => {
    const set = await new SimClusterSet({ clusters }).start({ namespaces: ['shop'] });
    await exportService(set.home('east').admin, key, { endpoints: ['10.1.0.1'] });
    await set.time.advance(4_000);
    const before = await ipsIn(set, key);
    const range = async (clusterSet: string[]) => {
      const ref = { namespace: setName, name: setName };
      const body = { spec: { addressRanges: { clusterSet } } };
      await set.broker.admin.patch(clusterSetType, ref, { kind: 'merge', body });
      await set.time.advance(4_000);
    };
    await range(['198.18.0.0/15']);
    await exportService(set.home('east').admin, 'shop/cart', { endpoints: ['10.1.0.2'] });
    await set.time.advance(4_000);
    expect(await ipsIn(set, key)).toEqual(before);
    for (const ips of await ipsIn(set, 'shop/cart')) expect(ips[0]).toMatch(/^198\.1[89]\./);
    for (const id of clusters) set.killAgent(id);
    for (const id of clusters) set.startAgent(id);
    await set.time.advance(120_000);
    expect(await ipsIn(set, key)).toEqual(before);
    await range(['fd00:9::/64']);
    expect(await ipsIn(set, key)).toEqual(before);
  });

  test('address: a family that the clusterset has no range for -> Ready says so, and the slices are there', async () => {
    const addressRanges = { clusterSet: ['243.0.0.0/12'] };
    const set = await new SimClusterSet({ clusters: ['east', 'west'], set: { addressRanges } }).start({
      namespaces: ['shop'],
    });
    await exportService(set.home('east').admin, key, {
      spec: { ipFamilies: ['IPv6'], ipFamilyPolicy: 'SingleStack' },
      endpoints: ['10.1.0.1'],
    });
    await set.time.advance(4_000);
    const found = await find<ServiceImport>(set.home('west').admin, serviceImportType, key);
    expect(found?.spec.ips).toBeUndefined();
    expect(found?.status).toMatchObject({
      conditions: [{ type: 'Ready', status: 'False', reason: 'IPFamilyNotSupported' }],
      endpointSliceObjects: 'Present',
    });
    expect(await sliceLines(set.home('west').admin, key)).toEqual(['east: 10.1.0.1 on http>8080']);
  });
});

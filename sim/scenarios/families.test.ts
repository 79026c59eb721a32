// Clusters whose Pods have one IP family, and services that have the other, or both.

import { describe, expect, test } from 'vitest';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { memberRecord } from '../../src/clusterset/membership/member-record.ts';
import { memberRecordName } from '../../src/clusterset/rules/broker-layout.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { conditionOf } from '../../src/kube/objects/conditions.ts';
import { type ConfigMap, configMapType } from '../../src/kube/objects/config-map.ts';
import { type EndpointSlice, endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { type Service, serviceType } from '../../src/kube/objects/service.ts';
import { memberNamespace, SimClusterSet } from '../clusterset.ts';
import { find, importedIps } from '../look.ts';
import { exportService, slice } from '../manifests.ts';

const key = 'shop/checkout';
const spec = { ipFamilies: ['IPv4' as const, 'IPv6' as const], ipFamilyPolicy: 'PreferDualStack' as const };

/** Two clusters; the Pod ranges are those that west joined with. */
async function start(podRanges: readonly string[], set = {}) {
  const clusterset = await new SimClusterSet({ clusters: ['east', 'west'], set }).start({ namespaces: ['shop'] });
  const [east, west] = [clusterset.home('east').admin, clusterset.home('west').admin];
  clusterset.killAgent('west');
  const joined = { homeUid: 'w', joinedAt: '', region: '', zone: '', podRanges, serviceRanges: [] };
  await clusterset.broker.admin.create(configMapType, memberRecord(memberNamespace('west'), joined).object);
  clusterset.startAgent('west');
  await exportService(east, key, { endpoints: ['10.1.0.1'], spec });
  const second = { endpoints: ['fd01::1'], suffix: 'six', addressType: 'IPv6' as const };
  await east.create(endpointSliceType, slice(key, second));
  await clusterset.time.advance(6_000);
  return { clusterset, east, west };
}

async function imported(home: Client): Promise<string[]> {
  const labelSelector = 'multicluster.kubernetes.io/service-name=checkout';
  const { items } = await home.list<EndpointSlice>(endpointSliceType, { namespace: 'shop', labelSelector });
  return items.flatMap(({ endpoints }) => endpoints.flatMap(({ addresses }) => addresses ?? [])).sort();
}

const familiesOf = (ips: readonly string[]) => ips.map((ip) => (ip.includes(':') ? 'IPv6' : 'IPv4'));

describe('families of a cluster', () => {
  test('families: Pods of the importing cluster have IPv4 alone -> the import has no IPv6 address and no IPv6 endpoint; the exporter, whose ranges are not known, has both', async () => {
    const { east, west } = await start(['10.2.0.0/16']);
    expect(familiesOf(await importedIps(west, key))).toEqual(['IPv4']);
    expect(familiesOf(await importedIps(east, key))).toEqual(['IPv4', 'IPv6']);
    expect([await imported(west), await imported(east)]).toEqual([['10.1.0.1'], ['10.1.0.1', 'fd01::1']]);
    const found = await find<ServiceImport>(west, serviceImportType, key);
    expect(found?.spec.ipFamilies).toEqual(['IPv4']);
  });

  test('families: both ranges -> both addresses', async () => {
    const { west } = await start(['10.2.0.0/16', 'fd02::/64']);
    expect(familiesOf(await importedIps(west, key))).toEqual(['IPv4', 'IPv6']);
    expect(await imported(west)).toEqual(['10.1.0.1', 'fd01::1']);
  });

  test('families: a service of IPv4 alone where Pods have IPv6 alone -> no address, IPFamilyNotSupported; the cluster joins with IPv4 too -> an address', async () => {
    const { clusterset, east, west } = await start(['fd02::/64']);
    expect(familiesOf(await importedIps(west, key))).toEqual(['IPv6']);
    await exportService(east, 'shop/old', { endpoints: ['10.1.0.9'] });
    await clusterset.time.advance(6_000);
    const old = await find<ServiceImport>(west, serviceImportType, 'shop/old');
    expect(old?.spec.ips).toBeUndefined();
    expect(conditionOf(old?.status?.conditions, 'Ready')).toMatchObject({
      status: 'False',
      reason: 'IPFamilyNotSupported',
      message: 'the service has IPv4 alone, and Pods of this cluster have none, by the Pod ranges that it joined with',
    });
    const ref = { namespace: memberNamespace('west'), name: memberRecordName };
    const body = { data: { 'pod-ranges': 'fd02::/64,10.2.0.0/16' } };
    await clusterset.broker.admin.patch<ConfigMap>(configMapType, ref, { kind: 'merge', body });
    await clusterset.time.advance(610_000);
    expect(familiesOf(await importedIps(west, 'shop/old'))).toEqual(['IPv4']);
  });

  test('families: a derived Service -> of the families of the Pods here; none in common -> none', async () => {
    const { clusterset, east, west } = await start(['10.2.0.0/16'], { clusterSetIP: 'derived' });
    const derived = async () =>
      (await west.list<Service>(serviceType, { namespace: 'shop' })).items
        .filter(({ metadata }) => metadata.name.startsWith('derived-'))
        .map(({ spec }) => spec?.ipFamilies);
    expect(await derived()).toEqual([['IPv4']]);
    await exportService(east, 'shop/six', {
      endpoints: [],
      spec: { ipFamilies: ['IPv6'], ipFamilyPolicy: 'SingleStack' },
    });
    await clusterset.time.advance(6_000);
    expect(await derived()).toEqual([['IPv4']]);
    const six = await find<ServiceImport>(west, serviceImportType, 'shop/six');
    expect(conditionOf(six?.status?.conditions, 'Ready')?.reason).toBe('IPFamilyNotSupported');
  });
});

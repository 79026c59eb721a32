// More addresses and ports than a node's Envoy asks gateways for by name: the import says so.

import { afterEach, expect, test } from 'vitest';
import { startXdsTest } from '../../../test/support/xds.ts';
import { clusterPropertyType, clusterSetProperty } from '../../clusterset/kinds/cluster-property.ts';
import { type ServiceImport, serviceImportType } from '../../clusterset/kinds/service-import.ts';
import { clusterSetDnsName } from '../../clusterset/rules/clusterset-dns.ts';
import { networksData } from '../../clusterset/rules/networks/networks.ts';
import { virtualAddressesLabel } from '../../clusterset/rules/networks/virtual-endpoints.ts';
import { createAuthority } from '../../external/testing/pem.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { endpointSliceType } from '../../kube/objects/endpoint-slice.ts';
import { namespace } from '../../peering/testing/edge/memory-home.ts';

let close: (() => unknown) | undefined;
afterEach(() => close?.());

test('ways by name: 101 ports of 100 endpoints in another network -> carried to the bound, and the import says how many are not', async () => {
  const xds = await startXdsTest();
  close = () => xds.stop();
  const { client } = xds;
  await client.create(clusterPropertyType, {
    ...{ apiVersion: 'about.k8s.io/v1beta1', kind: 'ClusterProperty', metadata: { name: clusterSetProperty } },
    spec: { value: 'prod' },
  });
  const gateways = [{ address: '203.0.113.1', port: 15_443 }];
  const reach = { network: 'lab', gateways, trustRoots: [createAuthority().certificate], listenerPort: 15_101 };
  await client.create<ConfigMap>(configMapType, {
    ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: clusterSetDnsName, namespace } },
    data: networksData({ own: 'aws', clusters: new Map([['west', reach]]) }),
  });
  const place = { name: 'db', namespace: 'shop' };
  await client.create<ServiceImport>(serviceImportType, {
    ...{ apiVersion: 'multicluster.x-k8s.io/v1beta1', kind: 'ServiceImport', metadata: place },
    spec: { type: 'Headless', ports: [{ port: 9000, protocol: 'TCP' }] },
  });
  const labels = {
    'multicluster.kubernetes.io/service-name': 'db',
    'multicluster.kubernetes.io/source-cluster': 'west',
    [virtualAddressesLabel]: 'true',
  };
  await client.create(endpointSliceType, {
    ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
    metadata: { name: 'db-west', namespace: 'shop', labels },
    ports: Array.from({ length: 101 }, (_, at) => ({ name: `p${at}`, port: 9000 + at, protocol: 'TCP' })),
    endpoints: Array.from({ length: 100 }, (_, at) => ({ addresses: [`243.9.0.${at + 1}`], hostname: `db-${at}` })),
  });
  const said = async () => {
    const { status } = await client.get<ServiceImport>(serviceImportType, place);
    return status?.conditions?.find(({ type }) => type === 'Programmed')?.message ?? '';
  };
  const text =
    '100 of its addresses and ports in cluster west are not reached: nodes ask the gateways of a cluster for 10000 by name, and there are more';
  await expect.poll(said, { timeout: 20_000 }).toBe(text);
  expect(xds.role.service.views.sidecar.get('listener', 'gateway-names/west')).toBeDefined();
});

// The ports of a gateway: those that this cluster's own Service has, by number, whatever the import calls them.

import { afterEach, expect, test } from 'vitest';
import { addImport, startXdsTest } from '../../../test/support/xds.ts';
import { clusterPropertyType, clusterSetProperty } from '../../clusterset/kinds/cluster-property.ts';
import { type ServiceExport, serviceExportType } from '../../clusterset/kinds/service-export.ts';
import { clusterSetDnsName } from '../../clusterset/rules/clusterset-dns.ts';
import { networksData } from '../../clusterset/rules/networks/networks.ts';
import { createAuthority } from '../../external/testing/pem.ts';
import { type ConfigMap, configMapType } from '../../kube/objects/config-map.ts';
import { endpointSliceType } from '../../kube/objects/endpoint-slice.ts';
import { type ServicePort, serviceType } from '../../kube/objects/service.ts';
import { namespace } from '../../peering/testing/edge/memory-home.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const place = { name: 'web', namespace: 'shop' };
const conditions = (['Valid', 'Ready'] as const).map((type) => ({
  ...{ type, status: 'True' as const, reason: type === 'Ready' ? 'Exported' : 'Valid', message: '' },
  lastTransitionTime: '2026-01-01T00:00:00Z',
}));

/** The import has port 80, called http; the own Service has these, and an endpoint with the target port of each name. */
async function gatewayFor(ports: readonly ServicePort[], targets: Readonly<Record<string, number>>) {
  const xds = await startXdsTest();
  closing.push(() => xds.stop());
  const { client } = xds;
  await client.create(clusterPropertyType, {
    ...{ apiVersion: 'about.k8s.io/v1beta1', kind: 'ClusterProperty', metadata: { name: clusterSetProperty } },
    spec: { value: 'prod' },
  });
  const trustRoots = [createAuthority().certificate];
  const clusters = new Map([['west', { network: 'lab', gateways: [], trustRoots }]]);
  await client.create<ConfigMap>(configMapType, {
    ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: clusterSetDnsName, namespace } },
    data: networksData({ own: 'aws', clusters }),
  });
  await addImport(client, { name: 'web', ips: ['243.9.0.1'], port: 80, portName: 'http' });
  await client.create(endpointSliceType, {
    ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
    metadata: { name: 'web-1', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'web' } },
    ports: Object.entries(targets).map(([name, port]) => ({ name, port, protocol: 'TCP' })),
    endpoints: [{ addresses: ['10.70.2.1'] }],
  });
  const made = await client.create<ServiceExport>(serviceExportType, {
    ...{ apiVersion: 'multicluster.x-k8s.io/v1beta1', kind: 'ServiceExport', metadata: place },
  });
  await client.updateStatus<ServiceExport>(serviceExportType, { ...made, status: { conditions } });
  const spec = { ports: [...ports] };
  await client.create(serviceType, { apiVersion: 'v1', kind: 'Service', metadata: place, spec });
  const { gateway } = xds.role.service.views;
  const found = (port: number) => gateway.get('endpoints', `web.shop.svc.clusterset.local:${port}`)?.any;
  return { client, endpoints: (port: number) => found(port) && Buffer.from(found(port)!).toString('latin1') };
}

const patient = { timeout: 10_000 };
const address = '10.70.2.1';
/** A port as it is written in the bytes of an endpoint: field 3, a number of two bytes. */
const written = (port: number) => Buffer.from([0x18, (port & 0x7f) | 0x80, port >> 7]).toString('latin1');

test('gateway: the import calls a port otherwise than the own Service -> its endpoints are found by the number', async () => {
  const { endpoints } = await gatewayFor([{ name: 'web', port: 80 }], { web: 8080 });
  await expect.poll(() => endpoints(80), patient).toContain(address);
  expect(endpoints(80)).toContain(written(8080));
});

test('gateway: the import’s name is that of another port here -> the port with the number, never the other one', async () => {
  const ports = [
    { name: 'http', port: 81 },
    { name: 'web', port: 80 },
  ];
  const { endpoints } = await gatewayFor(ports, { http: 9000, web: 8080 });
  await expect.poll(() => endpoints(80), patient).toContain(written(8080));
  expect(endpoints(80)).not.toContain(written(9000));
});

test('gateway: a port that other clusters alone have -> not served; once the Service has it -> served', async () => {
  const { client, endpoints } = await gatewayFor([{ name: 'http', port: 81 }], { http: 9000 });
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(endpoints(80)).toBeUndefined();
  const present = await client.get(serviceType, place);
  await client.update(serviceType, { ...present, spec: { ports: [{ name: 'http', port: 80 }] } } as typeof present);
  await expect.poll(() => endpoints(80), patient).toContain(written(9000));
});

import { type AddressInfo, createServer } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { startHome } from '../../sim/home.ts';
import { Simulation } from '../../sim/virtual-world.ts';
import { serviceImportType } from '../clusterset/kinds/service-import.ts';
import { endpointSliceType } from '../kube/objects/endpoint-slice.ts';
import { namespaceType } from '../kube/objects/namespace.ts';
import { connectionProblems } from './connectivity.ts';

const server = createServer((socket) => socket.destroy());
afterEach(() => void server.close());

const metadata = { name: 'db', namespace: 'shop' };
/** A port of this machine where no resolver answers: names of headless services have no address to compare. */
const noResolver = '127.0.0.1:9';

test('doctor --connect: a headless service whose endpoint answers -> no problem; one that does not -> named', async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const simulation = new Simulation({ seed: 1 });
  const { admin } = await startHome(simulation);
  const world = simulation.world('cli');
  await admin.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  await admin.create(serviceImportType, {
    ...{ apiVersion: 'multicluster.x-k8s.io/v1beta1', kind: 'ServiceImport', metadata },
    spec: { type: 'Headless', ports: [{ port, protocol: 'TCP' }] },
  } as never);
  await admin.create(endpointSliceType, {
    ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
    metadata: {
      ...{ name: 'db-east', namespace: 'shop' },
      labels: { 'multicluster.kubernetes.io/service-name': 'db', 'multicluster.kubernetes.io/source-cluster': 'east' },
    },
    endpoints: [{ addresses: ['127.0.0.1'], conditions: { ready: true } }],
    ports: [{ port, protocol: 'TCP' }],
  } as never);
  const host = { environment: {}, readText: async () => undefined, run: async () => ({ kind: 'timed out' as const }) };
  const tried = () =>
    connectionProblems({ world, host, print: () => {} }, admin, { connect: ['shop/db'], dns: noResolver });
  expect(await tried()).toEqual([{ service: 'shop/db', from: 'here', problems: [] }]);
  await new Promise((resolve) => server.close(resolve));
  const [{ problems } = { problems: [] }] = await tried();
  expect(problems).toEqual([`endpoint 127.0.0.1:${port} is called ready and does not answer: refused`]);
});

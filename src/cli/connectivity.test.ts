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
const host = { environment: {}, readText: async () => undefined, run: async () => ({ kind: 'timed out' as const }) };
/** A port of this machine where no resolver answers: names of headless services have no address to compare. */
const noResolver = '127.0.0.1:9';

/** A home that imports the service, with endpoints of these addresses. */
async function start(spec: object, addresses: readonly string[]) {
  if (!server.listening) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const simulation = new Simulation({ seed: 1 });
  const { admin } = await startHome(simulation);
  const world = simulation.world('cli');
  await admin.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  await admin.create(serviceImportType, {
    ...{ apiVersion: 'multicluster.x-k8s.io/v1beta1', kind: 'ServiceImport', metadata },
    spec: { ...spec, ports: [{ port, protocol: 'TCP' }] },
  } as never);
  await admin.create(endpointSliceType, {
    ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
    metadata: {
      ...{ name: 'db-east', namespace: 'shop' },
      labels: { 'multicluster.kubernetes.io/service-name': 'db', 'multicluster.kubernetes.io/source-cluster': 'east' },
    },
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    ports: [{ port, protocol: 'TCP' }],
  } as never);
  const tried = () =>
    connectionProblems({ world, host, print: () => {} }, admin, { connect: ['shop/db'], dns: noResolver });
  return { port, tried };
}

test('doctor --connect: a headless service whose endpoint answers -> no problem; one that does not -> named', async () => {
  const { port, tried } = await start({ type: 'Headless' }, ['127.0.0.1']);
  expect(await tried()).toEqual([{ service: 'shop/db', from: 'here', problems: [] }]);
  await new Promise((resolve) => server.close(resolve));
  const [{ problems } = { problems: [] }] = await tried();
  expect(problems).toEqual([`endpoint 127.0.0.1:${port} is called ready and does not answer: refused`]);
});

test('doctor --connect: connections by the clusterset IP succeed, one ready endpoint is dead -> named', async () => {
  const { port, tried } = await start({ type: 'ClusterSetIP', ips: ['127.0.0.1'] }, ['127.0.0.1', '127.0.0.2']);
  const [{ problems } = { problems: [] }] = await tried();
  expect(problems).toContain(`endpoint 127.0.0.2:${port} is called ready and does not answer: refused`);
});

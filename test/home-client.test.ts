// The client, the informer and the endpoints controllers on a real home: SQLite, TLS, real sockets, real probes.

import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Command } from 'commander';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { silentLog } from '../src/base/log.ts';
import { createRealHost } from '../src/base/real/host.ts';
import { createRealProber } from '../src/base/real/prober.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { addRegisterCommands } from '../src/cli/register/register.ts';
import { runEndpointsController } from '../src/endpoints/controller.ts';
import { RegistrationController } from '../src/endpoints/registration-controller.ts';
import { type Client, createClient } from '../src/kube/client/client.ts';
import { findHome } from '../src/kube/client/kubeconfig.ts';
import { createInformer } from '../src/kube/controller/informer.ts';
import { type EndpointSlice, endpointSliceType } from '../src/kube/objects/endpoint-slice.ts';
import type { AnyObject, ResourceType } from '../src/kube/objects/object.ts';
import { podType } from '../src/kube/objects/pod.ts';
import { serviceType } from '../src/kube/objects/service.ts';
import { type Home, startHome } from '../src/main/home/part.ts';

const configMaps: ResourceType = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  isNamespaced: true,
};
const world = createRealWorld();
let directory = '';
let home: Home;
let client: Client;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'portolan-client-'));
  home = await startHome({ world, log: silentLog, directory, listen: { host: '127.0.0.1', port: 0 } });
  const access = await findHome({ host: createRealHost(), clock: world.clock, kubeconfig: home.kubeconfig });
  client = createClient(world.network.http(access), { world, userAgent: 'test' });
});

afterAll(async () => {
  client.close();
  await home.stop();
  await rm(directory, { recursive: true });
});

test('client on a real home: 2,000 objects written, changed and deleted -> an informer over TLS ends with the same', async () => {
  const informer = createInformer({
    ...{ client, world, type: configMaps, namespace: 'default' },
    fieldSelector: 'metadata.name!=kube-root-ca.crt',
  });
  const seen = { deletes: 0 };
  informer.on((_key, next) => {
    if (next === undefined) seen.deletes += 1;
  });
  await inBatches(1000, (index) => client.create(configMaps, configMap(`before-${index}`)));
  informer.start();
  await informer.whenSynced();
  expect(informer.size).toBe(1000);
  await inBatches(1000, (index) => client.create(configMaps, configMap(`after-${index}`)));
  await inBatches(500, (index) => client.delete(configMaps, { namespace: 'default', name: `before-${index}` }));
  await until(() => informer.size === 1500 && seen.deletes === 500);
  const { items, metadata } = await client.list(configMaps, { namespace: 'default' });
  expect(metadata.continue ?? '').toBe('');
  for (const item of items.filter(({ metadata }) => metadata.name !== 'kube-root-ca.crt')) {
    const key = `default/${item.metadata.name}`;
    expect(informer.get(key)?.metadata.resourceVersion).toBe(item.metadata.resourceVersion);
  }
  informer.stop();
});

test('endpoints on a real home: a Service and a Pod -> a slice; the Service goes -> so does the slice', async () => {
  const controller = runEndpointsController({ client: localClient(), world, log: silentLog });
  await client.create(serviceType, service('pods', { app: 'pods' }));
  await client.create(podType, pod('pods-1', { app: 'pods' }));
  const status = {
    phase: 'Running',
    podIPs: [{ ip: '10.1.2.3' }],
    podIP: '10.1.2.3',
    conditions: [{ type: 'Ready', status: 'True' }],
  };
  const ref = { namespace: 'default', name: 'pods-1' };
  await client.patch(podType, ref, { kind: 'merge', body: { status } }, { subresource: 'status' });
  await until(async () => (await endpointsOf('pods')).join() === '10.1.2.3 ready');
  await client.delete(serviceType, { namespace: 'default', name: 'pods' });
  await until(async () => (await slicesOf('pods')).length === 0);
  await controller.stop();
});

test('register on a real home: a process on this machine with an http check -> ready while it is well, gone when deregistered', async () => {
  const controller = new RegistrationController({
    client: localClient(),
    world,
    log: silentLog,
    prober: createRealProber(),
  });
  let isWell = true;
  const server = createHttpServer((_request, response) => response.writeHead(isWell ? 200 : 503).end());
  const port = await listen(server);
  await run(
    `register default/vm --address 127.0.0.1 --port http=${port} --check http://vm:${port}/healthz --interval 200ms --fall 2`,
  );
  await until(async () => (await endpointsOf('vm')).join() === '127.0.0.1 ready');
  isWell = false;
  await until(async () => (await endpointsOf('vm')).join() === '127.0.0.1 not ready');
  isWell = true;
  await until(async () => (await endpointsOf('vm')).join() === '127.0.0.1 ready');
  server.closeAllConnections();
  server.close();
  await until(async () => (await endpointsOf('vm')).join() === '127.0.0.1 not ready');
  expect(await run('deregister default/vm --address 127.0.0.1')).toContain('removed Service default/vm');
  expect(await slicesOf('vm')).toEqual([]);
  controller.stop();
});

function localClient(): Client {
  return createClient(home.transport, { world, userAgent: 'controllers' });
}

async function run(line: string): Promise<string[]> {
  const lines: string[] = [];
  const program = new Command().exitOverride();
  addRegisterCommands(program, { world, host: createRealHost(), print: (text) => lines.push(text) });
  await program.parseAsync([...line.split(' '), '--kubeconfig', home.kubeconfig], { from: 'user' });
  return lines;
}

async function slicesOf(name: string): Promise<EndpointSlice[]> {
  const labelSelector = `kubernetes.io/service-name=${name}`;
  return (await client.list<EndpointSlice>(endpointSliceType, { namespace: 'default', labelSelector })).items;
}

async function endpointsOf(name: string): Promise<string[]> {
  const endpoints = (await slicesOf(name)).flatMap((slice) => slice.endpoints);
  return endpoints.map(({ addresses, conditions }) => `${addresses?.[0]} ${conditions?.ready ? 'ready' : 'not ready'}`);
}

async function inBatches(count: number, run: (index: number) => Promise<unknown>): Promise<void> {
  for (let start = 0; start < count; start += 50) {
    await Promise.all(Array.from({ length: Math.min(50, count - start) }, (_, index) => run(start + index)));
  }
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let round = 0; round < 600; round += 1) {
    if (await condition()) return;
    await pause(50);
  }
  expect(await condition()).toBe(true);
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

function configMap(name: string): AnyObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data: { a: 'b' } };
}

function service(name: string, selector: Record<string, string>): AnyObject {
  const metadata = { name, namespace: 'default' };
  return { apiVersion: 'v1', kind: 'Service', metadata, spec: { selector, ports: [{ name: 'http', port: 80 }] } };
}

function pod(name: string, labels: Record<string, string>): AnyObject {
  const metadata = { name, namespace: 'default', labels };
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [{ name: 'c', image: 'c' }] } };
}

// A clusterset for measuring: the broker and all homes on disk, as they run, with all agents in this one process. The
// bytes that an agent receives from the broker are counted.

import { mkdtempSync, rmSync } from 'node:fs';
import { service, serviceExport, slice } from '../../sim/manifests.ts';
import type { HttpTransport } from '../../src/base/http.ts';
import { silentLog } from '../../src/base/log.ts';
import { createRealWorld } from '../../src/base/real/world.ts';
import { type Agent, createAgent } from '../../src/clusterset/agent/agent.ts';
import { clusterType } from '../../src/clusterset/kinds/cluster.ts';
import { clusterSetType } from '../../src/clusterset/kinds/cluster-set.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import { type Client, createClient } from '../../src/kube/client/client.ts';
import { endpointSliceType, sourceClusterLabel } from '../../src/kube/objects/endpoint-slice.ts';
import { namespaceType } from '../../src/kube/objects/namespace.ts';
import type { ResourceType } from '../../src/kube/objects/object.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { type Home, startHome } from '../../src/main/home/part.ts';

export const set = 'prod';
export const world = createRealWorld();

export interface BenchCluster {
  readonly id: string;
  readonly home: Home;
  readonly client: Client;
  readonly bytesFromBroker: { count: number };
  agent?: Agent;
}

export interface BenchSet {
  readonly directory: string;
  readonly broker: Home;
  readonly brokerClient: Client;
  readonly clusters: BenchCluster[];
}

export function memberNamespace(id: string): string {
  return `${set}-m-${id}`;
}

export async function startSet(count: number): Promise<BenchSet> {
  const directory = benchDirectory();
  const broker = await openHome(directory, 'broker');
  const brokerClient = clientOf(broker.transport);
  await create(brokerClient, namespaceType, { name: set }, {});
  await create(brokerClient, clusterSetType, { name: set, namespace: set }, { spec: {} });
  const running: BenchSet = { directory, broker, brokerClient, clusters: [] };
  for (let index = 0; index < count; index += 1) {
    const cluster = await addCluster(running, `c${index}`);
    cluster.agent = createAgent({
      world,
      log: silentLog,
      home: cluster.client,
      broker: clientOf(counting(broker.transport, cluster.bytesFromBroker)),
      membership: { clusterset: set, clusterId: cluster.id, namespace: memberNamespace(cluster.id) },
    });
    cluster.agent.start();
  }
  return running;
}

/** On a real disk, unlike a temporary folder in memory; removed at the end. */
export function benchDirectory(): string {
  const directory = mkdtempSync(`${import.meta.dirname}/../.bench-`);
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** A member with its home, and no agent yet. */
export async function addCluster(running: BenchSet, id: string): Promise<BenchCluster> {
  const home = await openHome(running.directory, id);
  const client = clientOf(home.transport);
  await create(client, namespaceType, { name: 'shop' }, {});
  await create(running.brokerClient, namespaceType, { name: memberNamespace(id) }, {});
  const spec = { namespace: memberNamespace(id) };
  await create(running.brokerClient, clusterType, { name: id, namespace: set }, { spec });
  const cluster: BenchCluster = { id, home, client, bytesFromBroker: { count: 0 } };
  running.clusters.push(cluster);
  return cluster;
}

export async function stopSet({ broker, clusters }: BenchSet): Promise<void> {
  for (const { agent } of clusters) await agent?.stop();
  for (const { home } of clusters) await home.stop();
  await broker.stop();
}

/** Without a selector, so that its slices are those written here alone, also where an agent looks for Pods. */
export const handFed = { selector: {} };

/** Every service is exported by one cluster, in turn; all clusters import all of them. */
export async function fill(clusters: readonly { readonly client: Client }[], count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const { client } = clusters[index % clusters.length]!;
    await client.create(serviceType, service(`shop/s${index}`, handFed));
    await client.create(endpointSliceType, slice(`shop/s${index}`, { endpoints: ['10.1.0.1', '10.1.0.2'] }));
    await client.create(serviceExportType, serviceExport(`shop/s${index}`));
  }
  for (const { client } of clusters) await untilImported(client, { services: count, slices: count });
}

export async function untilImported(client: Client, wanted: { services: number; slices: number }): Promise<void> {
  const slices = { namespace: 'shop', labelSelector: sourceClusterLabel };
  for (;;) {
    const imports = (await client.list(serviceImportType, { namespace: 'shop' })).items.length;
    const sliceCount = (await client.list(endpointSliceType, slices)).items.length;
    if (imports === wanted.services && sliceCount >= wanted.slices) return;
    await pause(200);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => world.timers.after(ms, resolve));
}

function openHome(directory: string, id: string): Promise<Home> {
  const listen = { host: '127.0.0.1', port: 0 };
  return startHome({ world, log: silentLog, directory: `${directory}/${id}`, listen });
}

function clientOf(transport: HttpTransport): Client {
  return createClient(transport, { world, userAgent: 'bench' });
}

function counting(transport: HttpTransport, bytes: { count: number }): HttpTransport {
  return {
    send: async (request) => {
      const response = await transport.send(request);
      if (!(response.body instanceof Uint8Array)) return { ...response, body: countedStream(response.body, bytes) };
      bytes.count += response.body.length;
      return response;
    },
    close: () => transport.close(),
  };
}

async function* countedStream(body: AsyncIterable<Uint8Array>, bytes: { count: number }): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    bytes.count += chunk.length;
    yield chunk;
  }
}

async function create(
  client: Client,
  type: ResourceType,
  metadata: { name: string; namespace?: string },
  body: object,
): Promise<void> {
  const apiVersion = type.group === '' ? type.version : `${type.group}/${type.version}`;
  await client.create(type, { apiVersion, kind: type.kind, metadata, ...body });
}

// `npm run bench:mcs`: how long a change takes from one cluster to the last, what it moves, and what joining costs. The
// broker, all homes (on disk, as they run) and all agents share this one process and so one core; `--seconds N` shortens
// the minute of changes, `--only 3x100` runs one size.

import { mkdtempSync, rmSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { service, serviceExport, slice } from '../sim/manifests.ts';
import type { HttpTransport } from '../src/base/http.ts';
import { silentLog } from '../src/base/log.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { type Client, createClient } from '../src/client/client.ts';
import { createInformer } from '../src/client/informer.ts';
import { type Agent, createAgent } from '../src/controllers/agent.ts';
import { type Home, startHome } from '../src/main/home.ts';
import { clusterType } from '../src/model/cluster.ts';
import { clusterSetType } from '../src/model/cluster-set.ts';
import { type EndpointSlice, endpointSliceType, sourceClusterLabel } from '../src/model/endpoint-slice.ts';
import { namespaceType } from '../src/model/namespace.ts';
import { serviceType } from '../src/model/service.ts';
import { serviceExportType } from '../src/model/service-export.ts';
import { serviceImportType } from '../src/model/service-import.ts';
import { type Figure, percentile, report } from './report.ts';

const { values } = parseArgs({
  options: { seconds: { type: 'string' }, only: { type: 'string' }, json: { type: 'string' } },
});
const seconds = Number(values.seconds ?? 60);
const changesPerSecond = 10;
const directory = mkdtempSync(`${import.meta.dirname}/.bench-`);
const world = createRealWorld();
const figures: Figure[] = [];
const set = 'prod';

interface Cluster {
  readonly id: string;
  readonly home: Home;
  readonly client: Client;
  readonly bytesFromBroker: { count: number };
  agent?: Agent;
}

interface Clusterset {
  readonly broker: Home;
  readonly brokerClient: Client;
  readonly clusters: Cluster[];
}

const sizes = [
  { clusters: 3, services: 100 },
  { clusters: 10, services: 100 },
  { clusters: 10, services: 1000 },
];

try {
  for (const size of sizes) {
    const name = `${size.clusters}x${size.services}`;
    if (values.only === undefined || values.only === name) await measureSize(name, size);
  }
  if (values.only === undefined) await measureBigService();
} finally {
  rmSync(directory, { recursive: true, force: true });
}
report('Multi-cluster services', figures);
process.exit(0);

async function measureSize(name: string, size: { clusters: number; services: number }): Promise<void> {
  const running = await startSet(name, size.clusters);
  await fill(running, size.services);
  await measureChanges(name, running, size.services);
  if (size.services === 1000) await measureJoin(running, size.services);
  await stopSet(running);
}

async function startSet(name: string, count: number): Promise<Clusterset> {
  const open = (id: string) =>
    startHome({
      world,
      log: silentLog,
      directory: `${directory}/${name}-${id}`,
      listen: { host: '127.0.0.1', port: 0 },
    });
  const broker = await open('broker');
  const brokerClient = clientOf(broker.transport);
  await create(brokerClient, namespaceType, { name: set }, {});
  await create(brokerClient, clusterSetType, { name: set, namespace: set }, { spec: {} });
  const running: Clusterset = { broker, brokerClient, clusters: [] };
  for (let index = 0; index < count; index += 1) await addCluster(running, `c${index}`, await open(`c${index}`));
  return running;
}

async function addCluster(running: Clusterset, id: string, home: Home): Promise<Cluster> {
  const client = clientOf(home.transport);
  await create(client, namespaceType, { name: 'shop' }, {});
  await create(running.brokerClient, namespaceType, { name: `${set}-m-${id}` }, {});
  await create(
    running.brokerClient,
    clusterType,
    { name: id, namespace: set },
    { spec: { namespace: `${set}-m-${id}` } },
  );
  const cluster: Cluster = { id, home, client, bytesFromBroker: { count: 0 } };
  running.clusters.push(cluster);
  startAgent(running, cluster);
  return cluster;
}

function startAgent(running: Clusterset, cluster: Cluster): void {
  cluster.agent = createAgent({
    world,
    log: silentLog,
    home: cluster.client,
    broker: clientOf(counting(running.broker.transport, cluster.bytesFromBroker)),
    membership: { clusterset: set, clusterId: cluster.id, namespace: `${set}-m-${cluster.id}` },
  });
  cluster.agent.start();
}

/** Every service is exported by one cluster, in turn; all clusters import all of them. */
async function fill(running: Clusterset, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const { client } = running.clusters[index % running.clusters.length]!;
    await client.create(serviceType, service(`shop/s${index}`));
    await client.create(endpointSliceType, slice(`shop/s${index}`, { endpoints: ['10.1.0.1', '10.1.0.2'] }));
    await client.create(serviceExportType, serviceExport(`shop/s${index}`));
  }
  for (const { client } of running.clusters) await untilImported(client, count);
}

async function untilImported(client: Client, count: number): Promise<void> {
  for (;;) {
    const imports = (await client.list(serviceImportType, { namespace: 'shop' })).items.length;
    const slices = (await client.list(endpointSliceType, { namespace: 'shop', labelSelector: sourceClusterLabel }))
      .items.length;
    if (imports === count && slices >= count) return;
    await pause(200);
  }
}

async function measureChanges(name: string, running: Clusterset, services: number): Promise<void> {
  const arrivals = watchArrivals(running);
  await arrivals.ready;
  const total = seconds * changesPerSecond;
  for (let index = 0; index < total; index += 1) {
    const address = `10.200.${Math.floor(index / 250)}.${1 + (index % 250)}`;
    const at = index % services;
    const { metadata, endpoints } = slice(`shop/s${at}`, { endpoints: [address, '10.1.0.2'] });
    arrivals.expect(address);
    const { client } = running.clusters[at % running.clusters.length]!;
    void client.patch(endpointSliceType, metadata, { kind: 'merge', body: { endpoints } });
    await pause(1000 / changesPerSecond);
  }
  await arrivals.settle();
  const sorted = arrivals.latenciesMs.toSorted((a, b) => a - b);
  const isBig = name === '10x1000';
  const p99 = percentile(sorted, 0.99);
  figures.push({ name: `${name}: change to the last cluster, p50`, value: percentile(sorted, 0.5), unit: 'ms' });
  figures.push({
    name: `${name}: change to the last cluster, p99`,
    value: p99,
    unit: 'ms',
    ...(isBig ? { wanted: 'under 250 ms', isMet: p99 < 250 } : {}),
  });
  arrivals.stop();
}

/** Notes for each expected address when it stands in an imported slice of the last cluster. */
function watchArrivals(running: Clusterset) {
  const open = new Map<string, { startedMs: number; missing: Set<string> }>();
  const latenciesMs: number[] = [];
  const informers = running.clusters.map(({ id, client }) => {
    const informer = createInformer<EndpointSlice>({
      client,
      world,
      type: endpointSliceType,
      namespace: 'shop',
      labelSelector: sourceClusterLabel,
    });
    informer.on((_key, next) => arrived(id, next?.endpoints?.[0]?.addresses[0] ?? ''));
    informer.start();
    return informer;
  });
  function arrived(id: string, address: string): void {
    const entry = open.get(address);
    if (entry === undefined || !entry.missing.delete(id) || entry.missing.size > 0) return;
    latenciesMs.push(performance.now() - entry.startedMs);
    open.delete(address);
  }
  return {
    ready: Promise.all(informers.map((informer) => informer.whenSynced())),
    latenciesMs,
    expect: (address: string) =>
      open.set(address, { startedMs: performance.now(), missing: new Set(running.clusters.map(({ id }) => id)) }),
    settle: async () => {
      for (let round = 0; open.size > 0 && round < 600; round += 1) await pause(100);
      if (open.size > 0) throw new Error(`${open.size} changes never arrived everywhere`);
    },
    stop: () => {
      for (const informer of informers) informer.stop();
    },
  };
}

async function measureJoin(running: Clusterset, services: number): Promise<void> {
  const home = await startHome({
    world,
    log: silentLog,
    directory: `${directory}/joining`,
    listen: { host: '127.0.0.1', port: 0 },
  });
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  const startedMs = performance.now();
  const cluster = await addCluster(running, 'joining', home);
  await untilImported(cluster.client, services);
  figures.push({
    name: `joining a set of ${services} services`,
    value: (performance.now() - startedMs) / 1000,
    unit: 's',
  });
  globalThis.gc?.();
  const heapMb = (process.memoryUsage().heapUsed - before) / 2 ** 20;
  figures.push({
    name: `memory of its agent and its home's new facts, ${services} services`,
    value: heapMb,
    unit: 'MB',
  });
}

async function measureBigService(): Promise<void> {
  const running = await startSet('big', 2);
  const [source, reader] = running.clusters as [Cluster, Cluster];
  await source.client.create(serviceType, service('shop/big'));
  const endpointsOf = (index: number) => Array.from({ length: 100 }, (_, at) => `10.${index}.1.${at + 1}`);
  for (let index = 0; index < 50; index += 1) {
    await source.client.create(
      endpointSliceType,
      slice('shop/big', { endpoints: endpointsOf(index), suffix: `p${index}` }),
    );
  }
  await source.client.create(serviceExportType, serviceExport('shop/big'));
  await untilSlices(reader.client, 50);
  await pause(2_000);
  const arrivals = watchArrivals(running);
  await arrivals.ready;
  const bytes: number[] = [];
  for (let index = 0; index < 50; index += 1) {
    const address = `10.201.0.${index + 1}`;
    const { metadata, endpoints } = slice('shop/big', {
      endpoints: [address, ...endpointsOf(index).slice(1)],
      suffix: `p${index}`,
    });
    const before = reader.bytesFromBroker.count;
    arrivals.expect(address);
    await source.client.patch(endpointSliceType, metadata, { kind: 'merge', body: { endpoints } });
    await pause(200);
    bytes.push(reader.bytesFromBroker.count - before);
  }
  await arrivals.settle();
  arrivals.stop();
  const sorted = arrivals.latenciesMs.toSorted((a, b) => a - b);
  const median = percentile(
    bytes.toSorted((a, b) => a - b),
    0.5,
  );
  figures.push({
    name: 'one of 5,000 endpoints: change to the last cluster, p99',
    value: percentile(sorted, 0.99),
    unit: 'ms',
  });
  figures.push({
    name: 'one of 5,000 endpoints: bytes moved to an importing cluster, p50',
    value: median,
    unit: 'B',
    wanted: 'at most 16 KiB',
    isMet: median <= 16 * 1024,
  });
  await stopSet(running);
}

async function untilSlices(client: Client, count: number): Promise<void> {
  const labelSelector = sourceClusterLabel;
  while ((await client.list(endpointSliceType, { namespace: 'shop', labelSelector })).items.length < count)
    await pause(100);
}

async function stopSet({ broker, clusters }: Clusterset): Promise<void> {
  for (const { agent } of clusters) await agent?.stop();
  for (const { home } of clusters) await home.stop();
  await broker.stop();
}

function clientOf(transport: HttpTransport): Client {
  return createClient(transport, { world, userAgent: 'bench' });
}

function counting(transport: HttpTransport, bytes: { count: number }): HttpTransport {
  return {
    send: async (request) => {
      const response = await transport.send(request);
      if (response.body instanceof Uint8Array) {
        bytes.count += response.body.length;
        return response;
      }
      return { ...response, body: countedStream(response.body, bytes) };
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
  type: typeof namespaceType,
  metadata: { name: string; namespace?: string },
  body: object,
): Promise<void> {
  const apiVersion = type.group === '' ? type.version : `${type.group}/${type.version}`;
  await client.create(type, { apiVersion, kind: type.kind, metadata, ...body });
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => world.timers.after(ms, resolve));
}

// One process of the namespace test, run inside its network namespace: the broker, or a cluster's home with its agent and a
// service behind real addresses. Told what to be by JSON in its argument; says what it is in one line of JSON. A cluster
// then takes orders, one per line: `ready` and `unready` are about the endpoint of its service.

import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { silentLog } from '../../src/base/log.ts';
import { createRealHost } from '../../src/base/real/host.ts';
import { createRealWorld } from '../../src/base/real/world.ts';
import { brokerInit } from '../../src/cli/clusterset/broker-init.ts';
import { brokerToken } from '../../src/cli/clusterset/broker-token.ts';
import { join } from '../../src/cli/clusterset/join.ts';
import { createAgent } from '../../src/clusterset/agent/agent.ts';
import { requireMembership } from '../../src/clusterset/explain/consult.ts';
import { serviceExportType } from '../../src/clusterset/kinds/service-export.ts';
import { parseJoinToken } from '../../src/clusterset/membership/join-token.ts';
import { federationType } from '../../src/federation/kinds/federation.ts';
import { type Client, createClient } from '../../src/kube/client/client.ts';
import { endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { namespaceType } from '../../src/kube/objects/namespace.ts';
import type { AnyObject } from '../../src/kube/objects/object.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { startHome } from '../../src/main/home/part.ts';

export interface BrokerTask {
  readonly role: 'broker';
  readonly directory: string;
  readonly address: string;
  readonly clusters: readonly { readonly id: string; readonly region: string; readonly zone: string }[];
  readonly leaseSeconds: number;
}

export interface ClusterTask {
  readonly role: 'cluster';
  readonly directory: string;
  readonly id: string;
  readonly region: string;
  readonly zone: string;
  /** Address of this namespace for the others. */
  readonly address: string;
  /** Where it holds service addresses; on its loopback device. */
  readonly clusterIP: string;
  readonly serviceRange: string;
  readonly token: string;
}

const world = createRealWorld();
const host = createRealHost();
const deps = { world, host, print: () => {}, setExitCode: () => {} };
const clusterset = 'prod';
const namespace = 'myns';
const task = JSON.parse(process.argv[2] ?? '{}') as BrokerTask | ClusterTask;

process.stdout.write(`${JSON.stringify(task.role === 'broker' ? await runBroker(task) : await runCluster(task))}\n`);

async function runBroker({ directory, address, clusters, leaseSeconds }: BrokerTask): Promise<object> {
  const home = await startHome({ world, log: silentLog, directory, listen: { host: address, port: 0 } });
  const client = createClient(home.transport, { world, userAgent: 'test' });
  // The first return is trusted at once; the hold-down is for those that flap.
  const lease = { renewSeconds: 1, durationSeconds: leaseSeconds, holdDownSeconds: 1, holdDownMaxSeconds: 2 };
  await brokerInit({ client, deps, clusterset, spec: { lease, clusterSetIP: 'none' } });
  const tokens: Record<string, string> = {};
  for (const { id, region, zone } of clusters) {
    const spec = { region, zone };
    const request = { client, access: home, clusterset, id, spec, lifetimeMs: 600_000, isRenewal: false };
    tokens[id] = await brokerToken(request);
  }
  await client.create(federationType, object('portolan.dev/v1alpha1', 'Federation', clusterset, 'world', { spec: {} }));
  return { kubeconfig: home.kubeconfig, tokens };
}

async function runCluster(cluster: ClusterTask): Promise<object> {
  const { directory, id, serviceRange, token } = cluster;
  const listen = { host: '127.0.0.1', port: 0 };
  const home = await startHome({ world, log: silentLog, directory, listen, serviceRanges: [serviceRange] });
  const client = createClient(home.transport, { world, userAgent: 'test' });
  const claims = { region: cluster.region, zone: cluster.zone, podRanges: [], serviceRanges: [serviceRange] };
  await join(deps, { home: client, token: parseJoinToken(token), claims, lifetimeMs: 3_600_000 });
  const membership = await requireMembership(client);
  const broker = createClient(
    world.network.http({
      server: membership.server,
      certificateAuthority: membership.certificateAuthority,
      bearerToken: async () => membership.token,
    }),
    { world, userAgent: `portolan-agent/${id}` },
  );
  createAgent({ world, log: silentLog, home: client, broker, membership, routesServices: true }).start();
  await client.create(namespaceType, object('v1', 'Namespace', undefined, namespace));
  await serveMyService(client, cluster);
  return { kubeconfig: home.kubeconfig };
}

/** A balanced service whose backend answers on the cluster IP, which lies on lo, and on the namespace's own address. */
async function serveMyService(client: Client, { id, address, clusterIP }: ClusterTask): Promise<void> {
  const backend = createServer((_request, response) => void response.end(`${id}\n`));
  await new Promise<void>((resolve) => backend.listen(80, '0.0.0.0', resolve));
  const port = { name: 'http', port: 80, protocol: 'TCP' };
  const service = await client.create(
    serviceType,
    object('v1', 'Service', namespace, 'myservice', { spec: { type: 'LoadBalancer', clusterIP, ports: [port] } }),
  );
  await client.updateStatus(serviceType, {
    ...service,
    status: { loadBalancer: { ingress: [{ ip: address }] } },
  } as AnyObject);
  const slice = object('discovery.k8s.io/v1', 'EndpointSlice', namespace, 'myservice-1', {
    addressType: 'IPv4',
    ports: [port],
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
  });
  slice.metadata.labels = { 'kubernetes.io/service-name': 'myservice' };
  await client.create(endpointSliceType, slice);
  takeOrders(async (isReady) => {
    const endpoints = [{ addresses: [address], conditions: { ready: isReady } }];
    const ref = { namespace, name: 'myservice-1' };
    await client.patch(endpointSliceType, ref, { kind: 'merge', body: { endpoints } });
  });
  await client.create(
    serviceExportType,
    object('multicluster.x-k8s.io/v1beta1', 'ServiceExport', namespace, 'myservice'),
  );
}

function object(apiVersion: string, kind: string, inNamespace: string | undefined, name: string, rest: object = {}) {
  return {
    apiVersion,
    kind,
    metadata: { name, ...(inNamespace ? { namespace: inNamespace } : {}) },
    ...rest,
  } as AnyObject;
}

function takeOrders(setReady: (isReady: boolean) => Promise<void>): void {
  let turn = Promise.resolve();
  createInterface({ input: process.stdin }).on('line', (line) => {
    turn = turn.then(() => setReady(line === 'ready'));
  });
}

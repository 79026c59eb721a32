// Puts the demo's sample services into one cluster: real HTTP backends that answer with their own name, registered behind
// Services, and exported.

import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer } from '../../base/real/node-http.ts';
import { register } from '../../cli/register/register.ts';
import { exportToAnnotation, serviceExportType } from '../../clusterset/kinds/service-export.ts';
import type { Client } from '../../kube/client/client.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import { serviceType } from '../../kube/objects/service.ts';
import { type DemoCluster, demoNamespace, type Sample, samples } from './samples.ts';

export interface SampleServices {
  readonly backends: readonly SampleBackend[];
  stop(): Promise<void>;
}

export interface SampleBackend {
  /** The service it stands behind. */
  readonly service: string;
  readonly address: string;
  readonly port: number;
}

/** `untilDecided` resolves when the cluster that decides on a sample has exported it. */
export async function startSamples(
  cluster: DemoCluster,
  client: Client,
  untilDecided: (sample: Sample) => Promise<void>,
): Promise<SampleServices> {
  await client.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: demoNamespace } });
  const backends: (Backend & SampleBackend)[] = [];
  let host = 0;
  for (const sample of samples.filter(({ clusters }) => clusters.includes(cluster.id))) {
    const service = await client.create(serviceType, serviceOf(sample, cluster.id));
    for (let n = 0; n < sample.backends; n += 1) {
      host += 1;
      const backend = await startSample(sample, cluster, host);
      const { address } = backend;
      backends.push({ ...backend, service: sample.name });
      await registerBackend({ client, sample, cluster, backend });
      // There is no cloud here that would give it one: the backend itself stands where a balancer would, on its port.
      const status = { loadBalancer: { ingress: [{ ip: address }] } };
      if (sample.isBalanced) await client.updateStatus(serviceType, { ...service, status });
    }
    if (sample.decider !== cluster.id) await untilDecided(sample);
    await client.create(serviceExportType, exportOf(sample));
  }
  return { backends, stop: async () => void (await Promise.all(backends.map((backend) => backend.stop()))) };
}

function serviceOf(sample: Sample, cluster: string) {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: sample.name, namespace: demoNamespace },
    spec: {
      ...(sample.isHeadless ? { clusterIP: 'None' } : {}),
      ...(sample.isBalanced ? { type: 'LoadBalancer' as const } : {}),
      ports: [{ name: 'http', protocol: 'TCP' as const, port: sample.port(cluster) }],
      sessionAffinity: sample.sessionAffinity?.(cluster) ?? 'None',
    },
  };
}

function exportOf(sample: Sample) {
  const annotations = sample.exportTo === undefined ? {} : { annotations: { [exportToAnnotation]: sample.exportTo } };
  const metadata = { name: sample.name, namespace: demoNamespace, ...annotations };
  return { apiVersion: 'multicluster.x-k8s.io/v1beta1', kind: 'ServiceExport', metadata };
}

interface Registering {
  readonly client: Client;
  readonly sample: Sample;
  readonly cluster: DemoCluster;
  readonly backend: Backend;
}

async function registerBackend({ client, sample, cluster, backend }: Registering): Promise<void> {
  const { address, port } = backend;
  await register(client, {
    namespace: demoNamespace,
    service: sample.name,
    address,
    ports: [{ name: 'http', protocol: 'TCP', port, servicePort: sample.port(cluster.id) }],
    zone: cluster.zone,
  });
}

/** A balanced one listens on the port of its service. Another demo may have the address: then the next is tried. */
async function startSample({ name, port, isBalanced }: Sample, cluster: DemoCluster, n: number): Promise<Backend> {
  const start = (part: number, wanted: number) => {
    const address = `${cluster.podRange.split('.').slice(0, 2).join('.')}.${part}.${n}`;
    return startBackend({ address, port: wanted, says: `${name} in ${cluster.id}, from ${address}` });
  };
  if (!isBalanced) return start(0, 0);
  for (let part = 0; part < 255; part += 1) {
    try {
      return await start(part, port(cluster.id));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
  throw new Error(`demo: port ${port(cluster.id)} is taken on every address; stop the program that listens on it`);
}

export interface Backend {
  readonly address: string;
  readonly port: number;
  stop(): Promise<void>;
}

interface BackendOptions {
  readonly address: string;
  /** Any free one if absent or 0. */
  readonly port?: number;
  readonly says: string;
}

export function startBackend({ address, port: wanted = 0, says }: BackendOptions): Promise<Backend> {
  const server: Server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/plain');
    response.end(`${says}\n`);
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(wanted, address, () => {
      const { port } = server.address() as AddressInfo;
      const stop = () =>
        new Promise<void>((done) => {
          server.close(() => done());
          server.closeAllConnections();
        });
      resolve({ address, port, stop });
    });
  });
}

// For tests of the discovery server: a home in memory, the server on it, and services whose endpoints can be changed.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../../src/base/log.ts';
import { createMetrics, type Metrics } from '../../src/base/metrics.ts';
import { createRealWorld } from '../../src/base/real/world.ts';
import type { Credentials } from '../../src/base/x509/certificates.ts';
import { type ServiceImport, serviceImportType } from '../../src/clusterset/kinds/service-import.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { type ConfigMap, configMapType } from '../../src/kube/objects/config-map.ts';
import { type EndpointSlice, endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { type Secret, secretType } from '../../src/kube/objects/secret.ts';
import { startXdsRole, type XdsRole, type XdsRoleOptions } from '../../src/main/xds/part.ts';
import { authoritySecret } from '../../src/peering/kinds/secrets.ts';
import { meshCardData, meshCardName } from '../../src/peering/rules/peer-introduction.ts';
import { type MemoryHome, memoryHome, namespace } from '../../src/peering/testing/edge/memory-home.ts';
import { meshOf } from '../../src/peering/testing/edge/mesh.ts';
import { issueProxy, openAuthority, xdsServerName } from '../../src/xds/identity/authority.ts';
import { type BootstrapOptions, envoyBootstrap } from '../../src/xds/identity/bootstrap.ts';
import { type ProxyIdentity, type ProxyRole, parseNodeId } from '../../src/xds/identity/proxy-identity.ts';
import { connect, type Stream } from './xds-stream.ts';

export interface XdsTest {
  readonly home: MemoryHome;
  readonly client: Client;
  /** Metrics of the present server. */
  metrics: Metrics;
  readonly socket: string;
  readonly folder: string;
  role: XdsRole;
  /** Ends the server and starts another on the same home and the same addresses. */
  restart(): Promise<void>;
  /** A proxy's stream by mutual TLS, with a certificate in its name. */
  proxy(id: string, path?: string, more?: Pick<ProxyIdentity, 'workload'>): Promise<Stream>;
  bootstrap(role: ProxyRole, name: string, changes?: Partial<BootstrapOptions>): Promise<object>;
  stop(): Promise<void>;
}

export const cluster = 'east';

export async function startXdsTest(changes: Partial<XdsRoleOptions> = {}): Promise<XdsTest> {
  const home = changes.home === undefined ? await memoryHome() : undefined;
  const client = changes.home ?? home!.client;
  const folder = await mkdtemp(join(tmpdir(), 'portolan-xds-'));
  const socket = join(folder, 'xds.sock');
  const world = createRealWorld();
  const metrics = createMetrics();
  const options = (port: number, own: Metrics): XdsRoleOptions => ({
    ...{ world, log: silentLog, metrics: own, home: client, namespace, cluster },
    hosts: [],
    socket: { path: socket, mode: 0o660 },
    ports: { virtual: 15_003, ingress: 15_443 },
    lookUp: async () => ({ addresses: [], ttlSeconds: 300 }),
    ...changes,
    listen: { host: changes.listen?.host ?? '127.0.0.1', port },
  });
  const test: XdsTest = {
    ...{ client, metrics, socket, folder },
    home: home!,
    role: await startXdsRole(options(0, metrics)),
    restart: async () => {
      const { port } = test.role;
      await test.role.stop();
      test.metrics = createMetrics();
      test.role = await startXdsRole(options(port, test.metrics));
      await test.role.whenSynced();
    },
    proxy: async (id, path, more = {}) => {
      const options = { world, home: client, namespace, cluster: changes.cluster ?? cluster };
      const authority = await openAuthority(options);
      const { certificate: cert, key } = issueProxy(options, authority, { ...parseNodeId(id)!, ...more });
      const target = `https://${changes.listen?.host ?? '127.0.0.1'}:${test.role.port}`;
      return connect(target, { ca: authority.certificate, servername: xdsServerName, cert, key }, path);
    },
    bootstrap: async (role, name, more = {}) => {
      const identity = { role, cluster: changes.cluster ?? cluster, name };
      const authority = await openAuthority({ world, home: client, namespace, cluster: identity.cluster });
      const pair = issueProxy({ world, home: client, namespace, cluster: identity.cluster }, authority, identity);
      const server = {
        kind: 'tls',
        host: changes.listen?.host ?? '127.0.0.1',
        port: test.role.port,
        identity: pair,
      } as const;
      return envoyBootstrap({
        ...{ identity, zone: '', region: '', variant: 'delta', admin: { host: '127.0.0.1', port: 0 } },
        server: { ...server, authority: authority.certificate },
        isClustersetProxied: false,
        ...more,
      });
    },
    stop: async () => {
      await test.role.stop();
      await home?.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
  await test.role.whenSynced();
  return test;
}

export interface TestService {
  readonly name: string;
  readonly ips?: readonly string[];
  readonly port: number;
  readonly portName?: string;
  readonly protocol?: 'TCP' | 'UDP';
  readonly trafficDistribution?: string;
}

export async function addImport(client: Client, service: TestService): Promise<void> {
  const { name, ips = [], port, portName = '', protocol = 'TCP', trafficDistribution } = service;
  await client.create<ServiceImport>(serviceImportType, {
    apiVersion: 'multicluster.x-k8s.io/v1beta1',
    kind: 'ServiceImport',
    metadata: { name, namespace: 'shop' },
    spec: {
      type: 'ClusterSetIP',
      ips: [...ips],
      ports: [{ port, protocol, ...(portName && { name: portName }) }],
      ...(trafficDistribution && { trafficDistribution }),
    },
  });
}

/** All endpoints of a service in one cluster, `host:port` each with the same port, in place of those there were. */
export async function putEndpoints(
  client: Client,
  service: Pick<TestService, 'name' | 'portName'>,
  from: string,
  endpoints: { readonly port: number; readonly addresses: readonly string[] },
): Promise<void> {
  const { name, portName = '' } = service;
  const metadata = {
    name: `${name}-${from}-${endpoints.port}`,
    namespace: 'shop',
    labels: {
      'multicluster.kubernetes.io/service-name': name,
      'multicluster.kubernetes.io/source-cluster': from,
    },
  };
  const slice: EndpointSlice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata,
    addressType: 'IPv4',
    ports: [{ name: portName, port: endpoints.port, protocol: 'TCP' }],
    endpoints: endpoints.addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
  };
  const present = await client.get<EndpointSlice>(endpointSliceType, metadata).catch(() => undefined);
  if (present === undefined) await client.create(endpointSliceType, slice);
  else await client.update(endpointSliceType, { ...slice, metadata: { ...present.metadata, ...metadata } });
}

/** The card and the authority of a mesh, as peering keeps them. */
export async function giveMesh(client: Client, domain: string): Promise<Credentials> {
  const { certificate, key } = meshOf(domain);
  await client.create<Secret>(secretType, {
    ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: authoritySecret, namespace } },
    ...{ type: 'kubernetes.io/tls', stringData: { 'tls.crt': certificate, 'tls.key': key } },
  });
  const card = { address: '', domain, bundle: certificate };
  const data = meshCardData(card, { trustDomain: domain, domain, ingress: [] });
  await client.create<ConfigMap>(configMapType, {
    ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: meshCardName, namespace }, data },
  });
  return { certificate, key };
}

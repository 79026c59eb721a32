// For tests over real sockets: a home in memory with every kind of ours, and a mesh around it.

import { readdirSync, readFileSync } from 'node:fs';
import { dial } from '../../../base/grpc/transport-client.ts';
import { serveGrpc } from '../../../base/grpc/transport-server.ts';
import { silentLog } from '../../../base/log.ts';
import { createMetrics, type Metrics } from '../../../base/metrics.ts';
import { createRealWorld } from '../../../base/real/world.ts';
import { createApi } from '../../../home/api.ts';
import { loadDefinitions } from '../../../home/definitions/bundled.ts';
import { customResourceDefinitionKind } from '../../../home/kinds/custom-resource-definition.ts';
import { builtinKinds } from '../../../home/kinds/index.ts';
import type { Access } from '../../../home/model/access.ts';
import { createMemoryStore } from '../../../home/open-store.ts';
import { type Client, createClient } from '../../../kube/client/client.ts';
import { type Service, serviceType } from '../../../kube/objects/service.ts';
import { type Peer, type PeerSpec, peerType } from '../../kinds/peer.ts';
import { type PeerExport, type PeerExportSpec, peerExportType } from '../../kinds/peer-export.ts';
import { type PeerService, peerServiceType } from '../../kinds/peer-service.ts';
import { type Peering, type PeeringOptions, startPeering } from '../../peering.ts';
import type { LinkLimits } from '../../rules/link-config.ts';
import type { OwnCredentials } from '../../trust/credentials.ts';
import { meshOf, type TestMesh } from './mesh.ts';

export const namespace = 'portolan-system';
const everybody: Access = {
  authenticate: async () => ({ name: 'admin', groups: ['system:masters'] }),
  authorize: () => ({ isAllowed: true, reason: '' }),
};
const folder = new URL('../../../../deploy/crds/', import.meta.url);

export interface MemoryHome {
  readonly client: Client;
  stop(): Promise<void>;
}

export async function memoryHome(): Promise<MemoryHome> {
  const world = createRealWorld();
  const store = createMemoryStore({ world });
  const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'));
  const definitions = loadDefinitions(files.map((name) => readFileSync(new URL(name, folder), 'utf8')));
  const kinds = builtinKinds({
    serviceRanges: ['10.96.0.0/12'],
    random: world.random,
    extra: [customResourceDefinitionKind],
  });
  const metrics = createMetrics();
  const api = await createApi({ world, store, kinds, access: everybody, log: silentLog, metrics, definitions });
  await api.start();
  const transport = { send: (request: Parameters<typeof api.handle>[0]) => api.handle(request), close: () => {} };
  const client = createClient(transport, { world, userAgent: 'test' });
  for (const name of [namespace, 'shop']) {
    const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
    await client.create(namespaceType, object).catch(() => {});
  }
  return { client, stop: () => api.stop() };
}

const namespaceType = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', isNamespaced: false };

export interface TestMeshNode {
  readonly name: string;
  readonly mesh: TestMesh;
  readonly client: Client;
  readonly metrics: Metrics;
  peering: Peering;
  /** Replaces our certificate. */
  rotate(credentials: OwnCredentials): void;
  restart(changes?: Partial<PeeringOptions>): Promise<void>;
  addPeer(name: string, spec: Omit<PeerSpec, 'trust'> & { trust?: PeerSpec['trust'] }): Promise<Peer>;
  addService(name: string, changes?: Partial<Service['metadata']>): Promise<Service>;
  exportServices(spec: Partial<PeerExportSpec> & { peers: string[] }, name?: string): Promise<PeerExport>;
  peerServices(): Promise<PeerService[]>;
  peer(name: string): Promise<Peer>;
  stop(): Promise<void>;
}

export interface NodeOptions extends Partial<PeeringOptions> {
  readonly limits?: Partial<LinkLimits>;
  readonly home?: MemoryHome;
}

/** One mesh: its home, its authority and its peering endpoint on the loopback. */
export async function startMesh(name: string, options: NodeOptions = {}): Promise<TestMeshNode> {
  const mesh = meshOf(`${name}.example`);
  const home = options.home ?? (await memoryHome());
  const { client } = home;
  const metrics = createMetrics();
  let own: OwnCredentials = mesh.issue();
  const handlers = new Set<() => void>();
  const start = (changes: Partial<PeeringOptions>) =>
    startPeering({
      world: createRealWorld(),
      log: silentLog,
      metrics: createMetrics(),
      client,
      namespace,
      listen: { host: '127.0.0.1', port: 0 },
      mesh: { trustDomain: mesh.domain, domain: mesh.domain, ingress: [{ address: '192.0.2.1', port: 15443 }] },
      own: () => ({ zones: ['cluster.local', 'clusterset.local', `own.${mesh.domain}`], ranges: [], hosts: [] }),
      credentials: {
        current: () => own,
        onChanged: (handler) => {
          handlers.add(handler);
          return () => handlers.delete(handler);
        },
      },
      serve: serveGrpc,
      dial,
      ...options,
      limits: { newPeerMs: 0, ...options.limits },
      ...changes,
    });
  const node: TestMeshNode = {
    name,
    mesh,
    client,
    metrics,
    peering: await start({ metrics }),
    rotate: (credentials) => {
      own = credentials;
      for (const handler of handlers) handler();
    },
    restart: async (changes = {}) => {
      const { port } = node.peering;
      await node.peering.stop();
      node.peering = await start({ listen: { host: '127.0.0.1', port }, ...changes });
    },
    addPeer: (peer, spec) =>
      client.create<Peer>(peerType, {
        apiVersion: 'portolan.dev/v1alpha1',
        kind: 'Peer',
        metadata: { name: peer, namespace },
        spec: spec as PeerSpec,
      }),
    addService: (service, changes = {}) =>
      client.create<Service>(serviceType, {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: service, namespace: 'shop', ...changes },
        spec: { ports: [{ port: 80, protocol: 'TCP', appProtocol: 'http' }] },
      }),
    exportServices: (spec, exportName = 'all') =>
      client.create<PeerExport>(peerExportType, {
        apiVersion: 'portolan.dev/v1alpha1',
        kind: 'PeerExport',
        metadata: { name: exportName, namespace: 'shop' },
        spec: spec.services === undefined ? { serviceSelector: {}, ...spec } : spec,
      }),
    peerServices: async () => (await client.list<PeerService>(peerServiceType, { namespace })).items,
    peer: (peer) => client.get<Peer>(peerType, { namespace, name: peer }),
    stop: async () => {
      await node.peering.stop();
      if (options.home === undefined) await home.stop();
    },
  };
  return node;
}

/** Makes the two know each other: `consumer` takes from `owner`. */
export async function introduceTo(
  owner: TestMeshNode,
  consumer: TestMeshNode,
  changes: { readonly asOwner?: Partial<PeerSpec>; readonly asConsumer?: Partial<PeerSpec> } = {},
): Promise<void> {
  await owner.addPeer(consumer.name, {
    trust: { domain: consumer.mesh.domain, bundle: consumer.mesh.certificate },
    ...changes.asConsumer,
  });
  await consumer.addPeer(owner.name, {
    address: `https://127.0.0.1:${owner.peering.port}`,
    trust: { domain: owner.mesh.domain, bundle: owner.mesh.certificate },
    allowedDomains: [owner.mesh.domain],
    ...changes.asOwner,
  });
}

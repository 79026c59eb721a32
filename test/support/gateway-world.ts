// Clusters in network namespaces that all have the same Pod range and no route to each other but the addresses of their
// gateways: a home in memory, a discovery server and real Envoys for each. The networks of the set are written by hand, in
// place of the agent. The caller ends all that was started. Needs root.

import { execFileSync } from 'node:child_process';
import { createRealWorld } from '../../src/base/real/world.ts';
import type { Credentials } from '../../src/base/x509/certificates.ts';
import { clusterPropertyType, clusterSetProperty } from '../../src/clusterset/kinds/cluster-property.ts';
import {
  exportToAnnotation,
  type ServiceExport,
  serviceExportType,
} from '../../src/clusterset/kinds/service-export.ts';
import { clusterSetDnsName } from '../../src/clusterset/rules/clusterset-dns.ts';
import { gatewayName, readGatewayReport } from '../../src/clusterset/rules/networks/gateway-report.ts';
import { type ClusterReach, networksData } from '../../src/clusterset/rules/networks/networks.ts';
import { gatewayArgs } from '../../src/install/envoy-containers.ts';
import { apply } from '../../src/kube/client/apply.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { pairIn } from '../../src/kube/client/kept-authority.ts';
import { type ConfigMap, configMapType } from '../../src/kube/objects/config-map.ts';
import { endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { gatewayAuthoritySecret } from '../../src/kube/objects/ours.ts';
import { type Secret, secretType } from '../../src/kube/objects/secret.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { type MemoryHome, memoryHome, namespace } from '../../src/peering/testing/edge/memory-home.ts';
import type { GatewayTimes } from '../../src/xds/sources/gateways.ts';
import { MeshCertificates } from '../../src/xds/sources/mesh-certificates.ts';
import { pathOf } from './counterparts.ts';
import { takeLoopbackPart } from './loopback-part.ts';
import { endLater } from './started.ts';
import { addImport, type XdsTest } from './xds.ts';
import type { RunningProxy, XdsNamespace } from './xds-namespace.ts';
import { openNamespace, serve, settled, until } from './xds-served.ts';

export const clusterSet = 'prod';
export const gatewayPorts = [15_443, 15_444] as const;
/** The node's Envoy listens here for connections to the cluster with the gateways. */
const listenerPort = 15_101;
export const clusterSetRange = '243.0.0.0/8';
const envoyUid = 1337;

export interface GatewayCluster {
  readonly id: string;
  readonly home: MemoryHome;
  readonly client: Client;
  readonly inside: XdsNamespace;
  readonly xds: readonly XdsTest[];
  readonly envoys: RunningProxy[];
  networks(clusters: Readonly<Record<string, ClusterReach>>): Promise<void>;
  roots(): Promise<readonly string[]>;
}

const part = await takeLoopbackPart();
let links = 0;

/** Connects two namespaces by a network of their own; the addresses of both ends. */
export function connect(one: GatewayCluster, other: GatewayCluster): readonly [string, string] {
  links += 1;
  const [near, far] = [`gw${links}`, `gx${links}`];
  const net = `10.${200 + (links % 40)}.${part}`;
  const ip = pathOf('ip')!;
  const on = (cluster: GatewayCluster, ...args: string[]) =>
    execFileSync(ip, ['netns', 'exec', cluster.inside.name, 'ip', ...args]);
  execFileSync(ip, [
    'link',
    'add',
    near,
    'netns',
    one.inside.name,
    'type',
    'veth',
    'peer',
    'name',
    far,
    'netns',
    other.inside.name,
  ]);
  on(one, 'addr', 'add', `${net}.1/30`, 'dev', near);
  on(other, 'addr', 'add', `${net}.2/30`, 'dev', far);
  on(one, 'link', 'set', near, 'up');
  on(other, 'link', 'set', far, 'up');
  return [`${net}.1`, `${net}.2`];
}

export async function startCluster(
  id: string,
  { gateways = 0, times = {} }: { readonly gateways?: number; readonly times?: GatewayTimes } = {},
): Promise<GatewayCluster> {
  const inside = openNamespace();
  const home = await memoryHome();
  endLater(() => home.stop());
  const { client } = home;
  await client.create(clusterPropertyType, {
    ...{ apiVersion: 'about.k8s.io/v1beta1', kind: 'ClusterProperty', metadata: { name: clusterSetProperty } },
    spec: { value: clusterSet },
  });
  redirect(inside);
  const xds: XdsTest[] = [];
  for (const gateway of gatewayPorts.slice(0, Math.max(1, gateways)))
    xds.push(
      await serve(inside, id, client, {
        ports: { virtual: 15_003, ingress: 15_445, gateway },
        gatewayTimes: times,
      }),
    );
  return {
    ...{ id, home, client, inside, xds, envoys: [] },
    networks: async (clusters) => {
      const metadata = { name: clusterSetDnsName, namespace };
      const data = networksData({ own: `network-of-${id}`, clusters: new Map(Object.entries(clusters)) });
      const present = await client.get<ConfigMap>(configMapType, metadata).catch(() => undefined);
      await apply<ConfigMap>({
        ...{ client, type: configMapType, present },
        change: (there) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata, ...there, data }),
      });
    },
    roots: async () => {
      const found = await client.get<ConfigMap>(configMapType, { namespace, name: gatewayName }).catch(() => ({}));
      return readGatewayReport(found).trustRoots;
    },
  };
}

/** As the node proxy writes it for services of one cluster in another network. */
function redirect(inside: XdsNamespace): void {
  const ip = pathOf('ip')!;
  execFileSync(ip, ['netns', 'exec', inside.name, 'ip', 'route', 'add', 'local', clusterSetRange, 'dev', 'lo']);
  const rule = `ip daddr ${clusterSetRange} tcp flags & (fin | syn | rst | ack) == syn redirect to :${listenerPort}`;
  const chain = `type nat hook output priority -101; policy accept;\nmeta skuid ${envoyUid} return\n${rule}`;
  const input = `table inet gateways {\nchain out {\n${chain}\n}\n}\n`;
  execFileSync(ip, ['netns', 'exec', inside.name, pathOf('nft')!, '-f', '-'], { input });
}

export async function startGateway(cluster: GatewayCluster, index = 0): Promise<RunningProxy> {
  const xds = cluster.xds[index]!;
  const name = `gateway-${index}`;
  const admin = { host: '127.0.0.1', port: adminPort(index) };
  const bootstrap = await xds.bootstrap('gateway', name, { admin });
  const envoy = cluster.inside.startEnvoy(xds.folder, name, bootstrap, gatewayArgs);
  cluster.envoys.push(envoy);
  await settled(xds, `gateway~${cluster.id}~${name}`, 2);
  return envoy;
}

export function adminPort(index: number): number {
  return 19_100 + index;
}

export async function startNode(cluster: GatewayCluster): Promise<RunningProxy> {
  const [xds] = cluster.xds;
  const admin = { host: '127.0.0.1', port: 19_200 };
  const envoy = cluster.inside.startEnvoy(xds!.folder, 'node', await xds!.bootstrap('sidecar', 'node', { admin }));
  cluster.envoys.push(envoy);
  await settled(xds!, `sidecar~${cluster.id}~node`, 3);
  return envoy;
}

/** Members of networks of their own: `center` has the gateways, the others call. */
export async function introduce(
  center: GatewayCluster,
  callers: readonly GatewayCluster[],
  links: ReadonlyMap<string, string>,
  gateways = 1,
): Promise<void> {
  const reach = (
    of: GatewayCluster,
    trustRoots: readonly string[],
    more: Partial<ClusterReach> = {},
  ): ClusterReach => ({
    ...{ network: `network-of-${of.id}`, gateways: [], trustRoots, ...more },
  });
  await center.networks(Object.fromEntries(callers.map((each) => [each.id, reach(each, [])])));
  for (const each of callers) await each.networks({ [center.id]: reach(center, []) });
  const rootsOf = (of: GatewayCluster) =>
    until(`${of.id} publishes its root`, async () => {
      const roots = await of.roots();
      return roots.length > 0 ? roots : undefined;
    });
  const known = await Promise.all(callers.map(async (each) => [each.id, reach(each, await rootsOf(each))] as const));
  await center.networks(Object.fromEntries(known));
  for (const each of callers) {
    const address = links.get(each.id)!;
    const addresses = gatewayPorts.slice(0, gateways).map((port) => ({ address, port }));
    await each.networks({ [center.id]: reach(center, await rootsOf(center), { gateways: addresses, listenerPort }) });
  }
}

/** The root with which a member signs now. */
export async function signingOf({ client }: GatewayCluster): Promise<Credentials> {
  return pairIn(await client.get<Secret>(secretType, { namespace, name: gatewayAuthoritySecret }))!;
}

interface Issuing {
  /** Instead of the one that signs now. */
  readonly root?: Credentials;
  /** Of the issuer's clock. */
  readonly aheadMs?: number;
}

/** A certificate with this identity, signed by the root of a member. */
export async function certified(by: GatewayCluster, uri: string, issuing: Issuing = {}): Promise<Credentials> {
  const { root = await signingOf(by), aheadMs = 0 } = issuing;
  const options = { only: 'client', commonName: 'test', lifetimeMs: 3_600_000, keptMax: 1 } as const;
  const { clock, random } = createRealWorld();
  const world = { random, clock: { ...clock, wallMs: () => clock.wallMs() + aheadMs } };
  const { certificate, key } = new MeshCertificates(world, options).of(uri, root);
  return { certificate, key };
}

export const nodeOf = (id: string): string => `spiffe://${id}.${clusterSet}/node/test`;

export interface Exported {
  readonly name: string;
  readonly ip: string;
  readonly port: number;
  /** Of the backend, in the Pod range that all clusters have. */
  readonly endpoint: string;
  readonly exportTo?: readonly string[];
  readonly protocol?: 'TCP' | 'UDP';
}

/** A Service with one endpoint, its import, and its export as the agent has accepted it. */
export async function exportService({ client }: GatewayCluster, service: Exported): Promise<void> {
  const { name, ip, port, endpoint, exportTo, protocol = 'TCP' } = service;
  await addImport(client, { name, ips: [ip], port, protocol });
  await client.create(serviceType, {
    ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: 'shop' } },
    spec: { ports: [{ port, protocol }] },
  });
  await client.create(endpointSliceType, {
    ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' },
    metadata: { name: `${name}-1`, namespace: 'shop', labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ name: '', port, protocol }],
    endpoints: [{ addresses: [endpoint] }],
  });
  const annotations = exportTo && { [exportToAnnotation]: exportTo.join(',') };
  const made = await client.create<ServiceExport>(serviceExportType, {
    ...{ apiVersion: 'multicluster.x-k8s.io/v1beta1', kind: 'ServiceExport' },
    metadata: { name, namespace: 'shop', ...(annotations && { annotations }) },
  });
  const condition = (type: string, reason: string) => ({
    ...{ type, status: 'True' as const, reason, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
  });
  const conditions = [condition('Valid', 'Valid'), condition('Ready', 'Exported')];
  await client.updateStatus<ServiceExport>(serviceExportType, { ...made, status: { conditions } });
}

/** What policies say about callers, as the agent writes it for data planes. */
export async function limitCallers({ client }: GatewayCluster, callers: string): Promise<void> {
  const present = await client.get<ConfigMap>(configMapType, { name: clusterSetDnsName, namespace });
  await client.update<ConfigMap>(configMapType, { ...present, data: { ...present.data, callers } });
}

export async function limitExport(
  { client }: GatewayCluster,
  name: string,
  exportTo: readonly string[],
): Promise<void> {
  const present = await client.get<ServiceExport>(serviceExportType, { namespace: 'shop', name });
  const annotations = { ...present.metadata.annotations, [exportToAnnotation]: exportTo.join(',') };
  await client.update<ServiceExport>(serviceExportType, { ...present, metadata: { ...present.metadata, annotations } });
}

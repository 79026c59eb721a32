// The demo's second company: a mesh of its own with its own home and authority, in no clusterset. It shares one service
// with west by peering; both get to know each other by a token, the way people would do it.

import { createPartMetrics } from '../../base/real/process-metrics.ts';
import { sleep } from '../../base/world.ts';
import { addByToken, makeToken } from '../../cli/peer/add.ts';
import { register } from '../../cli/register/register.ts';
import type { Client } from '../../kube/client/client.ts';
import { namespaceType } from '../../kube/objects/namespace.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { serviceType } from '../../kube/objects/service.ts';
import { peerType } from '../../peering/kinds/peer.ts';
import { peerExportType } from '../../peering/kinds/peer-export.ts';
import { type PeerService, peerServiceType } from '../../peering/kinds/peer-service.ts';
import { ingressPort } from '../../xds/ingress/generate.ts';
import type { Home } from '../home/part.ts';
import { startPeeringAdmin } from '../peering/admin.ts';
import { startPeeringRole } from '../peering/part.ts';
import { addAdmin, clientOf, type DemoDeps, type RunningCluster, startDemoHome } from './clusterset.ts';
import type { DemoRange } from './range.ts';
import { startBackend } from './services.ts';

export interface DemoNeighbour {
  readonly home: Home;
  readonly client: Client;
  /** The service that it shares: its name in its own mesh, and its address in west. */
  readonly hostname: string;
  readonly ip: string;
  readonly port: number;
  /** Where its ingress listens, if an Envoy runs it. */
  readonly ingress: string;
}

export const neighbourName = 'acme';
const trustDomain = 'acme.example';
const ownTrustDomain = 'demo.example';
const service = { name: 'invoices', namespace: 'billing' };
const servicePort = { name: 'http', protocol: 'TCP' as const, port: 8080 };
const backendAddress = '127.4.0.1';
const tokenMs = 600_000;
const lookMs = 50;

export async function startNeighbour(
  deps: DemoDeps,
  west: RunningCluster,
  { peers, ingress }: DemoRange,
): Promise<DemoNeighbour> {
  const home = await startDemoHome(deps, neighbourName, []);
  const client = clientOf(deps, home);
  const ways = [{ address: ingress, port: ingressPort }];
  await Promise.all([
    startDemoPeering(deps, client, { of: neighbourName, trustDomain, ingress: ways, addressRanges: [] }),
    startDemoPeering(deps, west.client, {
      ...{ of: west.cluster.id, trustDomain: ownTrustDomain, ingress: [], addressRanges: [peers] },
    }),
    startService(deps, client),
  ]);
  await introduce(deps, client, west);
  await client.create(peerExportType, {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'PeerExport',
    metadata: service,
    spec: { services: [service.name], peers: [west.cluster.id], protocols: ['http'] },
  });
  const ip = await untilShared(deps, west.client);
  const hostname = `${service.name}.${service.namespace}.${trustDomain}`;
  return { home, client, hostname, ip, port: ingressPort, ingress };
}

interface DemoPeering {
  readonly of: string;
  readonly trustDomain: string;
  readonly ingress: readonly { address: string; port: number }[];
  readonly addressRanges: readonly string[];
}

async function startDemoPeering(deps: DemoDeps, home: Client, mesh: DemoPeering): Promise<void> {
  const { world, log, parts } = deps;
  const metrics = createPartMetrics('peering');
  const { of, trustDomain, ingress, addressRanges } = mesh;
  const role = await startPeeringRole({
    ...{ world, home, addressRanges, log: log.with({ mesh: of }), metrics },
    namespace: systemNamespace,
    listen: { host: '127.0.0.1', port: 0 },
    advertise: '127.0.0.1:0',
    mesh: { trustDomain, domain: trustDomain, ingress },
    own: { zones: ['cluster.local', 'clusterset.local', 'peers.local'], ranges: [], hosts: [] },
    versions: ['v1alpha1', 'v1alpha2'],
    isReplicated: false,
    ingressProbeMs: 6000,
  });
  parts.add(`${of}: peering`, () => role.stop());
  await addAdmin(deps, `peering-${of}`, (listen) => startPeeringAdmin({ listen, metrics, role }));
}

async function startService({ parts }: DemoDeps, client: Client): Promise<void> {
  const { name, namespace } = service;
  await client.create(namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  const spec = { ports: [servicePort] };
  await client.create(serviceType, { apiVersion: 'v1', kind: 'Service', metadata: service, spec });
  const backend = await startBackend({ address: backendAddress, says: `${name} of ${neighbourName}` });
  parts.add(`${neighbourName}: ${name}`, () => backend.stop());
  const { address, port } = backend;
  const ports = [{ ...servicePort, port, servicePort: servicePort.port }];
  await register(client, { namespace, service: name, address, ports, zone: '' });
}

async function introduce({ world }: DemoDeps, neighbour: Client, west: RunningCluster): Promise<void> {
  const namespace = systemNamespace;
  const token = await makeToken(
    { client: neighbour, namespace },
    {
      peer: west.cluster.id,
      allowedDomains: [ownTrustDomain],
      expiresMs: world.clock.wallMs() + tokenMs,
      secret: world.random.uuid(),
    },
  );
  const request = { name: neighbourName, allowedDomains: [trustDomain] };
  await addByToken({ client: west.client, namespace }, token, request);
  // Both are on one machine: elsewhere an ingress on loopback would be refused.
  const body = { spec: { allowedIngress: ['127.0.0.0/8'] } };
  await west.client.patch(peerType, { namespace, name: neighbourName }, { kind: 'merge', body });
}

async function untilShared({ world }: DemoDeps, client: Client): Promise<string> {
  for (let tries = 0; tries < 600; tries += 1) {
    const { items } = await client.list<PeerService>(peerServiceType, { namespace: systemNamespace });
    const ip = items[0]?.status?.ips?.[0];
    if (ip !== undefined) return ip;
    await sleep(world.timers, lookMs);
  }
  throw new Error(`demo: west did not get ${service.name} of ${neighbourName} in 30 s`);
}

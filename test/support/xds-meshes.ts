// Meshes with discovery servers and real Envoys in a network namespace, for tests of their ways to each other. What a test
// started is stopped after it.

import { chmodSync } from 'node:fs';
import { afterEach } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { createMetrics } from '../../src/base/metrics.ts';
import { createRealWorld } from '../../src/base/real/world.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { type Secret, secretType } from '../../src/kube/objects/secret.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { type PeeringRole, startPeeringRole } from '../../src/main/peering/part.ts';
import type { XdsRoleOptions } from '../../src/main/xds/part.ts';
import { peerType } from '../../src/peering/kinds/peer.ts';
import { peerExportType } from '../../src/peering/kinds/peer-export.ts';
import { certificateSecret } from '../../src/peering/kinds/secrets.ts';
import { memoryHome, namespace } from '../../src/peering/testing/edge/memory-home.ts';
import { startXdsTest, type XdsTest } from './xds.ts';
import { startXdsNamespace, type XdsNamespace } from './xds-namespace.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const virtualPort = 15_003;

export function openNamespace(): XdsNamespace {
  const inside = startXdsNamespace(virtualPort);
  closing.push(() => inside.stop());
  return inside;
}

export async function serve(
  inside: XdsNamespace,
  cluster: string,
  home?: Client,
  changes: Partial<XdsRoleOptions> = {},
): Promise<XdsTest> {
  const ports = { virtual: virtualPort, ingress: 15_443 };
  const listen = { host: inside.outside, port: 0 };
  const xds = await startXdsTest({ ports, cluster, listen, ...(home && { home }), ...changes });
  closing.push(() => xds.stop());
  chmodSync(xds.folder, 0o755);
  return xds;
}

export async function until<T>(what: string, look: () => Promise<T | undefined> | T | undefined): Promise<T> {
  for (let i = 0; i < 400; i++) {
    const found = await look();
    if (found !== undefined) return found;
    await pause(25);
  }
  throw new Error(`did not happen: ${what}`);
}

export const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** All streams of a proxy are answered, and it holds at least so many listeners. */
export function settled(xds: XdsTest, id: string, listeners: number): Promise<true> {
  return until(`${id} has its configuration`, () => {
    const report = xds.role.service.proxies.reports().find((each) => each.id === id);
    return report?.isConnected && report.inFlight === 0 && report.holds.listener >= listeners ? true : undefined;
  });
}

export interface Mesh {
  readonly name: string;
  readonly client: Client;
  readonly role: PeeringRole;
  readonly bundle: string;
}

export async function startMesh(name: string, ingress: { address: string; port: number }[]): Promise<Mesh> {
  const home = await memoryHome();
  closing.push(() => home.stop());
  const trustDomain = `${name}.example`;
  const role = await startPeeringRole({
    ...{ world: createRealWorld(), log: silentLog, metrics: createMetrics(), home: home.client, namespace },
    listen: { host: '127.0.0.1', port: 0 },
    advertise: '127.0.0.1:0',
    mesh: { trustDomain, domain: trustDomain, ingress },
    own: { zones: ['cluster.local'], ranges: [], hosts: [] },
    versions: ['v1alpha1', 'v1alpha2'],
    isReplicated: false,
    addressRanges: ['242.0.0.0/16'],
  });
  closing.push(() => role.stop());
  const secret = await home.client.get<Secret>(secretType, { namespace, name: certificateSecret });
  return { name, client: home.client, role, bundle: Buffer.from(secret.data!['ca.crt']!, 'base64').toString() };
}

export async function introduce(owner: Mesh, consumer: Mesh): Promise<void> {
  const peer = (client: Client, of: Mesh, spec: object) =>
    client.create(peerType, {
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'Peer',
      metadata: { name: of.name, namespace },
      spec: { trust: { domain: `${of.name}.example`, bundle: of.bundle }, ...spec },
    });
  await peer(owner.client, consumer, {});
  const { advertised } = owner.role;
  const allowed = { allowedDomains: ['acme.example'], allowedIngress: ['10.70.0.0/16'] };
  await peer(consumer.client, owner, { address: `https://${advertised}`, ...allowed });
}

export async function shareDatabase(
  { client }: Mesh,
  tls: 'terminate' | 'passthrough',
  peers: readonly string[] = ['globex'],
): Promise<void> {
  await client.create(serviceType, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'db', namespace: 'shop' },
    spec: { ports: [{ name: 'sql', port: 5432, protocol: 'TCP' }] },
  });
  await client.create(endpointSliceType, {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'db-1', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'db' } },
    addressType: 'IPv4',
    ports: [{ name: 'sql', port: 5432, protocol: 'TCP' }],
    endpoints: [{ addresses: ['10.70.2.1'] }],
  });
  await client.create(peerExportType, {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'PeerExport',
    metadata: { name: 'db', namespace: 'shop' },
    spec: { services: ['db'], peers: [...peers], tls },
  });
}

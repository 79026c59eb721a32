// Meshes with discovery servers and real Envoys in a network namespace, for tests of their ways to each other. What a test
// started is stopped after it.

import { afterEach } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { createMetrics } from '../../src/base/metrics.ts';
import { createRealWorld } from '../../src/base/real/world.ts';
import type { Client } from '../../src/kube/client/client.ts';
import { endpointSliceType } from '../../src/kube/objects/endpoint-slice.ts';
import { type Secret, secretType } from '../../src/kube/objects/secret.ts';
import { serviceType } from '../../src/kube/objects/service.ts';
import { type PeeringRole, startPeeringRole } from '../../src/main/peering/part.ts';
import { peerType } from '../../src/peering/kinds/peer.ts';
import { peerExportType } from '../../src/peering/kinds/peer-export.ts';
import { certificateSecret } from '../../src/peering/kinds/secrets.ts';
import { memoryHome, namespace } from '../../src/peering/testing/edge/memory-home.ts';
import { endLater, endStarted } from './started.ts';

afterEach(endStarted);

export interface Mesh {
  readonly name: string;
  readonly client: Client;
  readonly role: PeeringRole;
  readonly bundle: string;
}

export async function startMesh(name: string, ingress: { address: string; port: number }[]): Promise<Mesh> {
  const home = await memoryHome();
  endLater(() => home.stop());
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
  endLater(() => role.stop());
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

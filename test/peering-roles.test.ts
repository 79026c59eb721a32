// Two meshes as processes: homes, peering, and everything a person types.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as grpc from '@grpc/grpc-js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AddressClaim, addressClaimType } from '../src/addresses/address-claim.ts';
import { leaseType } from '../src/kube/objects/lease.ts';
import { serviceType } from '../src/kube/objects/service.ts';
import { peerType } from '../src/peering/kinds/peer.ts';
import { type PeerExport, peerExportType } from '../src/peering/kinds/peer-export.ts';
import { type PeerService, peerServiceType } from '../src/peering/kinds/peer-service.ts';
import { meshCardName } from '../src/peering/rules/peer-introduction.ts';
import { meshOf } from '../src/peering/testing/edge/mesh.ts';
import { startForeignOwner } from './foreign-peer/owner.ts';
import { type Mesh, startMesh } from './support/peering-mesh.ts';
import { startPeeringProcess } from './support/peering-process.ts';

const folder = mkdtempSync(join(tmpdir(), 'peering-roles-'));
let east: Mesh;
let west: Mesh;

beforeAll(async () => {
  [east, west] = await Promise.all([startMesh('east', join(folder, 'east')), startMesh('west', join(folder, 'west'))]);
});

afterAll(async () => {
  for (const mesh of [east, west]) await mesh?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const eventually = <T>(read: () => Promise<T> | T) => expect.poll(read, { timeout: 30_000, interval: 200 });

async function share(mesh: Mesh, service: string, peer: string): Promise<void> {
  await mesh.client.create(serviceType, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: service, namespace: 'default' },
    spec: { ports: [{ port: 80, appProtocol: 'http' }] },
  });
  await mesh.client.create(peerExportType, {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'PeerExport',
    metadata: { name: service, namespace: 'default' },
    spec: { services: [service], peers: [peer] },
  });
}

test('peer token and peer add -> two meshes know each other both ways, by one token that works once', async () => {
  expect((await east.peer('list')).out).toContain('no peers');
  const token = (await east.peer('token', 'west', '--allow', 'west.example')).out.trim();
  expect(token).toMatch(/^portolan-peer-/);
  const added = await west.peer('add', 'east', '--allow', 'east.example', '--token', token);
  expect(added).toMatchObject({ code: 0, out: 'peer east added; it knows us as west\n' });
  const again = await west.peer('add', 'other', '--allow', 'east.example', '--token', token);
  expect(again.code).toBe(5);
  expect(again.errors).toContain('Peer east is the same mesh');
  await share(east, 'checkout', 'west');
  await share(west, 'billing', 'east');
  await eventually(async () => (await west.peer('services', 'east')).out).toContain('checkout.default.east.example');
  await eventually(async () => (await east.peer('services', 'west')).out).toContain('billing.default.west.example');
});

test('peer list, status and services -> names, ingress, both directions, the mode in force', async () => {
  await eventually(async () => (await west.peer('list')).out).toMatch(/east +127\.0\.0\.1:\d+ +east\.example +Synced/);
  const status = (await west.peer('status', 'east')).out;
  expect(status).toMatch(/taking +Synced/);
  expect(status).toContain('deletions by marker (exact)');
  expect(status).toContain('last full sync 20');
  const services = (await west.peer('services', 'east')).out;
  expect(services).toContain('checkout.default.east.example,checkout.east.svc.peers.local');
  expect(services).toContain('192.0.2.1:15443');
});

test('a service of a peer -> an address of its own from the range for peers, which it keeps', async () => {
  const { items } = await west.client.list<PeerService>(peerServiceType, { namespace: 'portolan-system' });
  await eventually(async () => {
    const { items } = await west.client.list<PeerService>(peerServiceType, { namespace: 'portolan-system' });
    return items[0]?.status?.ips;
  }).toEqual([expect.stringMatching(/^241\./), expect.stringMatching(/^fd/)]);
  expect(items).toHaveLength(1);
  const claims = await west.client.list<AddressClaim>(addressClaimType);
  expect(claims.items.map(({ spec }) => spec.owner.kind)).toEqual(['PeerService', 'PeerService']);
});

test('a PeerExport that selects nothing, or names an unknown peer -> not Ready, with the reason', async () => {
  const create = (name: string, spec: PeerExport['spec']) =>
    east.client.create(peerExportType, {
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'PeerExport',
      metadata: { name, namespace: 'default' },
      spec,
    });
  const readiness = async (name: string) => {
    const { status } = await east.client.get<PeerExport>(peerExportType, { namespace: 'default', name });
    const ready = status?.conditions?.find(({ type }) => type === 'Ready');
    return `${ready?.status} ${ready?.reason} ${ready?.message}`;
  };
  await create('nothing', { services: ['nosuch'], peers: ['west'] });
  await create('nobody', { services: ['checkout'], peers: ['nobody'] });
  await eventually(() => readiness('nothing')).toBe('False NothingSelected it selects no Service of its namespace');
  await eventually(() => readiness('nobody')).toBe('False UnknownPeer there is no Peer nobody');
  for (const name of ['nothing', 'nobody']) await east.client.delete(peerExportType, { namespace: 'default', name });
});

test('a second peering process on one port -> it ends and says so; the first keeps its Lease and is ready', async () => {
  const second = startPeeringProcess({
    kubeconfig: east.api.kubeconfig,
    trustDomain: 'east.example',
    listen: east.peering.address,
  });
  await expect(second).rejects.toThrow(/exited with 1: [\s\S]*EADDRINUSE/);
  const { items } = await east.client.list(leaseType, { labelSelector: 'portolan.dev/part=peering' });
  expect(items).toHaveLength(1);
  expect((await fetch(`${east.peering.admin}/readyz`)).status).toBe(200);
});

test('peer diff -> service by service; equal is exit code 0, different is 7', async () => {
  await eventually(async () => (await west.peer('diff', 'east')).out).toContain('1 equal, 0 not');
  expect((await west.peer('diff', 'east')).code).toBe(0);
  const exported = await east.client.get(peerExportType, { namespace: 'default', name: 'checkout' });
  const spec = { ...(exported['spec'] as object), fqdn: 'checkout.elsewhere.example', serviceId: 'x.east.example' };
  await east.client.update(peerExportType, { ...exported, spec });
  await eventually(async () => (await west.peer('diff', 'east')).out).toContain(
    'refused here      x.east.example: fqdn',
  );
  expect((await west.peer('diff', 'east')).code).toBe(7);
});

test.each(['grpc-js', 'the minimal one'])(
  'peer diff against a foreign owner, %s -> says what it compares and what it cannot',
  async (kind) => {
    const foreign = meshOf('foreign.example');
    const configMaps = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', isNamespaced: true };
    const card = await west.client.get(configMaps, { namespace: 'portolan-system', name: meshCardName });
    const { bundle: ca = '' } = card['data'] as Record<string, string>;
    const { certificate: cert, key } = foreign.issue();
    const owner =
      kind === 'grpc-js' ? await emptyGrpcServer({ cert, key, ca }) : await startForeignOwner({ cert, key, ca });
    try {
      await west.client.create(peerType, {
        apiVersion: 'portolan.dev/v1alpha1',
        kind: 'Peer',
        metadata: { name: 'foreign', namespace: 'portolan-system' },
        spec: {
          address: `127.0.0.1:${owner.port}`,
          trust: { domain: 'foreign.example', bundle: foreign.certificate },
          allowedDomains: ['foreign.example'],
        },
      });
      const endpoints = [{ address: '192.0.2.9', port: 443 }];
      const service = { id: 'db.foreign.example', fqdn: 'db.foreign.example', protocols: ['http'], endpoints };
      if ('put' in owner) owner.put({ ...service, san: 'spiffe://foreign.example/db' });
      const wanted = 'put' in owner ? '1 equal, 0 not' : '0 equal, 0 not';
      await eventually(async () => (await west.peer('diff', 'foreign')).out).toContain(wanted);
      const { code, out } = await west.peer('diff', 'foreign');
      expect(code).toBe(0);
      expect(out).toContain('peer foreign is not a Portolan: it cannot list its catalog');
      expect(out).toContain('not compared: what it never sent');
    } finally {
      await west.peer('remove', 'foreign');
      await owner.close();
    }
  },
);

/** A stock gRPC server, which knows none of the methods. */
async function emptyGrpcServer({ cert, key, ca }: { cert: string; key: string; ca: string }) {
  const server = new grpc.Server();
  const pair = { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) };
  const credentials = grpc.ServerCredentials.createSsl(Buffer.from(ca), [pair], true);
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', credentials, (error, bound) => (error ? reject(error) : resolve(bound))),
  );
  return { port, close: async () => server.forceShutdown() };
}

test('peer retry -> asked for; metrics and status of the process -> there', async () => {
  expect((await west.peer('retry', 'east')).out).toContain('peer east is tried again now');
  const metrics = await (await fetch(`${west.peering.admin}/metrics`)).text();
  expect(metrics).toContain('portolan_peering_last_full_sync_timestamp_seconds{peer="east",side="consumer"}');
  const status = (await (await fetch(`${west.peering.admin}/status`)).json()) as { consumer: object[] };
  expect(status.consumer).toHaveLength(1);
});

test('peer remove -> what it shared goes at once', async () => {
  expect((await west.peer('remove', 'east')).code).toBe(0);
  await eventually(async () => (await west.peer('services')).out).toContain('nothing is held of any peer');
  const gone = await west.peer('services', 'east');
  expect(gone.code).not.toBe(0);
  expect(gone.errors).toContain('no such Peer');
  expect((await west.peer('status', 'east')).errors).toContain('not found');
});

test('peer add by hand, and its mistakes -> said in words', async () => {
  expect((await west.peer('add', 'x')).errors).toContain('give --token, or --domain and --bundle');
  expect((await west.peer('add', 'x', '--token', 'nonsense')).errors).toContain(
    '--token: invalid; want the output of portolan peer token',
  );
  expect((await west.peer('token', 'Bad_Name')).errors).toContain('Bad_Name cannot be the name of a peer');
});

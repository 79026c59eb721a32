// Refusals of `portolan peer` before anything is sent.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { configMapType } from '../../kube/objects/config-map.ts';
import { formatMicroTime, leaseType } from '../../kube/objects/lease.ts';
import { secretType } from '../../kube/objects/secret.ts';
import { peerType } from '../../peering/kinds/peer.ts';
import { meshCardName } from '../../peering/rules/peer-introduction.ts';
import { type MemoryHome, memoryHome, namespace } from '../../peering/testing/edge/memory-home.ts';
import { meshOf } from '../../peering/testing/edge/mesh.ts';
import { addByHand, makeToken, ownCard } from './add.ts';
import { diffPeer, listPeers, listServices, retryPeer, showPeer } from './show.ts';

let home: MemoryHome | undefined;
afterEach(() => home?.stop());

async function setUp() {
  home = await memoryHome();
  const { client } = home;
  const card = { address: 'east.example:8008', domain: 'east.example', bundle: 'PEM' };
  const metadata = { name: meshCardName, namespace };
  await client.create(configMapType, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: card });
  const spec = { trust: { domain: 'west.example', bundle: 'PEM' } };
  const peer = { apiVersion: 'portolan.dev/v1alpha1', kind: 'Peer', metadata: { name: 'west', namespace }, spec };
  await client.create(peerType, peer);
  const token = (name: string) =>
    makeToken({ client, namespace }, { peer: name, allowedDomains: [], expiresMs: 1, secret: name });
  const introductions = async () => (await client.list(secretType, { namespace })).items.length;
  return { client, token, introductions };
}

test.each([
  ['west', 'there is a Peer west already'],
  ['Bad_Name', 'Bad_Name cannot be the name of a peer'],
  ['dotted.name', 'dotted.name cannot be the name of a peer'],
])('peer token: for %s -> refused, no token is made', async (name, reason) => {
  const { token, introductions } = await setUp();
  await expect(token(name)).rejects.toThrow(reason);
  expect(await introductions()).toBe(0);
  expect(await token('north')).toMatch(/^portolan-peer-/);
  expect(await introductions()).toBe(1);
});

test('peer services: of a peer that is not known -> an error; of one that shares nothing -> says so', async () => {
  const { client } = await setUp();
  await expect(listServices({ client, namespace }, 'nobody', 'text')).rejects.toThrow('no such Peer');
  expect(await listServices({ client, namespace }, 'west', 'text')).toEqual(['nothing is held of peer west']);
});

test('peer retry: a peer that cannot be tried -> says why; one that can -> that it is', async () => {
  const { client } = await setUp();
  const retry = async () => (await retryPeer(client, namespace, 'west', 'now')).join();
  const change = (spec: object) =>
    client.patch(peerType, { namespace, name: 'west' }, { kind: 'merge', body: { spec } });
  expect(await retry()).toContain('has no address');
  await change({ address: 'west.example:8008', suspended: true });
  expect(await retry()).toContain('is suspended');
  await change({ suspended: false });
  expect(await retry()).toContain('is tried again now');
});

test('peer add: the same mesh under a second name -> refused, with the name that it has', async () => {
  const { client } = await setUp();
  const { certificate } = meshOf('north.example');
  const folder = mkdtempSync(join(tmpdir(), 'peer-add-'));
  const bundleFile = join(folder, 'bundle.pem');
  writeFileSync(bundleFile, certificate);
  const add = (name: string, identities: string[] = []) =>
    addByHand({ client, namespace }, { name, domain: 'north.example', bundleFile, identities, allowedDomains: [] });
  await add('north');
  await expect(add('again')).rejects.toThrow('Peer north is the same mesh');
  await client.patch(
    peerType,
    { namespace, name: 'north' },
    {
      kind: 'merge',
      body: { spec: { trust: { identities: ['spiffe://north.example/one'] } } },
    },
  );
  await add('again', ['spiffe://north.example/two']);
  rmSync(folder, { recursive: true });
});

test('peer diff: the peering process has its certificate from files -> says what to give; with them -> used', async () => {
  const { client } = await setUp();
  const body = { spec: { address: '127.0.0.1:1' } };
  await client.patch(peerType, { namespace, name: 'west' }, { kind: 'merge', body });
  const diff = (files?: { certificate: string; key: string }) =>
    diffPeer({ client, namespace }, 'west', { isAll: false, ...(files && { files }) });
  await expect(diff()).rejects.toThrow('give the --cert and --key');
  const folder = mkdtempSync(join(tmpdir(), 'peer-diff-'));
  const files = { certificate: join(folder, 'tls.crt'), key: join(folder, 'tls.key') };
  const own = meshOf('east.example').issue();
  writeFileSync(files.certificate, own.certificate);
  writeFileSync(files.key, own.key);
  await expect(diff(files)).rejects.toThrow('ECONNREFUSED');
  rmSync(folder, { recursive: true });
});

test('peer bundle: the roots of the own mesh -> printed as they are; before peering has run -> an error with the next step', async () => {
  const { client } = await setUp();
  expect((await ownCard({ client, namespace })).bundle).toBe('PEM');
  await client.delete(configMapType, { namespace, name: meshCardName });
  await expect(ownCard({ client, namespace })).rejects.toThrow('portolan peering');
});

test('peer list, status: a peer that has never called, and a peering process that reports -> not silent', async () => {
  const { client } = await setUp();
  const nowMs = Date.parse('2026-05-01T12:00:00Z');
  await client.create(leaseType, {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { namespace, name: 'portolan-peering-0', labels: { 'portolan.dev/part': 'peering' } },
    spec: { leaseDurationSeconds: 30, renewTime: formatMicroTime(nowMs - 5_000) },
  });
  expect((await listPeers({ client, namespace }, nowMs)).isSilent).toBe(false);
  const { isSilent, lines } = await showPeer({ client, namespace }, 'west', { nowMs });
  expect(isSilent).toBe(false);
  expect(lines).toContain('giving    nothing reported: the peer has not called yet');
});

test.each([
  ['renewed lately', [10], false],
  ['silent for a minute', [60], true],
  ['one silent, one renewed lately', [60, 10], false],
  ['none', [], true],
])(
  'peer list, status: Leases of peering processes: %s -> said by the Lease alone',
  async (_what, agesSeconds, isSilent) => {
    const { client } = await setUp();
    const nowMs = Date.parse('2026-05-01T12:00:00Z');
    // The last status says synced, even though the process that wrote it has ended.
    const status = { owner: { state: 'Synced', lastContact: '2026-05-01T11:59:50Z' } };
    const patch = { kind: 'merge', body: { status } } as const;
    await client.patch(peerType, { namespace, name: 'west' }, patch, { subresource: 'status' });
    for (const [index, age] of agesSeconds.entries())
      await client.create(leaseType, {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { namespace, name: `portolan-peering-${index}`, labels: { 'portolan.dev/part': 'peering' } },
        spec: { leaseDurationSeconds: 30, renewTime: formatMicroTime(nowMs - age * 1000) },
      });
    const problem = 'problem: the peering process does not report, this may be outdated; start portolan peering';
    for (const report of [
      await listPeers({ client, namespace }, nowMs),
      await showPeer({ client, namespace }, 'west', { nowMs }),
    ]) {
      expect(report.isSilent).toBe(isSilent);
      expect(report.lines.includes(problem)).toBe(isSilent);
    }
  },
);

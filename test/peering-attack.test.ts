// Attacks on a real peering process: strangers that hold connections and bodies open, and one peer that sends large
// services while another waits for its status.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http2 from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { serveGrpc } from '../src/base/grpc/transport-server.ts';
import { silentLog } from '../src/base/log.ts';
import { type Peer, peerType } from '../src/peering/kinds/peer.ts';
import type { SharedService } from '../src/peering/kinds/shared-service.ts';
import { introductionPath } from '../src/peering/rules/peer-introduction.ts';
import { meshOf } from '../src/peering/testing/edge/mesh.ts';
import { serviceOf } from '../src/peering/testing/services.ts';
import { v1alpha1 } from '../src/peering/transport/wire.ts';
import { type Mesh, startMesh } from './support/peering-mesh.ts';

const folder = mkdtempSync(join(tmpdir(), 'peering-attack-'));
const namespace = 'portolan-system';
let ours: Mesh;
const closing: (() => unknown)[] = [];

beforeAll(async () => {
  ours = await startMesh('ours', join(folder, 'ours'));
});

afterAll(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  await ours?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const eventually = <T>(read: () => Promise<T> | T) => expect.poll(read, { timeout: 30_000, interval: 200 });

/** Resident memory of the peering process, in MB. */
function memory(): number {
  const status = readFileSync(`/proc/${ours.peering.child.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

/** Sockets of the peering process on its port, also those that wait for the other side to hang up: they have an inode. */
function connections(): number {
  const port = Number(ours.peering.address.split(':')[1]).toString(16).toUpperCase().padStart(4, '0');
  const rows = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const listening = '0A';
  return rows.filter((row) => row[1]?.endsWith(`:${port}`) && row[3] !== listening && row[9] !== '0').length;
}

test('strangers: 150 connections without a certificate, 16 unfinished POSTs each -> memory stays, peers are served', async () => {
  const before = memory();
  const sessions = Array.from({ length: 150 }, () =>
    http2.connect(`https://${ours.peering.address}`, { rejectUnauthorized: false }),
  );
  closing.push(() => {
    for (const session of sessions) session.destroy();
  });
  for (const session of sessions) {
    session.on('error', () => {});
    for (let n = 0; n < 16; n += 1) {
      const stream = session.request({
        ...{ ':method': 'POST', ':path': introductionPath, 'content-type': 'application/json' },
      });
      stream.on('error', () => {});
      stream.write(Buffer.alloc(250_000, 'x'));
    }
  }
  await new Promise((resolve) => setTimeout(resolve, 3000));
  expect(memory() - before).toBeLessThan(80);
  expect((await ours.peer('list')).code).toBe(0);
  // They are cut off: a connection whose calls are all refused does not stay.
  await eventually(connections).toBe(0);
});

/** An owner that sends its whole catalog without waiting for an answer. */
async function addOwner(name: string, services: readonly SharedService[]): Promise<void> {
  const mesh = meshOf(`${name}.example`);
  const server = await serveGrpc<string>({
    ...{ host: '127.0.0.1', port: 0, tls: mesh.issue(), log: silentLog },
    judge: () => ({ kind: 'trusted', caller: 'ours' }),
    callerKey: (caller) => caller,
    accept: (call) => {
      call.sendHeaders({});
      const offers = services.map((service) => v1alpha1.encodeOffer(service));
      for (const [n, offer] of offers.entries())
        call.send(v1alpha1.encodeOwnerMessage({ kind: 'create', nonce: String(n), offer }));
      return { onMessage() {}, onDrain() {}, onClosed() {} };
    },
    ...{ messageBytesMax: 65_536, keepAliveMs: 10_000 },
  });
  closing.push(() => server.close());
  const spec = {
    address: `127.0.0.1:${server.port}`,
    trust: { domain: `${name}.example`, bundle: mesh.certificate },
    ...{ allowedDomains: [`${name}.example`], versions: ['v1alpha1'] },
    foreign: { quietSeconds: 1, graceSeconds: 1 },
  };
  const kind = { apiVersion: 'portolan.dev/v1alpha1', kind: 'Peer', metadata: { name, namespace } };
  await ours.client.create<Peer>(peerType, { ...kind, spec } as Peer);
}

function catalog(mesh: string, count: number, labels: Record<string, string> = {}): SharedService[] {
  return Array.from({ length: count }, (_, n) =>
    serviceOf(`s${n}.${mesh}.example`, { fqdn: `s${n}.${mesh}.example`, san: `spiffe://${mesh}.example/w`, labels }),
  );
}

test('one peer sends 300 services of 0.9 MB at once -> so much is stored and no more, memory stays, another peer is synced meanwhile', async () => {
  const before = memory();
  let most = before;
  const watching = setInterval(() => (most = Math.max(most, memory())), 100);
  closing.push(() => clearInterval(watching));
  const labels = Object.fromEntries(Array.from({ length: 220 }, (_, n) => [`label-${n}`, 'x'.repeat(4000)]));
  await addOwner('large', catalog('large', 300, labels));
  await addOwner('small', catalog('small', 3));
  const peer = async (name: string) => (await ours.client.get<Peer>(peerType, { namespace, name })).status?.consumer;
  await eventually(() => peer('small')).toMatchObject({ state: 'Synced', services: 3 });
  // As many of 0.9 MB each as the default of 32 MiB has room for.
  await eventually(async () => (await peer('large'))?.services).toBe(37);
  expect((await peer('large'))?.refusals?.[0]?.reason).toContain('33554432 bytes');
  // About 160 MB on a busy machine: five times what is kept, while it is decoded, written and read back.
  expect(most - before).toBeLessThan(250);
}, 90_000);

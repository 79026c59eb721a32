// Stock gRPC for Python as the other mesh: its ping policy as an owner, its check of host names as a consumer.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { silentLog } from '../src/base/log.ts';
import { createMetrics } from '../src/base/metrics.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { type ConfigMap, configMapType } from '../src/kube/objects/config-map.ts';
import { startPeeringRole } from '../src/main/peering/part.ts';
import { type Peer, peerType } from '../src/peering/kinds/peer.ts';
import { meshCardName } from '../src/peering/rules/peer-introduction.ts';
import { memoryHome, namespace, startMesh } from '../src/peering/testing/edge/memory-home.ts';
import { meshOf } from '../src/peering/testing/edge/mesh.ts';
import { response } from './foreign-peer/wire.ts';
import { describeWith, pathOf } from './support/counterparts.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const foreign = meshOf('foreign.example');
const eventually = <T>(read: () => Promise<T> | T) => expect.poll(read, { timeout: 20_000, interval: 50 });

function run(script: string, args: readonly string[]): { child: ChildProcess; said: () => string } {
  const file = fileURLToPath(new URL(`foreign-peer/${script}`, import.meta.url));
  const child = spawn('python3', [file, ...args], { env: { ...process.env, PYTHONPATH: pathOf('grpcio') } });
  let said = '';
  child.stdout.on('data', (chunk) => (said += chunk));
  child.stderr.on('data', (chunk) => (said += chunk));
  closing.push(() => child.kill('SIGKILL'));
  return { child, said: () => said };
}

/** Paths of files with these contents. */
function files(contents: Readonly<Record<string, string>>): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'grpcio-'));
  closing.push(() => rmSync(folder, { recursive: true }));
  return Object.entries(contents).map(([name, text]) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  });
}

describeWith(['grpcio'], 'grpcio', () => {
  test('grpcio as owner, which cuts off who pings too often -> we ping less often, its catalog stays whole', async () => {
    const ours = await startMesh('ours', { limits: { keepAliveMs: 100 } });
    closing.push(() => ours.stop());
    const { certificate, key } = foreign.issue();
    const endpoints = [{ address: '192.0.2.9', port: 443 }];
    const services = Array.from({ length: 20 }, (_, n) =>
      response(1, {
        ...{ id: `s${n}.foreign.example`, fqdn: `s${n}.foreign.example`, san: 'spiffe://foreign.example/w' },
        ...{ protocols: ['http'], endpoints },
      }).toString('base64'),
    );
    const paths = files({ cert: certificate, key, roots: ours.mesh.certificate, messages: services.join('\n') });
    const owner = run('grpcio-owner.py', paths);
    await eventually(owner.said).toContain('port ');
    const port = /port (\d+)/.exec(owner.said())?.[1];
    await ours.addPeer('foreign', {
      address: `127.0.0.1:${port}`,
      trust: { domain: 'foreign.example', bundle: foreign.certificate },
      ...{ allowedDomains: ['foreign.example'], versions: ['v1alpha1'], foreign: { quietSeconds: 1, graceSeconds: 2 } },
    });
    const report = () => ours.peering.consumer()?.report('foreign');
    await eventually(() => report()?.keepAliveMs).toBe(45_000);
    await eventually(() => report()?.fullSyncMs !== undefined && report()?.state.kind).toBe('waiting');
    expect(await ours.peerServices()).toHaveLength(20);
    const streams = owner.said().split('stream').length;
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect(owner.said().split('stream').length).toBe(streams);
  });

  test('grpcio as consumer, which verifies our name or address -> it gets our catalog', async () => {
    const home = await memoryHome();
    closing.push(() => home.stop());
    const role = await startPeeringRole({
      ...{ world: createRealWorld(), log: silentLog, metrics: createMetrics(), home: home.client, namespace },
      ...{ listen: { host: '127.0.0.1', port: 0 }, advertise: '127.0.0.1:0' },
      mesh: { trustDomain: 'ours.example', domain: 'ours.example', ingress: [{ address: '192.0.2.1', port: 15443 }] },
      ...{ own: { zones: [], ranges: [], hosts: [] }, versions: ['v1alpha1'], isReplicated: false, addressRanges: [] },
    });
    closing.push(() => role.stop());
    const spec = { trust: { domain: 'foreign.example', bundle: foreign.certificate } };
    const metadata = { name: 'foreign', namespace };
    await home.client.create<Peer>(peerType, { apiVersion: 'portolan.dev/v1alpha1', kind: 'Peer', metadata, spec });
    const about = { name: 'db', namespace: 'shop' };
    const service = { apiVersion: 'v1', kind: 'Service', metadata: about, spec: { ports: [{ port: 80 }] } };
    await home.client.create(
      { group: '', version: 'v1', plural: 'services', kind: 'Service', isNamespaced: true },
      service,
    );
    await home.client.create(
      { group: 'portolan.dev', version: 'v1alpha1', plural: 'peerexports', kind: 'PeerExport', isNamespaced: true },
      {
        ...{ apiVersion: 'portolan.dev/v1alpha1', kind: 'PeerExport', metadata: { name: 'all', namespace: 'shop' } },
        spec: { serviceSelector: {}, peers: ['foreign'] },
      },
    );
    const card = await home.client.get<ConfigMap>(configMapType, { namespace, name: meshCardName });
    const { certificate, key } = foreign.issue();
    const paths = files({ cert: certificate, key, roots: card.data?.['bundle'] ?? '' });
    const consumer = run('grpcio-consumer.py', [role.advertised, ...paths, '1']);
    await eventually(consumer.said).toContain('received 1');
    await eventually(() => role.peering.owner.left('foreign') !== undefined).toBe(true);
  });
});

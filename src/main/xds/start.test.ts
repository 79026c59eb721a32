// How the discovery server starts: nothing before the home was read, and listeners on one address where it is bound to it.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { cluster, giveMesh, startXdsTest } from '../../../test/support/xds.ts';
import { clusters, local as localStream, node, type Stream } from '../../../test/support/xds-stream.ts';
import { silentLog } from '../../base/log.ts';
import { createMetrics } from '../../base/metrics.ts';
import { ConnectionError } from '../../base/real/connection-error.ts';
import { createRealWorld } from '../../base/real/world.ts';
import { meshExternalServiceType } from '../../external/kinds/mesh-external-service.ts';
import { createAuthority } from '../../external/testing/pem.ts';
import { externalService } from '../../external/testing/services.ts';
import type { Client } from '../../kube/client/client.ts';
import { peerType } from '../../peering/kinds/peer.ts';
import { type PeerService, peerServiceType } from '../../peering/kinds/peer-service.ts';
import { memoryHome, namespace } from '../../peering/testing/edge/memory-home.ts';
import { typeUrlOf } from '../../xds/envoy-schema.ts';
import { startXdsRole } from './part.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function local({ socket }: { readonly socket: string }): Stream {
  const stream = localStream(socket);
  closing.push(() => stream.close());
  return stream;
}

async function shareByPeer(client: Client): Promise<void> {
  const bundle = createAuthority().certificate;
  const trust = { domain: 'acme.example', bundle };
  const apiVersion = 'portolan.dev/v1alpha1';
  await giveMesh(client, 'globex.example');
  await client.create(peerType, { apiVersion, kind: 'Peer', metadata: { name: 'acme', namespace }, spec: { trust } });
  const created = await client.create<PeerService>(peerServiceType, {
    ...{ apiVersion, kind: 'PeerService', metadata: { name: 'acme.db', namespace } },
    spec: {
      ...{ peer: 'acme', id: 'db.acme.example', fqdn: 'db.acme.example', sans: ['spiffe://acme.example/db'] },
      endpoints: [{ address: '192.0.2.10', port: 15_443 }],
    },
  });
  await client.updateStatus<PeerService>(peerServiceType, { ...created, status: { ips: ['127.9.0.1'] } });
}

test('xds: the home is away when it starts -> it waits for it, and serves', async () => {
  const home = await memoryHome();
  closing.push(() => home.stop());
  let left = 3;
  const away = new Proxy(home.client, {
    get: (target, name) => {
      if (name !== 'get' || left === 0) return Reflect.get(target, name);
      left -= 1;
      return () => Promise.reject(new ConnectionError('GET /', { code: 'ECONNREFUSED' }));
    },
  });
  const role = await startXdsRole({
    ...{ world: createRealWorld(), log: silentLog, metrics: createMetrics(), home: away, namespace, cluster },
    lookUp: async () => ({ addresses: [], ttlSeconds: 300 }),
    ...{ hosts: [], listen: { host: '127.0.0.1', port: 0 }, ports: { virtual: 15_003, ingress: 15_443 } },
  });
  closing.push(() => role.stop());
  expect([left, role.port > 0]).toEqual([0, true]);
});

test('xds: the home has not been read yet -> Unavailable, so that no proxy loses what it has', async () => {
  const home = await memoryHome();
  closing.push(() => home.stop());
  const never = () => new Promise<never>(() => {});
  const waiting = new Proxy(home.client, {
    get: (target, name) => (name === 'list' || name === 'listPaged' ? never : Reflect.get(target, name)),
  });
  const folder = await mkdtemp(join(tmpdir(), 'portolan-xds-early-'));
  closing.push(() => rm(folder, { recursive: true }));
  const role = await startXdsRole({
    ...{ world: createRealWorld(), log: silentLog, metrics: createMetrics(), home: waiting, namespace, cluster },
    lookUp: async () => ({ addresses: [], ttlSeconds: 300 }),
    ...{
      hosts: [],
      socket: { path: join(folder, 'xds.sock'), mode: 0o660 },
      ports: { virtual: 15_003, ingress: 15_443 },
    },
  });
  closing.push(() => role.stop());
  const stream = local({ socket: join(folder, 'xds.sock') });
  stream.send({ ...node('sidecar~east~web'), ...clusters });
  expect(await stream.ended).toEqual({ code: 14, message: 'the home has not been read yet' });
});

test('xds: bound to one address -> every listener is there, and those of peers listen by themselves', async () => {
  const ofPeer = 'peer/acme.db 127.9.0.1 15443';
  for (const boundTo of [undefined, '127.9.0.9']) {
    const xds = await startXdsTest(boundTo === undefined ? {} : { boundTo });
    closing.push(() => xds.stop());
    await shareByPeer(xds.client);
    await xds.client.create(
      meshExternalServiceType,
      externalService(`{ match: [{ type: IP, value: 10.9.9.9, port: 80 }] }`),
    );
    const stream = await xds.proxy('sidecar~east~web');
    closing.push(() => stream.close());
    stream.send({ ...node('sidecar~east~web'), type_url: typeUrlOf('listener') });
    const found = new Map<string, string>();
    while (found.size < 4) {
      const { nonce, type_url, resources } = await stream.next();
      for (const { name, resource } of (resources ?? []) as { name: string; resource: unknown }[])
        found.set(name, JSON.stringify(resource));
      stream.send({ type_url, response_nonce: nonce });
    }
    for (const name of ['portolan-virtual', 'outbound:inspected', 'outbound:plain'])
      expect(found.get(name)!.includes('127.9.0.9'), name).toBe(boundTo !== undefined);
    expect(found.get(ofPeer)!.includes('"bind_to_port":true'), found.get(ofPeer)).toBe(boundTo !== undefined);
  }
});

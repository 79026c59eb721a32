// Access to the discovery server, and the cost that a proxy can cause.

import { stat } from 'node:fs/promises';
import type http2 from 'node:http2';
import { afterEach, describe, expect, test } from 'vitest';
import { addImport, cluster, putEndpoints, startXdsTest, type XdsTest } from '../../../test/support/xds.ts';
import { clusters, connect, local as localStream, node, type Stream } from '../../../test/support/xds-stream.ts';
import { createRealWorld } from '../../base/real/world.ts';
import { memoryHome, namespace } from '../../peering/testing/edge/memory-home.ts';
import { issueProxy, openAuthority } from '../../xds/identity/authority.ts';
import type { ProxyIdentity } from '../../xds/identity/proxy-identity.ts';

const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function open(target: string, options: http2.SecureClientSessionOptions): Stream {
  const stream = connect(target, options);
  closing.push(() => stream.close());
  return stream;
}

async function start(): Promise<XdsTest> {
  const made = await startXdsTest();
  closing.push(() => made.stop());
  return made;
}

function local({ socket }: XdsTest, path?: string): Stream {
  const stream = localStream(socket, path);
  closing.push(() => stream.close());
  return stream;
}

async function sidecarOf(xds: XdsTest, name: string): Promise<Stream> {
  const stream = await xds.proxy(`sidecar~${cluster}~${name}`);
  closing.push(() => stream.close());
  return stream;
}

async function byTls(xds: XdsTest, identity: ProxyIdentity | undefined, lifetimeMs?: number): Promise<Stream> {
  const options = { world: createRealWorld(), home: xds.client, namespace, cluster };
  const authority = await openAuthority(options);
  const pair = identity && issueProxy(options, authority, identity, lifetimeMs);
  return open(`https://127.0.0.1:${xds.role.port}`, {
    ca: authority.certificate,
    servername: 'portolan-xds',
    ...(pair && { cert: pair.certificate, key: pair.key }),
  });
}

const sidecar: ProxyIdentity = { role: 'sidecar', cluster, name: 'web' };

describe('xds: who may connect', () => {
  test('a sidecar with its certificate -> served', async () => {
    const xds = await start();
    const stream = await byTls(xds, sidecar);
    stream.send({ ...node('sidecar~east~web'), ...clusters });
    expect(await stream.next()).toMatchObject({ type_url: clusters.type_url });
  });

  test('no certificate -> Unauthenticated, counted', async () => {
    const xds = await start();
    const stream = await byTls(xds, undefined);
    expect(await stream.ended).toMatchObject({ code: 16, message: 'no certificate was presented' });
    expect(await xds.metrics.text()).toContain('portolan_xds_turned_away_total{reason="certificate"} 1');
  });

  test('its certificate ends while it is served -> the stream ends then with Unauthenticated', async () => {
    const xds = await start();
    const stream = await byTls(xds, sidecar, 3000);
    stream.send({ ...node('sidecar~east~web'), ...clusters });
    expect(await stream.next()).toMatchObject({ type_url: clusters.type_url });
    expect(await stream.ended).toMatchObject({ code: 16, message: expect.stringContaining('has ended') });
  });

  test("another cluster's certificate -> Unauthenticated, whoever issued it", async () => {
    const xds = await start();
    const stream = await byTls(xds, { ...sidecar, cluster: 'west' });
    expect(await stream.ended).toMatchObject({ code: 16, message: expect.stringContaining('belongs to cluster west') });
    const other = await memoryHome();
    closing.push(() => other.stop());
    const foreign = { world: createRealWorld(), home: other.client, namespace, cluster };
    const pair = issueProxy(foreign, await openAuthority(foreign), sidecar);
    const stranger = open(`https://127.0.0.1:${xds.role.port}`, {
      rejectUnauthorized: false,
      cert: pair.certificate,
      key: pair.key,
    });
    expect(await stranger.ended).toMatchObject({ code: 16, message: expect.stringContaining('was not issued for') });
  });

  test.each([
    ['unknown', 'node id "router" is unknown'],
    ['sidecar~west~web', 'is of another cluster'],
    ['ingress~east~web', 'is not that of the certificate'],
    ['sidecar~east~other', 'is not that of the certificate'],
  ])('node id %s -> PermissionDenied, counted', async (id, reason) => {
    const xds = await start();
    const stream = await byTls(xds, sidecar);
    stream.send({ ...node(id === 'unknown' ? 'router' : id), ...clusters });
    expect(await stream.ended).toMatchObject({ code: 7, message: expect.stringContaining(reason) });
    expect(await xds.metrics.text()).toContain('portolan_xds_turned_away_total{reason="node"} 1');
  });

  test('the local socket -> for its owner and group only, and only role grpc by it', async () => {
    const xds = await start();
    expect((await stat(xds.socket)).mode & 0o777).toBe(0o660);
    for (const role of ['ingress', 'sidecar']) {
      const stream = local(xds);
      stream.send({ ...node(`${role}~east~web`), ...clusters });
      expect(await stream.ended).toMatchObject({ code: 7, message: expect.stringContaining('mutual TLS') });
    }
  });
});

test('xds: a flood of requests that answer nothing -> ResourceExhausted, counted; another proxy is served', async () => {
  const xds = await start();
  const stream = await sidecarOf(xds, 'loud');
  stream.send({ ...node('sidecar~east~loud'), ...clusters });
  for (let i = 0; i < 2000; i++) stream.send({ ...clusters, resource_names_subscribe: [`c${i}`], response_nonce: 'x' });
  expect(await stream.ended).toMatchObject({ code: 8 });
  expect(await xds.metrics.text()).toContain('portolan_xds_turned_away_total{reason="flood"} 1');
  const calm = await sidecarOf(xds, 'calm');
  calm.send({ ...node('sidecar~east~calm'), ...clusters });
  expect(await calm.next()).toMatchObject({ type_url: clusters.type_url });
});

test('xds: names by the hundred thousand in a few requests -> ResourceExhausted, counted', async () => {
  const xds = await start();
  const stream = await sidecarOf(xds, 'greedy');
  stream.send({ ...node('sidecar~east~greedy'), ...clusters });
  for (let round = 0; round < 6; round++) {
    const names = Array.from({ length: 20_000 }, (_, at) => `c${round}-${at}`);
    stream.send({ ...clusters, resource_names_subscribe: names });
  }
  expect(await stream.ended).toMatchObject({ code: 8, message: expect.stringContaining('names are subscribed') });
  expect(await xds.metrics.text()).toContain('portolan_xds_turned_away_total{reason="flood"} 1');
});

test('xds: one type on its own stream -> served without the others', async () => {
  const xds = await start();
  await addImport(xds.client, { name: 'checkout', port: 80 });
  await putEndpoints(xds.client, { name: 'checkout' }, 'east', { port: 8080, addresses: ['10.0.0.1'] });
  const path = '/envoy.service.endpoint.v3.EndpointDiscoveryService/DeltaEndpoints';
  const stream = local(xds, path);
  stream.send({ ...node('grpc~east~app'), resource_names_subscribe: ['checkout.shop.svc.clusterset.local:80'] });
  expect(JSON.stringify(await stream.next())).toContain('10.0.0.1');
});

import { stat } from 'node:fs/promises';
import http2 from 'node:http2';
import { createConnection } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { addImport, cluster, putEndpoints, startXdsTest, type XdsTest } from '../../test/support/xds.ts';
import { FrameReader, frameOf } from '../base/grpc/frames.ts';
import { decodeMessage } from '../base/protobuf/decode.ts';
import { encodeMessage } from '../base/protobuf/encode.ts';
import { WireReader } from '../base/protobuf/wire-reader.ts';
import { createRealWorld } from '../base/real/world.ts';
import { type ServiceImport, serviceImportType } from '../clusterset/kinds/service-import.ts';
import type { Lease } from '../kube/objects/lease.ts';
import { leaseType } from '../kube/objects/lease.ts';
import { memoryHome, namespace } from '../peering/testing/edge/memory-home.ts';
import { envoySchema, typeUrlOf } from '../xds/envoy-schema.ts';
import { issueProxy, openAuthority } from '../xds/identity/authority.ts';
import type { ProxyIdentity } from '../xds/identity/proxy-identity.ts';

const service = 'envoy.service.discovery.v3';
const ads = `/${service}.AggregatedDiscoveryService/DeltaAggregatedResources`;
const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function start(): Promise<XdsTest> {
  const made = await startXdsTest();
  closing.push(() => made.stop());
  return made;
}

interface Stream {
  send(fields: Record<string, unknown>): void;
  next(): Promise<Record<string, unknown>>;
  /** The status the call ended with. */
  readonly ended: Promise<{ code: number; message: string }>;
}

/** A proxy reduced to its gRPC stream. */
function connect(target: string, options: http2.SecureClientSessionOptions & { path?: string }, path = ads): Stream {
  const session = http2.connect(target, options);
  session.on('error', () => {});
  closing.push(() => session.destroy());
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
  });
  const reader = new FrameReader({ messageBytesMax: 1 << 20 });
  const arrived: Record<string, unknown>[] = [];
  const waiting: ((message: Record<string, unknown>) => void)[] = [];
  stream.on('data', (chunk: Buffer) => {
    for (const bytes of reader.read(chunk)) {
      const message = decodeMessage(envoySchema, `${service}.DeltaDiscoveryResponse`, new WireReader(bytes));
      const waiter = waiting.shift();
      if (waiter === undefined) arrived.push(message);
      else waiter(message);
    }
  });
  stream.on('error', () => {});
  const ended = new Promise<{ code: number; message: string }>((resolve) => {
    const end = (headers: http2.IncomingHttpHeaders) => {
      if (headers['grpc-status'] === undefined) return;
      const message = decodeURIComponent(String(headers['grpc-message'] ?? ''));
      resolve({ code: Number(headers['grpc-status']), message });
    };
    stream.on('response', end);
    stream.on('trailers', end);
  });
  return {
    ended,
    send: (fields) => stream.write(frameOf(encodeMessage(envoySchema, `${service}.DeltaDiscoveryRequest`, fields))),
    next: () => {
      const message = arrived.shift();
      return message === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(message);
    },
  };
}

function local(xds: XdsTest): Stream {
  return connect('http://localhost', { createConnection: () => createConnection(xds.socket) } as never);
}

async function byTls(xds: XdsTest, identity: ProxyIdentity | undefined): Promise<Stream> {
  const options = { world: createRealWorld(), home: xds.client, namespace, cluster };
  const authority = await openAuthority(options);
  const pair = identity && issueProxy(options, authority, identity);
  return connect(`https://127.0.0.1:${xds.role.port}`, {
    ca: authority.certificate,
    servername: 'portolan-xds',
    ...(pair && { cert: pair.certificate, key: pair.key }),
  });
}

const node = (id: string) => ({ node: { id, user_agent_name: 'envoy', metadata: { clusterset: 'proxied' } } });
const clusters = { type_url: typeUrlOf('cluster') };
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

  test("another cluster's certificate -> Unauthenticated, whoever issued it", async () => {
    const xds = await start();
    const stream = await byTls(xds, { ...sidecar, cluster: 'west' });
    expect(await stream.ended).toMatchObject({ code: 16, message: expect.stringContaining('belongs to cluster west') });
    const other = await memoryHome();
    closing.push(() => other.stop());
    const foreign = { world: createRealWorld(), home: other.client, namespace, cluster };
    const pair = issueProxy(foreign, await openAuthority(foreign), sidecar);
    const stranger = connect(`https://127.0.0.1:${xds.role.port}`, {
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

  test('the local socket -> for its owner and group only, and no ingress by it', async () => {
    const xds = await start();
    expect((await stat(xds.socket)).mode & 0o777).toBe(0o660);
    const stream = local(xds);
    stream.send({ ...node('ingress~east~web'), ...clusters });
    expect(await stream.ended).toMatchObject({ code: 7, message: expect.stringContaining('mutual TLS') });
  });
});

test('xds: a flood of requests that answer nothing -> ResourceExhausted, counted; another proxy is served', async () => {
  const xds = await start();
  const stream = local(xds);
  stream.send({ ...node('sidecar~east~loud'), ...clusters });
  for (let i = 0; i < 2000; i++) stream.send({ ...clusters, resource_names_subscribe: [`c${i}`], response_nonce: 'x' });
  expect(await stream.ended).toMatchObject({ code: 8 });
  expect(await xds.metrics.text()).toContain('portolan_xds_turned_away_total{reason="flood"} 1');
  const calm = local(xds);
  calm.send({ ...node('sidecar~east~calm'), ...clusters });
  expect(await calm.next()).toMatchObject({ type_url: clusters.type_url });
});

test('xds: one type on its own stream -> served without the others', async () => {
  const xds = await start();
  await addImport(xds.client, { name: 'checkout', port: 80 });
  await putEndpoints(xds.client, { name: 'checkout' }, 'east', { port: 8080, addresses: ['10.0.0.1'] });
  const path = '/envoy.service.endpoint.v3.EndpointDiscoveryService/DeltaEndpoints';
  const stream = connect('http://localhost', { createConnection: () => createConnection(xds.socket) } as never, path);
  stream.send({ ...node('grpc~east~app'), resource_names_subscribe: ['checkout.shop.svc.clusterset.local:80'] });
  expect(JSON.stringify(await stream.next())).toContain('10.0.0.1');
});

test('xds: a proxy refuses a resource -> a condition on its cause, in status and Lease; a better version -> taken back', async () => {
  const xds = await start();
  await addImport(xds.client, { name: 'checkout', port: 80 });
  await new Promise((resolve) => setTimeout(resolve, 100));
  const stream = await byTls(xds, sidecar);
  stream.send({ ...node('sidecar~east~web'), ...clusters });
  const name = 'checkout.shop.svc.clusterset.local:80';
  for (;;) {
    const { nonce, type_url, resources } = await stream.next();
    const isBad = JSON.stringify(resources).includes(name) && type_url === clusters.type_url;
    const error_detail = { code: 13, message: 'no such thing' };
    stream.send({ type_url, response_nonce: nonce, ...(isBad && { error_detail }) });
    if (isBad) break;
  }
  const condition = await until(async () => {
    const object = await xds.client.get<ServiceImport>(serviceImportType, { namespace: 'shop', name: 'checkout' });
    return object.status?.conditions?.find(({ type }) => type === 'Programmed');
  });
  expect(condition).toMatchObject({
    status: 'False',
    reason: 'RefusedByProxy',
    message: `proxy sidecar~east~web refused cluster ${name}: no such thing`,
  });
  expect(xds.role.service.proxies.reports()[0]!.refused).toMatchObject([{ name, isHeldAtLastGood: false }]);
  const leases = await xds.client.list<Lease>(leaseType, { namespace, labelSelector: 'portolan.dev/part=xds' });
  expect(leases.items.length).toBe(1);
  const present = await xds.client.get<ServiceImport>(serviceImportType, { namespace: 'shop', name: 'checkout' });
  const ports = [{ port: 80, protocol: 'TCP' as const, appProtocol: 'grpc' }];
  await xds.client.update<ServiceImport>(serviceImportType, { ...present, spec: { ...present.spec, ports } });
  const { nonce, type_url } = await stream.next();
  stream.send({ type_url, response_nonce: nonce });
  const mended = await until(async () => {
    const object = await xds.client.get<ServiceImport>(serviceImportType, { namespace: 'shop', name: 'checkout' });
    const found = object.status?.conditions?.find(({ type }) => type === 'Programmed');
    return found?.status === 'True' ? found : undefined;
  });
  expect(mended.reason).toBe('Accepted');
});

async function until<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (let i = 0; i < 500; i++) {
    const found = await look();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error('it did not come');
}

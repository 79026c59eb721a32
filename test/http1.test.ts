// Every verb of a running home over HTTP/1.1 and HTTP/2, byte for byte the same, on kept and on pipelined connections; and the
// other HTTP servers of the project, each answer alone and in a row.

import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect as connectTcp, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { serveGrpc } from '../src/base/grpc/transport-server.ts';
import { silentLog } from '../src/base/log.ts';
import { createMetrics } from '../src/base/metrics.ts';
import { startAdminEndpoint } from '../src/base/real/admin-endpoint.ts';
import { createRealWorld } from '../src/base/real/world.ts';
import { startDashboard } from '../src/dashboard/server.ts';
import { listenFederations } from '../src/dns/sockets/server-federations.ts';
import { Federations } from '../src/dns/stub-zones/federations.ts';
import { makeAuthority } from '../src/dns/testing/edge/certs.ts';
import { startControl } from '../src/main/demo/control.ts';
import { startBackend } from '../src/main/demo/services.ts';
import { type ApiProcess, type Connection, connect, startApi } from './support/api-process.ts';
import { askHttp1, type Http1Request } from './support/http1-socket.ts';

const maps = '/api/v1/namespaces/default/configmaps';
const table = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json' };
const metadata = { accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json' };
const protobuf = { accept: 'application/vnd.kubernetes.protobuf' };
const json = { 'content-type': 'application/json' };

describe('http1: a running home', () => {
  const root = mkdtempSync(join(tmpdir(), 'portolan-http1-'));
  let api: ApiProcess;
  let http2: Connection;
  const sockets: Socket[] = [];
  beforeAll(async () => {
    api = await startApi({ data: join(root, 'home') });
    http2 = await connect(api.kubeconfig);
    const object = (index: number) => ({ metadata: { name: `m-${index}` }, data: { value: 'ü'.repeat(index % 300) } });
    for (let index = 0; index < 500; index += 50)
      await Promise.all(Array.from({ length: 50 }, (_, more) => http2.request('POST', maps, object(index + more))));
  });
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    http2.close();
    await api.stop();
    rmSync(root, { recursive: true, force: true });
  });

  async function dial(): Promise<Socket> {
    const config = parse(readFileSync(api.kubeconfig, 'utf8'));
    const pem = (text: string) => Buffer.from(text, 'base64');
    const { 'client-certificate-data': cert, 'client-key-data': key } = config.users[0].user;
    const ca = pem(config.clusters[0].cluster['certificate-authority-data']);
    const options = { ca, cert: pem(cert), key: pem(key), ALPNProtocols: ['http/1.1'] };
    const socket = connectTls({ host: '127.0.0.1', port: api.port, ...options });
    sockets.push(socket);
    await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
    return socket;
  }

  /** What answers over both must agree in. */
  const seen = ({ status, body }: { status: number; body: Buffer }) => {
    // Tables have ages in them.
    const text = body.toString('latin1');
    return { status, body: text.startsWith('{"kind":"Table"') ? text.replaceAll(/"\d+m?\d*s"/g, '"age"') : text };
  };

  test('reads of every kind and size -> the same over HTTP/2, kept HTTP/1.1 and pipelined HTTP/1.1', async () => {
    const index = JSON.parse((await http2.request('GET', '/openapi/v3')).body.toString()) as { paths: object };
    const documents = Object.keys(index.paths).map((path) => ({ method: 'GET', path: `/openapi/v3/${path}` }));
    expect(documents.length).toBeGreaterThan(10);
    const list = JSON.parse((await http2.request('GET', `${maps}?limit=1`)).body.toString());
    const from = list.metadata.resourceVersion as string;
    await http2.request(
      'PATCH',
      `${maps}/m-1`,
      { data: { value: 'changed' } },
      {
        'content-type': 'application/merge-patch+json',
      },
    );
    const watch = `${maps}?watch=true&timeoutSeconds=1&resourceVersion=`;
    const requests: Http1Request[] = [
      { method: 'GET', path: maps },
      { method: 'GET', path: `${maps}?limit=7` },
      { method: 'GET', path: maps, headers: table },
      { method: 'GET', path: maps, headers: metadata },
      { method: 'GET', path: maps, headers: protobuf },
      {
        method: 'GET',
        path: '/openapi/v2',
        headers: { accept: 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf' },
      },
      { method: 'HEAD', path: maps },
      { method: 'GET', path: `${maps}/m-299` },
      { method: 'GET', path: `${maps}/m-0`, headers: table },
      { method: 'GET', path: `${maps}/none` },
      { method: 'GET', path: '/apis/none.example/v1/things' },
      { method: 'GET', path: `${maps}?labelSelector=((` },
      { method: 'GET', path: watch + from },
      { method: 'GET', path: `${watch}1` },
      { method: 'GET', path: '/openapi/v3' },
      ...documents,
      { method: 'GET', path: '/apis' },
      { method: 'GET', path: '/api/v1' },
      { method: 'GET', path: '/version' },
      { method: 'GET', path: '/livez' },
      { method: 'GET', path: '/' },
      { method: 'DELETE', path: `${maps}/none` },
      { method: 'POST', path: maps, headers: json, body: '{"nonsense' },
      { method: 'PUT', path: `${maps}/m-0`, headers: json, body: '{"metadata":{"name":"m-0","resourceVersion":"1"}}' },
      { method: 'POST', path: maps, headers: json, body: JSON.stringify({ metadata: { name: 'm-0' } }) },
    ];
    const overHttp2 = [];
    for (const { method, path, body, headers = {} } of requests) {
      const { 'content-type': _type, ...rest } = headers as Record<string, string>;
      overHttp2.push(seen(await raw(http2, { method, path, body, headers: rest })));
    }
    for (const isPipelined of [false, true]) {
      const answers = await askHttp1(await dial(), requests, { isPipelined });
      for (const [n, answer] of answers.entries())
        expect({ request: requests[n], ...seen(answer) }).toEqual({ request: requests[n], ...overHttp2[n] });
      expect(answers).toHaveLength(requests.length);
    }
  }, 120_000);

  test('writes on one pipelined HTTP/1.1 connection -> each answers with what a GET over HTTP/2 then shows', async () => {
    const socket = await dial();
    const name = 'written';
    const object = { metadata: { name }, data: { value: 'x'.repeat(200_000) } };
    const body = JSON.stringify(object);
    const patch = JSON.stringify({ metadata: { labels: { a: 'b' } } });
    const steps: Http1Request[] = [
      { method: 'POST', path: maps, headers: json, body },
      { method: 'PUT', path: `${maps}/${name}`, headers: json, body: body.replace('xxx', 'yyy') },
      ...['merge-patch', 'strategic-merge-patch'].map((kind) => ({
        method: 'PATCH',
        path: `${maps}/${name}`,
        headers: { 'content-type': `application/${kind}+json` },
        body: patch,
      })),
    ];
    for (const step of steps) {
      const [answer, livez] = await askHttp1(socket, [step, { method: 'GET', path: '/livez' }], { isPipelined: true });
      const { body: shown } = await http2.request('GET', `${maps}/${name}`);
      expect([step.method, answer!.body.toString()]).toEqual([step.method, shown.toString()]);
      expect(livez!.body.toString()).toBe('ok');
    }
    const [gone, after] = await askHttp1(
      socket,
      [
        { method: 'DELETE', path: `${maps}/${name}` },
        { method: 'GET', path: `${maps}/${name}` },
      ],
      { isPipelined: true },
    );
    expect([gone!.status, after!.status]).toEqual([200, 404]);
  });
});

/** Bodies that are no JSON too. */
function raw(
  http2: Connection,
  { method, path, body, headers }: Http1Request,
): Promise<{ status: number; body: Buffer }> {
  if (body === undefined || body === '{"nonsense') {
    if (body === undefined) return http2.request(method, path, undefined, { ...headers });
    return new Promise((resolve, reject) => {
      const stream = http2.post(path);
      let status = 0;
      const chunks: Buffer[] = [];
      stream.on('response', (response) => (status = Number(response[':status'])));
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => resolve({ status, body: Buffer.concat(chunks) }));
      stream.on('error', reject);
      stream.end(body);
    });
  }
  return http2.request(method, path, JSON.parse(body), { ...headers });
}

describe('http1: the other servers', () => {
  const long = 'long '.repeat(100_000);
  const get = (path: string, headers: Record<string, string> = {}): Http1Request => ({ method: 'GET', path, headers });

  const authority = makeAuthority('http1');
  const material = authority.issue('resolver', { kind: 'server', hosts: ['127.0.0.1'] });
  const { certificate: cert, key } = authority.issue('agent', { kind: 'client' });

  interface Served {
    readonly port: number;
    readonly requests: Http1Request[];
    /** It speaks TLS. */
    readonly isTls?: boolean;
    stop(): unknown;
  }

  const servers: Record<string, () => Promise<Served>> = {
    'an admin endpoint': async () => {
      const admin = await startAdminEndpoint({
        listen: { host: '127.0.0.1', port: 0 },
        metrics: createMetrics(),
        notReady: () => '',
        status: () => ({ long }),
      });
      const requests = [
        get('/livez'),
        get('/status'),
        get('/none'),
        get('/readyz'),
        { ...get('/livez'), method: 'POST' },
      ];
      return { port: Number(new URL(admin.url).port), requests, stop: () => admin.close() };
    },
    'the dashboard': async () => {
      const asset = (text: string) => ({
        type: 'text/javascript',
        body: Buffer.from(text),
        gzip: () => Buffer.from(text),
      });
      const dashboard = await startDashboard({
        ...{ world: createRealWorld(), log: silentLog, homes: [], listen: { host: '127.0.0.1', port: 0 } },
        assets: new Map([
          ['/', asset('<html>')],
          ['/long.js', asset(long)],
        ]),
      });
      const zipped = { 'accept-encoding': 'gzip' };
      const requests = [
        get('/long.js'),
        get('/'),
        get('/none.js'),
        get('/long.js', zipped),
        get('/api/stream'),
        get('//['),
      ];
      return {
        port: Number(new URL(dashboard.url).port),
        requests: [...requests, { ...get('/long.js'), method: 'HEAD' }, get('/')],
        stop: () => dashboard.stop(),
      };
    },
    'the control of the demo': async () => {
      const control = await startControl({ secret: 's', handle: async (verb) => (verb === 'long' ? long : verb) });
      const post = (path: string, authorization: string): Http1Request => ({
        ...{ method: 'POST', path, headers: { authorization }, body: '' },
      });
      const requests = [post('/long/a', 'Bearer s'), post('/break/a', 'Bearer s'), post('/break/a', 'none'), get('/')];
      return { port: control.port, requests, stop: () => control.stop() };
    },
    'the stub-zone endpoint of a resolver': async () => {
      // Its longest answer holds what it was posted before.
      const names = Array.from({ length: 400 }, (_, index) => `${'f'.repeat(50)}-${index}`);
      const nameservers = Array.from({ length: 16 }, (_, index) => `192.0.2.${index}`);
      let stored = Buffer.from(
        JSON.stringify({
          federations: Object.fromEntries(names.map((name) => [name, { nameservers, suffix: long.slice(0, 1000) }])),
        }),
      );
      const federations = new Federations({
        ...{ log: silentLog, path: 'memory', allowed: ['agent'], onChange: () => {} },
        store: {
          read: async () => stored,
          write: async (bytes) => {
            await new Promise((resolve) => setTimeout(resolve, 20));
            stored = Buffer.from(bytes);
          },
        },
      });
      await federations.load();
      const listening = await listenFederations({
        ...{ federations, host: '127.0.0.1', port: 0, ...material, clientAuthority: authority.certificate },
      });
      const body = JSON.stringify({ nameservers });
      const post = { method: 'POST', path: '/federations/posted', headers: json };
      const requests: Http1Request[] = [
        { ...post, body },
        get('/federations/posted'),
        get('/federations'),
        { ...post, body: `${body}${' '.repeat(20_000)}` },
        get('/federations'),
        { ...post, body: '{"nonsense' },
        { ...post, method: 'PUT', body },
        { ...post, method: 'PATCH', body },
        get('/federations/none'),
        { method: 'DELETE', path: '/federations/posted' },
        get('/federations/posted'),
        get('/none'),
        get('/federations'),
      ];
      return { port: listening.port, requests, isTls: true, stop: () => listening.close() };
    },
    'a sample service of the demo': async () => {
      const backend = await startBackend({ address: '127.0.0.1', says: long });
      return { port: backend.port, requests: [get('/'), get('/a'), get('/b')], stop: () => backend.stop() };
    },
  };

  test.each(Object.keys(servers))('%s -> the same answers alone, in a row and pipelined', async (name) => {
    const { port, requests, isTls = false, stop } = await servers[name]!();
    const opened: Socket[] = [];
    const tls = { ca: authority.certificate, cert, key, ALPNProtocols: ['http/1.1'] };
    const dial = async () => {
      const socket = isTls ? connectTls({ host: '127.0.0.1', port, ...tls }) : connectTcp(port, '127.0.0.1');
      opened.push(socket);
      await new Promise((resolve) => socket.once(isTls ? 'secureConnect' : 'connect', resolve));
      return socket;
    };
    const seen = (answers: readonly { status: number; body: Buffer }[]) =>
      answers.map(({ status, body }) => `${status} ${body.length} ${createHash('sha256').update(body).digest('hex')}`);
    try {
      const alone = [];
      for (const request of requests) alone.push(...(await askHttp1(await dial(), [request], { isPipelined: false })));
      expect(alone).toHaveLength(requests.length);
      expect(Math.max(...alone.map(({ body }) => body.length))).toBeGreaterThan(400_000);
      for (const isPipelined of [false, true])
        expect(seen(await askHttp1(await dial(), requests, { isPipelined }))).toEqual(seen(alone));
    } finally {
      for (const socket of opened) socket.destroy();
      await stop();
    }
  });

  test('the port of gRPC -> HTTP/2 alone: a request of HTTP/1.1 is turned away, and nothing is judged or routed', async () => {
    const asked: string[] = [];
    const server = await serveGrpc({
      ...{ host: '127.0.0.1', port: 0, log: silentLog, messageBytesMax: 1000, keepAliveMs: 1000, tls: material },
      callerKey: () => 'caller',
      judge: () => ({ kind: 'trusted', caller: {} }),
      route: ({ path }) => {
        asked.push(path);
        return { status: 200, body: 'routed' };
      },
      accept: ({ path }) => void asked.push(path),
    });
    try {
      for (const ALPNProtocols of [['http/1.1'], []]) {
        const socket = connectTls({ host: '127.0.0.1', port: server.port, ca: authority.certificate, ALPNProtocols });
        socket.on('error', () => {});
        let text = '';
        socket.on('data', (chunk) => (text += chunk.toString('latin1')));
        const ended = new Promise((resolve) => socket.once('close', resolve));
        const head = 'host: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}';
        socket.write(`POST /a HTTP/1.1\r\n${head}POST /b HTTP/1.1\r\n${head}`);
        await ended;
        expect(text).not.toContain('routed');
      }
      expect(asked).toEqual([]);
    } finally {
      await server.close();
    }
  });
});

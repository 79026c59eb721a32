// DNS over HTTPS (RFC 8484): both methods, both versions of HTTP, a client of others, and requests that are no good.

import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import { connect } from 'node:http2';
import { request as httpsRequest } from 'node:https';
import { connect as connectTls } from 'node:tls';
import { promisify } from 'node:util';
import packet from 'dns-packet';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pathOf } from '../../test/support/counterparts.ts';
import { silentLog } from '../base/log.ts';
import { createRealWorld } from '../base/real/world.ts';
import { type DnsServer, startDns } from './server.ts';
import { addImport, describeAnswer, encodeQuestion, makeCatalog, syncAll } from './testing/ask.ts';
import { makeAuthority } from './testing/edge/certs.ts';

const authority = makeAuthority('dns authority');
const issued = authority.issue('dns', { kind: 'server', hosts: ['127.0.0.1', 'localhost'] });
const client = authority.issue('resolver.example', { kind: 'client' });
const known = 'checkout.shop.svc.clusterset.local A';
let server: DnsServer;
let base: string;

beforeAll(async () => {
  const catalog = makeCatalog();
  addImport(catalog, 'shop/checkout', { ips: ['127.0.0.1'] });
  syncAll(catalog);
  const material = { ...issued, clientAuthority: authority.certificate };
  server = await startDns({
    ...{ world: createRealWorld(), log: silentLog, catalog },
    listen: { hosts: ['127.0.0.1'], port: 0, tcpIdleMs: 700, tls: { port: 0, httpsPort: 0, material } },
  });
  base = `https://127.0.0.1:${server.httpsPort}`;
});

afterAll(() => server.close());

interface Reply {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  readonly body: Buffer;
}

interface Ask {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Record<string, string>;
  readonly body?: Buffer;
}

function http1({ method = 'GET', path, headers = {}, body }: Ask): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const request = httpsRequest(`${base}${path}`, { method, headers, ca: authority.certificate, agent: false });
    request.on('error', reject).on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) }),
      );
    });
    request.end(body);
  });
}

function http2({ method = 'GET', path, headers = {}, body }: Ask): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const session = connect(base, { ca: authority.certificate });
    session.on('error', reject);
    const stream = session.request({ ':method': method, ':path': path, ...headers });
    const chunks: Buffer[] = [];
    let head: Record<string, unknown> = {};
    stream.on('error', reject).on('response', (found) => (head = found));
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => {
      session.close();
      resolve({ status: Number(head[':status']), headers: head, body: Buffer.concat(chunks) });
    });
    stream.end(body);
  });
}

const get = (question: string): Ask => ({
  path: `/dns-query?dns=${encodeQuestion(question, { edns: true }).toString('base64url')}`,
});
const post = (body: Buffer, type = 'application/dns-message'): Ask => ({
  ...{ method: 'POST', path: '/dns-query', body },
  headers: { 'content-type': type },
});

describe.each([
  ['HTTP/1.1', http1],
  ['HTTP/2', http2],
])('dns over %s', (_version, ask) => {
  test('GET and POST -> the answer, kept no longer than its records', async () => {
    for (const request of [get(known), post(encodeQuestion(known))]) {
      const { status, headers, body } = await ask(request);
      expect(describeAnswer(packet.decode(body))).toBe('127.0.0.1');
      expect([status, headers['content-type'], headers['cache-control']]).toEqual([
        ...[200, 'application/dns-message', 'max-age=5'],
      ]);
    }
    const none = await ask(get('none.shop.svc.clusterset.local A'));
    expect([describeAnswer(packet.decode(none.body)), none.headers['cache-control']]).toEqual([
      'NXDOMAIN',
      'max-age=5',
    ]);
    const refused = await ask(get('www.example.com A'));
    expect([describeAnswer(packet.decode(refused.body)), refused.headers['cache-control']]).toEqual([
      ...['REFUSED', 'max-age=0'],
    ]);
  });

  test.each<[string, Ask, number]>([
    ['no message', { path: '/dns-query' }, 400],
    ['a message that is none', { path: '/dns-query?dns=AAAA' }, 400],
    ['another path', { path: '/' }, 404],
    ['another method', { path: '/dns-query', method: 'PUT' }, 405],
    ['another type', post(encodeQuestion(known), 'text/plain'), 415],
    ['a body that is too long', post(Buffer.alloc(70_000)), 413],
    ['an answer in place of a question', post(Buffer.alloc(12, 0xff)), 400],
  ])('%s -> status %s', async (_what, request, status) => {
    expect((await ask(request)).status).toBe(status);
    expect((await ask(get(known))).status).toBe(200);
  });
});

test('dns over https: a body that does not come, a connection without a request -> closed', async () => {
  const closed = (text: string) =>
    new Promise<void>((resolve) => {
      const socket = connectTls({ host: '127.0.0.1', port: server.httpsPort!, ca: authority.certificate }, () => {
        if (text !== '') socket.write(text);
      });
      socket.on('close', () => resolve()).on('error', () => {});
      socket.resume();
    });
  await Promise.all([closed(''), closed('GET /dns-qu')]);
});

test('dns over https: many requests at once on one connection -> each has its own answer', async () => {
  const session = connect(base, { ca: authority.certificate, cert: client.certificate, key: client.key });
  const answers = await Promise.all(
    Array.from({ length: 300 }, (_, i) => i).map(
      (i) =>
        new Promise<string>((resolve, reject) => {
          const name = i % 2 === 0 ? known : `none-${i}.shop.svc.clusterset.local A`;
          const chunks: Buffer[] = [];
          const stream = session.request({ ':path': get(name).path });
          stream.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject);
          stream.on('end', () => resolve(describeAnswer(packet.decode(Buffer.concat(chunks)))));
        }),
    ),
  );
  session.close();
  expect(answers).toEqual(answers.map((_, i) => (i % 2 === 0 ? '127.0.0.1' : 'NXDOMAIN')));
});

test.skipIf(pathOf('curl') === undefined)('dns over https: curl resolves by it', async () => {
  const site = createServer((_request, response) => void response.end('found')).listen(0, '127.0.0.1');
  await new Promise((resolve) => site.once('listening', resolve));
  const { port } = site.address() as { port: number };
  const doh = ['--doh-insecure', '--doh-url', `${base}/dns-query`, '--noproxy', '*', '-sS', '-4'];
  const curl = promisify(execFile);
  const { stdout } = await curl('curl', [...doh, `http://checkout.shop.svc.clusterset.local:${port}/`]);
  expect(stdout).toBe('found');
  site.close();
});

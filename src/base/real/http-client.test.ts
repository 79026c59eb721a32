import { once } from 'node:events';
import { createServer as createPlainServer } from 'node:http';
import {
  createSecureServer,
  type Http2SecureServer,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { createServer as createHttp1Server } from 'node:https';
import { type AddressInfo, connect, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Simulation } from '../../../sim/virtual-world.ts';
import { openPki, type Pki } from '../../home/security/pki.ts';
import { type HttpAccess, type HttpResponse, type HttpTransport, readBody } from '../http.ts';
import { silentLog } from '../log.ts';
import { HttpClient } from './http-client.ts';

/** A loaded machine is late by this much. */
const loadMs = 3_000;

let pki: Pki;
const endings: (() => void)[] = [];

beforeAll(async () => {
  const world = new Simulation({ seed: 1, startWallMs: Date.now() }).world('pki');
  pki = await openPki({ world, directory: '/pki', hosts: ['127.0.0.1', 'home.test'], log: silentLog });
});

afterEach(() => {
  for (const end of endings.splice(0)) end();
});

describe('http client', () => {
  test('http client: the server speaks HTTP/2 -> fifty requests at once share one connection', async () => {
    const server = await http2Server((stream) => void setImmediate(() => answer(stream, 200, 'fine')));
    const client = clientOf(server.access);
    const texts = await Promise.all(Array.from({ length: 50 }, async () => textOf(await get(client, '/'))));
    expect(new Set(texts)).toEqual(new Set(['fine']));
    expect(server.sessions).toHaveLength(1);
  });

  test('http client: more requests than the server takes on a connection -> a second connection, none waits for ever', async () => {
    const held: ServerHttp2Stream[] = [];
    const server = await http2Server((stream) => void held.push(stream), { maxConcurrentStreams: 4 });
    const client = clientOf(server.access);
    const first = get(client, '/');
    await until(() => held.length === 1);
    const others = Array.from({ length: 9 }, () => get(client, '/'));
    await until(() => held.length === 10);
    expect(server.sessions.length).toBeGreaterThan(1);
    for (const stream of held) answer(stream, 200, 'fine');
    expect((await Promise.all([first, ...others])).map(({ status }) => status)).toEqual(Array(10).fill(200));
  });

  test('http client: the server speaks only HTTP/1.1 -> answered over that', async () => {
    const server = await http1Server();
    const client = clientOf(server.access);
    const texts = await Promise.all([1, 2, 3].map(async () => textOf(await get(client, '/x'))));
    expect(texts).toEqual(['GET /x 1.1', 'GET /x 1.1', 'GET /x 1.1']);
    await expect(
      textOf(await client.send({ method: 'POST', path: '/y', headers: {}, body: Buffer.from('hello') })),
    ).resolves.toBe('POST /y 1.1 hello');
  });

  test('http client: a server without TLS -> answered over HTTP/1.1; the caller gives up -> told so', async () => {
    const server = createPlainServer((request, response) => {
      if (request.url !== '/prefix/never') response.end(request.httpVersion);
    });
    endings.push(() => {
      server.closeAllConnections();
      server.close();
    });
    const client = clientOf({ server: `http://127.0.0.1:${await listen(server)}/prefix/` });
    expect(await textOf(await get(client, '/'))).toBe('1.1');
    const controller = new AbortController();
    const arrived = once(server, 'request');
    const pending = client.send({ method: 'GET', path: '/never', headers: {}, signal: controller.signal });
    const [request] = await arrived;
    expect(request.url).toBe('/prefix/never');
    controller.abort(new Error('had enough'));
    await expect(pending).rejects.toMatchObject({ cause: { message: 'had enough' } });
  });

  test('http client: a certificate and a token -> the server sees both, the token afresh each time', async () => {
    const seen: string[] = [];
    const server = await http2Server((stream, headers) => {
      const socket = stream.session?.socket as unknown as { getPeerCertificate(): { subject?: { CN: string } } };
      seen.push(`${socket.getPeerCertificate().subject?.CN} ${headers.authorization}`);
      answer(stream, 200, '');
    });
    const { certificate, key } = pki.signClient({ commonName: 'ann', organizations: [], lifetimeMs: 3_600_000 });
    let count = 0;
    const client = clientOf({
      ...server.access,
      clientCertificate: certificate,
      clientKey: key,
      bearerToken: async () => `token-${++count}`,
    });
    await get(client, '/');
    await get(client, '/');
    expect(seen).toEqual(['ann Bearer token-1', 'ann Bearer token-2']);
  });

  test('http client: certificates that are renewed -> after a 401 the new one is shown on a new connection', async () => {
    const seen: string[] = [];
    const server = await http2Server((stream) => {
      const socket = stream.session?.socket as unknown as { getPeerCertificate(): { subject?: { CN: string } } };
      const name = socket.getPeerCertificate().subject?.CN ?? '';
      seen.push(name);
      answer(stream, name === 'old' ? 401 : 200, '');
    });
    let name = 'old';
    const pair = async () => pki.signClient({ commonName: name, organizations: [], lifetimeMs: 3_600_000 });
    const onUnauthorized = () => {
      name = 'new';
    };
    const client = clientOf({ ...server.access, clientCertificatePair: pair, onUnauthorized });
    expect((await get(client, '/')).status).toBe(401);
    expect((await get(client, '/')).status).toBe(200);
    expect(seen).toEqual(['old', 'new']);
  });

  test('http client: an authority that is not trusted -> refused with the thing to check', async () => {
    const server = await http2Server((stream) => answer(stream, 200, ''));
    const client = clientOf({ server: server.access.server });
    await expect(get(client, '/')).rejects.toThrow(/connect to https:.*check certificate-authority/);
    const careless = clientOf({ server: server.access.server, insecureSkipVerify: true });
    expect((await get(careless, '/')).status).toBe(200);
  });

  test('http client: a server name of its own -> the certificate is checked against that', async () => {
    const server = await http2Server((stream) => answer(stream, 200, ''));
    expect((await get(clientOf({ ...server.access, serverName: 'home.test' }), '/')).status).toBe(200);
    await expect(get(clientOf({ ...server.access, serverName: 'other.test' }), '/')).rejects.toThrow(/tls-server-name/);
  });

  test('http client: nothing listens -> refused at once with the thing to check', async () => {
    const server = await http2Server((stream) => answer(stream, 200, ''));
    const client = clientOf(server.access);
    await server.close();
    await expect(get(client, '/')).rejects.toThrow(/connect to https:.*is the server running/);
  });

  test('http client: the server comes back on another port -> the next request goes there; not known where -> where it was', async () => {
    const before = await http2Server((stream) => answer(stream, 200, 'before'));
    const after = await http2Server((stream) => answer(stream, 200, 'after'));
    let now: string | undefined = before.access.server;
    const currentServers = async () => {
      if (now === undefined) throw new Error('the file is being written');
      return [now];
    };
    const client = clientOf({ ...before.access, currentServers });
    expect(await textOf(await get(client, '/'))).toBe('before');
    now = undefined;
    await before.close();
    await expect(get(client, '/')).rejects.toThrow(/is the server running/);
    now = after.access.server;
    expect(await textOf(await get(client, '/'))).toBe('after');
  });

  test('http client: several addresses, nothing listens at the first -> the next answers; at none -> all are named', async () => {
    const gone = await http2Server((stream) => answer(stream, 200, 'gone'));
    const server = await http2Server((stream) => answer(stream, 200, 'here'));
    await gone.close();
    const client = clientOf({ ...gone.access, otherServers: [server.access.server] });
    expect(await textOf(await get(client, '/'))).toBe('here');
    await server.close();
    await expect(get(client, '/')).rejects.toThrow(
      `connect to ${server.access.server}, ${gone.access.server}: nothing listens there`,
    );
  });

  test('http client: several addresses, the one in use or the first of a new client is frozen -> at the next within two seconds', async () => {
    const server = await http2Server((stream, { ':path': path }) => path === '/watch' || answer(stream, 200, 'fine'));
    const [relay, other] = [await relayTo(server.port), await relayTo(server.port)];
    const at = (port: number) => `https://127.0.0.1:${port}`;
    const access = { ...server.access, server: at(relay.port), otherServers: [at(other.port)] };
    const client = clientOf(access);
    await get(client, '/');
    const watch = get(client, '/watch');
    relay.freeze();
    const frozenMs = performance.now();
    await expect(watch).rejects.toThrow('/watch');
    expect(await textOf(await get(client, '/'))).toBe('fine');
    expect(performance.now() - frozenMs).toBeLessThan(2_000 + loadMs);
    const silent = createTcpServer((socket) => void endings.push(() => socket.destroy()));
    endings.push(() => silent.close());
    const startedMs = performance.now();
    const another = clientOf({ ...access, server: at(await listen(silent)) });
    expect(await textOf(await get(another, '/'))).toBe('fine');
    expect(performance.now() - startedMs).toBeLessThan(2_000 + loadMs);
  });

  test('http client: several addresses, the first is unavailable -> left, and its watches end, if it is not ready; else kept', async () => {
    let readyz = 200;
    const first = await http2Server((stream, { ':path': path }) => {
      if (path === '/readyz') answer(stream, readyz, '');
      else if (path === '/watch') stream.respond({ ':status': 200 });
      else answer(stream, 503, 'first');
    });
    const second = await http2Server((stream) => answer(stream, 200, 'second'));
    const client = clientOf({ ...first.access, otherServers: [second.access.server] });
    const watch = await get(client, '/watch');
    expect(await textOf(await get(client, '/'))).toBe('first');
    readyz = 503;
    let hasEnded = false;
    void readBody(watch.body).catch(() => (hasEnded = true));
    for (let round = 0; round < 200 && !hasEnded; round += 1) {
      await get(client, '/').catch(() => {});
      await pause(50);
    }
    expect(hasEnded).toBe(true);
    expect(await textOf(await get(client, '/'))).toBe('second');
  });

  test('http client: GOAWAY -> the next request opens a new connection and succeeds', async () => {
    const server = await http2Server((stream) => answer(stream, 200, 'fine'));
    const client = clientOf(server.access);
    await get(client, '/');
    const gone = once(server.sessions[0]!, 'close');
    server.sessions[0]!.close();
    expect((await get(client, '/')).status).toBe(200);
    await gone;
    expect((await get(client, '/')).status).toBe(200);
    expect(server.sessions.length).toBeGreaterThan(1);
  });

  test('http client: a refused stream was not looked at -> sent again, a write too', async () => {
    let refusals = 0;
    const server = await http2Server((stream) => {
      if (refusals++ === 0) stream.close(7);
      else answer(stream, 201, 'made');
    });
    const response = await clientOf(server.access).send({
      method: 'POST',
      path: '/',
      headers: {},
      body: Buffer.from('x'),
    });
    expect(response.status).toBe(201);
    expect(refusals).toBe(2);
  });

  test('http client: the connection breaks under a write -> an error, never sent twice', async () => {
    let writes = 0;
    const server = await http2Server((stream) => {
      writes += 1;
      stream.session?.destroy();
    });
    const write = clientOf(server.access).send({ method: 'POST', path: '/w', headers: {}, body: Buffer.from('x') });
    await expect(write).rejects.toThrow(/POST https:.*\/w/);
    expect(writes).toBe(1);
  });

  test.each(['http2', 'http1'] as const)(
    'http client: %s stream cut off in the middle -> reading throws, half an answer is none',
    async (protocol) => {
      const server =
        protocol === 'http2'
          ? await http2Server((stream) => {
              stream.respond({ ':status': 200 });
              stream.write('half', () => stream.session?.destroy());
            })
          : await http1Server();
      const response = await get(clientOf(server.access), '/cut');
      await expect(readBody(response.body)).rejects.toThrow(/GET https:.*\/cut/);
    },
  );

  test('http client: the server resets a stream -> reading throws', async () => {
    const server = await http2Server((stream) => {
      stream.respond({ ':status': 200 });
      stream.write('half', () => stream.destroy(new Error('reset')));
    });
    await expect(readBody((await get(clientOf(server.access), '/')).body)).rejects.toThrow(/cut off|GET https/);
  });

  test('http client: the whole answer is there before it is read -> read all the same', async () => {
    const server = await http2Server((stream) => answer(stream, 200, 'fine'));
    const client = clientOf(server.access);
    const response = await get(client, '/');
    await pause(50);
    expect(await textOf(response)).toBe('fine');
  });

  test('http client: the reader stops reading -> the server learns that the stream is over', async () => {
    let ended: Promise<unknown> | undefined;
    const server = await http2Server((stream) => {
      ended = new Promise((resolve) => stream.once('close', () => resolve(stream.rstCode)));
      stream.respond({ ':status': 200 });
      stream.write('first');
    });
    const response = await get(clientOf(server.access), '/');
    for await (const _chunk of response.body as AsyncIterable<Uint8Array>) break;
    expect(await ended).toBe(8);
  });

  test('http client: a reader that does not read -> the server is held back, others go on', async () => {
    let written = 0;
    const server = await http2Server((stream, headers) => {
      if (headers[':path'] !== '/flood') return answer(stream, 200, 'fine');
      stream.respond({ ':status': 200 });
      const chunk = Buffer.alloc(64 * 1024);
      const pour = () => {
        written += chunk.length;
        if (written < 64 * 1024 * 1024) stream.write(chunk, () => pour());
      };
      pour();
    });
    const client = clientOf(server.access);
    const flood = await get(client, '/flood');
    for (let round = 0; round < 20; round += 1) expect(await textOf(await get(client, '/'))).toBe('fine');
    expect(written).toBeLessThan(8 * 1024 * 1024);
    await (flood.body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]().return?.();
  });

  test('http client: the caller gives up -> the request fails with the reason and the server is told', async () => {
    let ended: Promise<unknown> | undefined;
    const server = await http2Server((stream) => {
      ended = once(stream, 'close');
    });
    const controller = new AbortController();
    const pending = clientOf(server.access).send({ method: 'GET', path: '/', headers: {}, signal: controller.signal });
    await until(() => ended !== undefined);
    controller.abort(new Error('had enough'));
    await expect(pending).rejects.toMatchObject({ cause: { message: 'had enough' } });
    await ended;
  });

  test('http client: the peer vanishes without a word -> noticed by PING, the watch fails, the next request is answered', async () => {
    const server = await http2Server((stream, headers) => {
      if (headers[':path'] !== '/watch') return answer(stream, 200, 'fine');
      stream.respond({ ':status': 200 });
      stream.write('event');
    });
    const relay = await relayTo(server.port);
    const client = clientOf({ ...server.access, server: `https://127.0.0.1:${relay.port}` }, 100);
    const body = (await get(client, '/watch')).body as AsyncIterable<Uint8Array>;
    const chunks = body[Symbol.asyncIterator]();
    await chunks.next();
    relay.freeze();
    await expect(chunks.next()).rejects.toThrow(/GET https:.*\/watch/);
    expect(await textOf(await get(client, '/'))).toBe('fine');
  });

  test('http client: a redirect -> handed to the caller, not followed', async () => {
    const server = await http2Server((stream) => {
      stream.respond({ ':status': 302, location: '/elsewhere' });
      stream.end();
    });
    const response = await get(clientOf(server.access), '/');
    expect([response.status, response.headers.location]).toEqual([302, '/elsewhere']);
  });

  test('http client: closed -> requests under way and later ones fail', async () => {
    const server = await http2Server(() => {});
    const client = clientOf(server.access);
    const pending = get(client, '/');
    await until(() => server.sessions.length === 1);
    client.close();
    await expect(pending).rejects.toThrow();
    await expect(get(client, '/')).rejects.toThrow(/closed/);
  });
});

function clientOf(access: HttpAccess, pingMs?: number): HttpTransport {
  const pingTimes = pingMs === undefined ? undefined : { pingEveryMs: pingMs, pingAnswerMs: pingMs * 3 };
  const client = new HttpClient(access, pingTimes === undefined ? {} : { pingTimes });
  endings.push(() => client.close());
  return client;
}

function get(client: HttpTransport, path: string): Promise<HttpResponse> {
  return client.send({ method: 'GET', path, headers: {} });
}

async function textOf(response: HttpResponse): Promise<string> {
  return Buffer.from(await readBody(response.body)).toString('utf8');
}

function answer(stream: ServerHttp2Stream, status: number, text: string): void {
  stream.respond({ ':status': status });
  stream.end(text);
}

async function until(condition: () => boolean): Promise<void> {
  for (let round = 0; round < 1000 && !condition(); round += 1) await pause(5);
  expect(condition()).toBe(true);
}

type StreamHandler = (stream: ServerHttp2Stream, headers: Record<string, string | string[] | undefined>) => void;

async function http2Server(onStream: StreamHandler, settings: { maxConcurrentStreams?: number } = {}) {
  const { certificate, key } = pki.serverCredentials();
  const server: Http2SecureServer = createSecureServer({
    cert: certificate,
    key,
    ca: pki.clientCa,
    requestCert: true,
    rejectUnauthorized: false,
    settings,
  });
  const sessions: ServerHttp2Session[] = [];
  server.on('session', (session) => {
    sessions.push(session);
    session.on('error', () => {});
  });
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    onStream(stream, headers);
  });
  const close = async () => {
    for (const session of sessions) session.destroy();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  endings.push(() => void close());
  const port = await listen(server as unknown as Server);
  return { port, access: { server: `https://127.0.0.1:${port}`, certificateAuthority: pki.clientCa }, sessions, close };
}

async function http1Server() {
  const { certificate, key } = pki.serverCredentials();
  const server = createHttp1Server(
    { cert: certificate, key, ALPNProtocols: ['http/1.1'] },
    async (request, response) => {
      if (request.url === '/cut') {
        response.writeHead(200, { 'content-length': '1000' });
        response.write('half', () => request.socket.destroy());
        return;
      }
      const parts = [`${request.method} ${request.url} ${request.httpVersion}`];
      for await (const chunk of request) parts.push(String(chunk));
      response.end(parts.join(' '));
    },
  );
  endings.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const port = await listen(server);
  return { port, access: { server: `https://127.0.0.1:${port}`, certificateAuthority: pki.clientCa } };
}

/** Carries bytes both ways until it is frozen: then old connections stay open and silent. */
async function relayTo(port: number) {
  const pairs: [Socket, Socket][] = [];
  const relay = createTcpServer((near) => {
    const far = connect(port, '127.0.0.1');
    pairs.push([near, far]);
    for (const socket of [near, far]) socket.on('error', () => {});
    near.pipe(far);
    far.pipe(near);
  });
  endings.push(() => {
    for (const sockets of pairs) for (const socket of sockets) socket.destroy();
    relay.close();
  });
  const freeze = () => {
    for (const [near, far] of pairs.splice(0)) {
      near.unpipe(far);
      far.unpipe(near);
      endings.push(
        () => void near.destroy(),
        () => void far.destroy(),
      );
    }
  };
  return { port: await listen(relay), freeze };
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

// The generic server on the loopback, with a plain HTTP/2 client: streams in the clear, and what strangers can make us hold.

import { EventEmitter } from 'node:events';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import http2 from 'node:http2';
import net, { type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tls from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import { silentLog } from '../log.ts';
import { issueCertificate } from '../x509/certificates.ts';
import { generatePrivateKey } from '../x509/edge/keys.ts';
import { FrameReader, frameOf } from './frames.ts';
import type { GrpcServer, GrpcServerOptions, RefusedCaller, ServerLimits } from './server-options.ts';
import { codes } from './status.ts';
import { Connection } from './transport-connection.ts';
import { serveGrpc } from './transport-server.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function selfSigned() {
  const key = generatePrivateKey();
  const times = { notBeforeMs: Date.now() - 60_000, notAfterMs: Date.now() + 3_600_000 };
  const use = { kind: 'server', hosts: ['127.0.0.1'] } as const;
  const subject = { commonName: 'test' };
  const certificate = issueCertificate({
    subject,
    key,
    use,
    serial: Buffer.alloc(16, 1),
    issuer: { subject, key },
    ...times,
  });
  return { certificate, key };
}

const stranger = { kind: 'refused', code: codes.unauthenticated, reason: 'not trusted' } as const;

async function serve(changes: Partial<GrpcServerOptions<string>> = {}): Promise<GrpcServer> {
  const server = await serveGrpc<string>({
    ...{ host: '127.0.0.1', port: 0, messageBytesMax: 1000, keepAliveMs: 10_000, log: silentLog },
    judge: () => ({ kind: 'trusted', caller: 'local' }),
    callerKey: (caller) => caller,
    accept: (call) => ({ onMessage: (message) => call.send(message), onDrain() {}, onClosed() {} }),
    ...changes,
  });
  closing.push(() => server.close());
  return server;
}

function connect(server: GrpcServer): http2.ClientHttp2Session {
  const session = http2.connect(`http://127.0.0.1:${server.port}`);
  session.on('error', () => {});
  closing.push(() => session.destroy());
  return session;
}

function post(session: http2.ClientHttp2Session, type: string, path = '/a/b'): http2.ClientHttp2Stream {
  const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': type });
  stream.on('error', () => {});
  return stream;
}

const statusOf = (stream: http2.ClientHttp2Stream) =>
  new Promise<string>((resolve) => {
    stream.on('response', (headers) => resolve(`${headers[':status']} ${headers['grpc-status'] ?? ''}`.trim()));
    stream.on('close', () => resolve('closed'));
  });

test('grpc server: without TLS, several streams on one connection -> each gets its own messages', async () => {
  const session = connect(await serve());
  const answers = await Promise.all(
    ['one', 'two', 'three'].map((text) => {
      const stream = post(session, 'application/grpc');
      const reader = new FrameReader({ messageBytesMax: 1000 });
      stream.write(frameOf(Buffer.from(text)));
      return new Promise<string>((resolve) => stream.on('data', (chunk) => resolve(String(reader.read(chunk)[0]))));
    }),
  );
  expect(answers).toEqual(['one', 'two', 'three']);
});

test('grpc server: a refused caller that goes on sending -> answered at once, nothing of its body is read', async () => {
  const refused: RefusedCaller[] = [];
  let read = 0;
  const server = await serve({
    judge: () => stranger,
    onRefused: (caller) => refused.push(caller),
    route: ({ verdict }) =>
      verdict.kind === 'refused'
        ? { status: 401, body: '{}' }
        : { withBody: async () => ({ status: ++read, body: '' }) },
  });
  const session = connect(server);
  const streams = ['application/grpc', 'application/json'].map((type) => post(session, type));
  for (const stream of streams) stream.write(Buffer.alloc(60_000));
  expect(await Promise.all(streams.map(statusOf))).toEqual([`200 ${codes.unauthenticated}`, '401']);
  expect(refused).toMatchObject([{ from: '127.0.0.1', reason: 'not trusted' }]);
  expect(read).toBe(0);
});

test('grpc server: more strangers than allowed -> the others are cut off, trusted callers are served', async () => {
  let isStranger = true;
  const server = await serve({
    judge: () => (isStranger ? stranger : { kind: 'trusted', caller: 'local' }),
    limits: { strangers: 3 },
  });
  const statuses: string[] = [];
  for (let n = 0; n < 5; n += 1) statuses.push(await statusOf(post(connect(server), 'application/grpc')));
  expect(statuses).toEqual([...Array(3).fill(`200 ${codes.unauthenticated}`), 'closed', 'closed']);
  isStranger = false;
  const trusted = post(connect(server), 'application/grpc');
  trusted.write(frameOf(Buffer.from('hello')));
  await new Promise((resolve) => trusted.once('data', resolve));
});

test('grpc server: a stranger that stays -> its connection ends', async () => {
  const session = connect(await serve({ judge: () => stranger, limits: { strangerMs: 50 } }));
  await new Promise((resolve) => session.on('close', resolve));
});

/** A frame of HTTP/2 for the connection as a whole (RFC 9113 section 4.1). */
const frame = (type: number, payload: readonly number[]) =>
  Buffer.from([0, 0, payload.length, type, 0, 0, 0, 0, 0, ...payload]);

/** Resolves when the connection is gone for good. Only a write tells that from one that waits for us to hang up. */
function goneForGood(socket: Socket): Promise<void> {
  const ping = frame(6, Array(8).fill(0));
  const writing = setInterval(() => socket.write(ping), 50);
  closing.push(() => socket.destroy());
  socket.resume();
  socket.on('error', () => {});
  return new Promise((resolve) => {
    socket.on('close', () => {
      clearInterval(writing);
      resolve();
    });
  });
}

describe.each(['TLS', 'the clear'])('over %s', (over) => {
  test.each([
    ['a stranger', { judge: () => stranger, limits: { strangerMs: 50 } }],
    ['a trusted caller', { keepAliveMs: 50 }],
  ] as const)('grpc server: %s says goodbye and never hangs up -> its socket is closed', async (_who, changes) => {
    const server = await serve({ ...changes, ...(over === 'TLS' ? { tls: selfSigned() } : {}) });
    const to = { port: server.port, host: '127.0.0.1', allowHalfOpen: true };
    const socket =
      over === 'TLS' ? tls.connect({ ...to, rejectUnauthorized: false, ALPNProtocols: ['h2'] }) : net.connect(to);
    const [settings, goaway] = [frame(4, []), frame(7, Array(8).fill(0))];
    socket.write(Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), settings, goaway]));
    await goneForGood(socket);
  });
});

test('grpc server: more connections without a handshake than allowed -> the oldest are closed, a caller is served', async () => {
  const server = await serve({ tls: selfSigned(), limits: { handshakes: 3 } });
  const idle = Array.from({ length: 5 }, () => net.connect({ port: server.port, host: '127.0.0.1' }));
  closing.push(() => {
    for (const socket of idle) socket.destroy();
  });
  const closed = (socket: Socket) => new Promise((resolve) => socket.on('close', resolve));
  const startMs = performance.now();
  await Promise.all(idle.slice(0, 2).map(closed));
  // Long before the handshake is given up anyway.
  expect(performance.now() - startMs).toBeLessThan(8_000);
  const session = http2.connect(`https://127.0.0.1:${server.port}`, { rejectUnauthorized: false });
  closing.push(() => session.destroy());
  const stream = post(session, 'application/grpc');
  stream.write(frameOf(Buffer.from('hello')));
  await new Promise((resolve) => stream.once('data', resolve));
});

test('grpc server: a caller -> is told how many streams it may have on a connection', async () => {
  const session = connect(await serve({ limits: { streamsPerConnection: 3 } }));
  await new Promise((resolve) => session.once('remoteSettings', resolve));
  expect(session.remoteSettings.maxConcurrentStreams).toBe(3);
});

test('grpc server: a body that is too large -> the request ends, and nothing comes of it', async () => {
  let taken = 0;
  const server = await serve({
    route: () => ({ withBody: async () => ({ status: 200, body: String((taken += 1)) }) }),
    limits: { bodyBytes: 1000 },
  });
  const stream = post(connect(server), 'application/json');
  stream.end(Buffer.alloc(2000));
  expect(await statusOf(stream)).toBe('closed');
  expect(taken).toBe(0);
});

test('grpc server: more connections than there may be at all -> the one too many is cut off', async () => {
  let callers = 0;
  const judge = () => ({ kind: 'trusted', caller: `caller ${++callers}` }) as const;
  const server = await serve({ judge, judgeMs: 60_000, limits: { connections: 2 } });
  const serves = async () => {
    const stream = post(connect(server), 'application/grpc');
    stream.write(frameOf(Buffer.from('hello')));
    return new Promise<boolean>((resolve) => {
      stream.once('data', () => resolve(true));
      stream.once('close', () => resolve(false));
    });
  };
  expect([await serves(), await serves(), await serves()]).toEqual([true, true, false]);
});

test('grpc server: a stranger -> may have 64 KB on their way to us; a trusted caller a megabyte', async () => {
  const windowOf = async (changes: Partial<GrpcServerOptions<string>>) => {
    const session = connect(await serve(changes));
    // An answer to a ping comes after whatever the server had to say first.
    await new Promise((resolve) => session.once('remoteSettings', resolve));
    await new Promise((resolve) => session.ping(resolve));
    return session.state.remoteWindowSize ?? 0;
  };
  expect(await windowOf({ judge: () => stranger })).toBeLessThan(65_536);
  expect(await windowOf({})).toBeGreaterThan(1_000_000);
});

test('grpc server: more connections of one caller than allowed -> its oldest idle one gives way', async () => {
  const server = await serve({ limits: { connectionsPerCaller: 2 } });
  const sessions = [connect(server), connect(server)];
  await Promise.all(sessions.map((session) => new Promise((resolve) => session.once('remoteSettings', resolve))));
  const first = new Promise<string>((resolve) => sessions[0]?.on('close', () => resolve('first')));
  const stream = post(connect(server), 'application/grpc');
  stream.write(frameOf(Buffer.from('hello')));
  await new Promise((resolve) => stream.once('data', resolve));
  expect(await first).toBe('first');
});

function socketPath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'grpc-'));
  closing.push(() => rmSync(folder, { recursive: true }));
  return join(folder, 'socket');
}

test('grpc server: a unix socket, whatever the umask -> its permissions from the first moment on', async () => {
  const path = socketPath();
  const before = process.umask(0);
  const server = serve({ socketPath: path, socketMode: 0o660 });
  const modes = [statSync(path).mode & 0o777, process.umask(before)];
  await server;
  expect(modes).toEqual([0o660, 0]);
});

test('grpc server: unfinished bodies -> so many at once, each for so long', async () => {
  const server = await serve({
    judge: () => stranger,
    route: () => ({ withBody: async (body) => ({ status: 200, body: String(body.length) }) }),
    limits: { bodies: 2, bodyMs: 500 },
  });
  const session = connect(server);
  const unfinished = [1, 2].map(() => post(session, 'application/json'));
  for (const stream of unfinished) stream.write('{');
  const ended = Promise.all(unfinished.map(statusOf));
  await new Promise((resolve) => setTimeout(resolve, 30));
  const third = post(session, 'application/json');
  third.end('{}');
  expect(await statusOf(third)).toBe('503');
  expect(await ended).toEqual(['closed', 'closed']);
  const fourth = post(session, 'application/json');
  fourth.end('{}');
  expect(await statusOf(fourth)).toBe('200');
});

test('grpc server: a caller comes to be trusted after its connection ended -> the process lives on', () => {
  const session = Object.assign(new EventEmitter(), {
    ...{ socket: {}, destroyed: false },
    destroy() {
      this.destroyed = true;
    },
    setLocalWindowSize() {
      if (this.destroyed) throw new Error('the session has been destroyed');
    },
  });
  let isTrusted = false;
  const judge = () => (isTrusted ? ({ kind: 'trusted', caller: 'local' } as const) : stranger);
  const connection = new Connection<string>({
    session: session as unknown as http2.ServerHttp2Session,
    socket: undefined,
    options: { judge, callerKey: (caller: string) => caller } as unknown as GrpcServerOptions<string>,
    limits: { strangerMs: 10_000 } as ServerLimits,
  });
  session.destroy();
  isTrusted = true;
  expect(() => connection.judgeAgain()).not.toThrow();
  expect(connection.callerKey).toBe('local');
});

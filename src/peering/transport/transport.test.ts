// The gRPC edge over real TLS on the loopback: who is admitted, the errors for others, and what a stream survives.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http2 from 'node:http2';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { GrpcServer, ServerCall } from '../../base/grpc/server-options.ts';
import { codes } from '../../base/grpc/status.ts';
import { type DialOptions, dial } from '../../base/grpc/transport-client.ts';
import { serveGrpc } from '../../base/grpc/transport-server.ts';
import { silentLog } from '../../base/log.ts';
import { issueCertificate } from '../../base/x509/certificates.ts';
import { generatePrivateKey } from '../../base/x509/edge/keys.ts';
import type { PeeringServerOptions } from '../peering.ts';
import { meshOf } from '../testing/edge/mesh.ts';
import { judgeCertificate, type PeerCaller, type TrustedPeer } from '../trust/trust.ts';

const owner = meshOf('owner.example');
const acme = meshOf('acme.example');
const other = meshOf('other.example');
const stranger = meshOf('stranger.example');
const path = '/federation.resourcediscovery.v1alpha1.DiscoveryService/EstablishStream';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

interface TestServer {
  readonly server: GrpcServer;
  readonly calls: ServerCall<PeerCaller>[];
  readonly heard: string[];
  peers: TrustedPeer[];
}

/** Echoes each message, and remembers who called. */
async function serve(changes: Partial<PeeringServerOptions> = {}): Promise<TestServer> {
  const calls: ServerCall<PeerCaller>[] = [];
  const heard: string[] = [];
  const credentials = changes.tls ?? owner.issue();
  const state = { calls, heard, peers: [acme.trusted()] } as unknown as TestServer & { server: GrpcServer };
  const server = await serveGrpc<PeerCaller>({
    host: '127.0.0.1',
    port: 0,
    tls: credentials,
    callerKey: ({ peer }) => peer,
    judge: (presented) => judgeCertificate(presented, state.peers, Date.now()),
    accept: (call) => {
      if (call.path !== path) return undefined;
      calls.push(call);
      call.sendHeaders({});
      return {
        onMessage: (message) => {
          heard.push(message.toString());
          call.send(message);
        },
        onDrain: () => {},
        onClosed: () => heard.push('closed'),
      };
    },
    messageBytesMax: 1000,
    keepAliveMs: 10_000,
    log: silentLog,
    ...changes,
  });
  closing.push(() => server.close());
  return Object.assign(state, { server });
}

interface Caller {
  readonly events: string[];
  readonly call: ReturnType<typeof dial>;
  /** Resolves when an event contains the text. */
  until(text: string): Promise<string>;
}

function call(port: number, changes: Partial<DialOptions> = {}): Caller {
  const events: string[] = [];
  const waiting: { text: string; resolve: (event: string) => void }[] = [];
  const add = (event: string) => {
    events.push(event);
    for (const { resolve } of waiting.filter(({ text }) => event.includes(text))) resolve(event);
  };
  const client = dial(
    {
      address: `https://127.0.0.1:${port}`,
      path,
      headers: {},
      ...acme.issue(),
      roots: [owner.certificate],
      isExpected: (identity) => identity === 'spiffe://owner.example/mesh',
      messageBytesMax: 1000,
      connectMsMax: 5000,
      keepAliveMs: 10_000,
      ...changes,
    },
    {
      onOpened: () => add('opened'),
      onMessage: (message) => add(`message ${message}`),
      onOversized: ({ length }) => add(`oversized ${length}`),
      onAlive: () => {},
      onClosed: (code, reason, cause) => add(`closed ${code} ${reason}${cause === undefined ? '' : ` (${cause})`}`),
    },
  );
  closing.push(() => client.cancel());
  const until = (text: string) =>
    new Promise<string>((resolve) => {
      const found = events.find((event) => event.includes(text));
      if (found === undefined) waiting.push({ text, resolve });
      else resolve(found);
    });
  return { events, call: client, until };
}

test('transport: a trusted peer -> messages both ways, its name and identity told [000-09]', async () => {
  const { server, calls } = await serve();
  const caller = call(server.port);
  caller.call.send(Buffer.from('hello'));
  await caller.until('message hello');
  expect(calls[0]?.caller).toEqual({ peer: 'acme', identity: 'spiffe://acme.example/mesh' });
});

test('transport: a certificate through an intermediate -> trusted', async () => {
  const { server } = await serve();
  const caller = call(server.port, acme.intermediate().issue());
  await caller.until('opened');
});

test.each<[string, Partial<DialOptions>, string]>([
  ['no certificate', { certificate: undefined, key: undefined } as never, 'no certificate was presented'],
  ["a foreign CA's certificate", stranger.issue(), 'no peer has the identity spiffe://stranger.example/mesh'],
  ["another peer's certificate", other.issue(), 'no peer has the identity spiffe://other.example/mesh'],
  [
    'a certificate of A with an identity of B [000-31]',
    acme.issue({ identities: ['spiffe://owner.example/mesh'] }),
    'no peer has the identity spiffe://owner.example/mesh',
  ],
  [
    'a self-made certificate with the identity of A',
    stranger.issue({ identities: ['spiffe://acme.example/mesh'] }),
    "does not lead to one of this peer's roots",
  ],
])('transport: %s -> Unauthenticated (seed 000, Error Codes), no data', async (_name, credentials, reason) => {
  const { server, calls } = await serve();
  const caller = call(server.port, credentials);
  caller.call.send(Buffer.from('hello'));
  const closed = await caller.until('closed');
  expect(closed).toContain(`closed ${codes.unauthenticated}`);
  expect(closed).toContain(reason);
  expect(caller.events).toHaveLength(1);
  expect(calls).toEqual([]);
});

test.each<[string, Partial<DialOptions>]>([
  ['whose CA is unknown', { roots: [stranger.certificate] }],
  ['with another identity than expected', { isExpected: () => false }],
])('transport: an owner %s -> Unauthenticated for its consumer, nothing is sent to it', async (_name, changes) => {
  const { server, calls } = await serve();
  expect(await call(server.port, changes).until('closed')).toContain(`closed ${codes.unauthenticated}`);
  expect(calls).toEqual([]);
});

test('transport: an owner with the certificate of an authority as its own -> Unauthenticated for its consumer', async () => {
  const key = generatePrivateKey();
  const times = { notBeforeMs: Date.now() - 60_000, notAfterMs: Date.now() + 60_000 };
  const certificate = issueCertificate({
    ...{ subject: { commonName: 'sly' }, key, serial: Buffer.alloc(16, 9), ...times },
    issuer: { subject: { commonName: 'mesh owner.example' }, key: owner.key },
    use: { kind: 'authority', uris: ['spiffe://owner.example/mesh'] },
  });
  const { server, calls } = await serve({ tls: { certificate, key } });
  const closed = await call(server.port).until('closed');
  expect(closed).toContain(`closed ${codes.unauthenticated}`);
  expect(closed).toContain('the certificate of an authority');
  expect(calls).toEqual([]);
});

test('transport: a server that refuses our certificate in the handshake -> its alert counts as Unauthenticated', async () => {
  const port = await strictTlsServer();
  const closed = await call(port, stranger.issue()).until('closed');
  expect(closed).toContain(`closed ${codes.unauthenticated}`);
  expect(closed.toLowerCase()).toContain('alert');
});

test('transport: plaintext -> no HTTP/2 is spoken, the connection ends [000-29]', async () => {
  const { server, calls } = await serve();
  const client = http2.connect(`http://127.0.0.1:${server.port}`);
  const stream = client.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc' });
  const ended = new Promise<string>((resolve) => {
    client.on('error', (error) => resolve(error.message));
    stream.on('error', () => {});
    client.on('close', () => resolve('closed'));
  });
  await ended;
  expect(calls).toEqual([]);
});

test('transport: a method that is not served -> Unimplemented', async () => {
  const { server } = await serve();
  const caller = call(server.port, { path: '/federation.resourcediscovery.v9.DiscoveryService/EstablishStream' });
  expect(await caller.until('closed')).toContain(`closed ${codes.unimplemented}`);
});

test('transport: a request too large -> InvalidArgument, with the size', async () => {
  const { server } = await serve();
  const caller = call(server.port);
  caller.call.send(Buffer.alloc(2000));
  expect(await caller.until('closed')).toContain(
    `closed ${codes.invalidArgument} a message of 2000 bytes is larger than the 1000 allowed`,
  );
});

test('transport: an owner sends a message too large -> it is skipped and told, the stream goes on', async () => {
  const { server, calls } = await serve();
  const caller = call(server.port);
  await caller.until('opened');
  calls[0]?.send(Buffer.alloc(200_000));
  calls[0]?.send(Buffer.from('after'));
  await caller.until('message after');
  expect(caller.events).toEqual(['opened', 'oversized 200000', 'message after']);
});

test('transport: an owner that is still starting -> Unavailable even for those it does not know yet [000-33]', async () => {
  const { server } = await serve({
    judge: () => ({ kind: 'refused', code: codes.unavailable, reason: 'still starting' }),
  });
  expect(await call(server.port, other.issue()).until('closed')).toBe(`closed ${codes.unavailable} still starting`);
});

test('transport: the listener cannot be created (seed 000, Appendix A, state 8) -> said, nothing half-started [000-49]', async () => {
  const { server } = await serve();
  await expect(serve({ port: server.port })).rejects.toThrow('EADDRINUSE');
});

test('transport: nobody listens -> Unavailable', async () => {
  expect(await call(1).until('closed')).toContain(`closed ${codes.unavailable}`);
});

test('transport: the server ends a call while the consumer still talks -> code and reason arrive', async () => {
  const { server, calls } = await serve();
  const caller = call(server.port);
  await caller.until('opened');
  caller.call.send(Buffer.from('still talking'));
  calls[0]?.end(codes.invalidArgument, 'port: 70000 ist größer als erlaubt, 100 %');
  expect(await caller.until('closed')).toBe(
    `closed ${codes.invalidArgument} port: 70000 ist größer als erlaubt, 100 %`,
  );
});

test('transport: certificate and roots rotated -> the open stream goes on, new ones use the new', async () => {
  const state = await serve();
  const before = call(state.server.port);
  await before.until('opened');
  const newAcme = meshOf('acme.example');
  const newOwner = meshOf('owner.example');
  const { certificate, key } = newOwner.issue();
  state.server.setCertificate(certificate, key);
  state.peers = [acme.trusted({ roots: [acme.root, newAcme.root] })];
  state.server.trustChanged();
  const after = call(state.server.port, { ...newAcme.issue(), roots: [newOwner.certificate] });
  await after.until('opened');
  before.call.send(Buffer.from('still here'));
  await before.until('message still here');
  expect(state.heard).not.toContain('closed');
});

test('transport: the roots of a peer are withdrawn -> its stream ends with Unauthenticated', async () => {
  const state = await serve();
  const caller = call(state.server.port);
  await caller.until('opened');
  state.peers = [];
  state.server.trustChanged();
  expect(await caller.until('closed')).toContain(`closed ${codes.unauthenticated}`);
});

test('transport: the certificate of a caller expires -> its stream ends with Unauthenticated, those of others go on', async () => {
  let nowMs = Date.now();
  const state = await serve({ judgeMs: 20, judge: (presented) => judgeCertificate(presented, state.peers, nowMs) });
  const brief = call(state.server.port, acme.issue({ notAfterMs: nowMs + 60_000 }));
  const long = call(state.server.port);
  await Promise.all([brief.until('opened'), long.until('opened')]);
  nowMs += 61_000;
  expect(await brief.until('closed')).toMatch(new RegExp(`^closed ${codes.unauthenticated} .*expired on`));
  long.call.send(Buffer.from('still here'));
  await long.until('message still here');
});

test('transport: a peer that cannot be served for now -> Unavailable, also on its open stream', async () => {
  const state = await serve();
  const before = call(state.server.port);
  await before.until('opened');
  state.peers = [acme.trusted({ unavailable: 'suspended' })];
  state.server.trustChanged();
  expect(await before.until('closed')).toBe(`closed ${codes.unavailable} suspended`);
  expect(await call(state.server.port).until('closed')).toBe(`closed ${codes.unavailable} suspended`);
  expect(await call(state.server.port, stranger.issue()).until('closed')).toContain(`closed ${codes.unauthenticated}`);
});

test('transport: a consumer half-closes or cancels -> the owner hears that it left [000-20]', async () => {
  const { server, heard } = await serve();
  const caller = call(server.port);
  await caller.until('opened');
  caller.call.cancel();
  await expect.poll(() => heard).toContain('closed');
});

test('transport: an idle stream -> lives as long as keep-alive is answered', async () => {
  const { server, calls } = await serve({ keepAliveMs: 10 });
  const caller = call(server.port, { keepAliveMs: 10 });
  await caller.until('opened');
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(caller.events).toEqual(['opened']);
  calls[0]?.send(Buffer.from('after the silence'));
  await caller.until('message after the silence');
});

test('transport: far away -> a megabyte may be on its way in either direction, on the stream and on the connection', async () => {
  const { server } = await serve();
  const trust = { ca: owner.certificate, checkServerIdentity: () => undefined };
  const client = http2.connect(`https://127.0.0.1:${server.port}`, { ...pairOf(acme.issue()), ...trust });
  closing.push(() => client.destroy());
  await expect.poll(() => client.state.remoteWindowSize).toBeGreaterThanOrEqual(1 << 20);
  expect(client.remoteSettings.initialWindowSize).toBe(1 << 20);

  const sessions: http2.ServerHttp2Session[] = [];
  const plain = http2.createSecureServer(pairOf(owner.issue()));
  plain.on('session', (session) => sessions.push(session));
  await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
  closing.push(() => new Promise((resolve) => plain.close(resolve)));
  call((plain.address() as net.AddressInfo).port);
  await expect.poll(() => sessions[0]?.state.remoteWindowSize).toBeGreaterThanOrEqual(1 << 20);
  expect(sessions[0]?.remoteSettings.initialWindowSize).toBe(1 << 20);
});

test('transport: a gRPC server that finds our pings too many -> told apart from other ends', async () => {
  const server = http2.createSecureServer(pairOf(owner.issue()));
  server.on('session', (session) => {
    session.on('error', () => {});
    session.on('stream', () =>
      session.goaway(http2.constants.NGHTTP2_ENHANCE_YOUR_CALM, 0, Buffer.from('too_many_pings')),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => new Promise((resolve) => server.close(resolve)));
  const { port } = server.address() as net.AddressInfo;
  expect(await call(port).until('closed')).toMatch(
    new RegExp(`^closed ${codes.unavailable} .*fewer .*pings \\(tooManyPings\\)$`),
  );
});

const pairOf = ({ certificate: cert, key }: { certificate: string; key: string }) => ({ cert, key });

test('transport: a half-open connection -> both sides notice within two keep-alive times [000-20]', async () => {
  const { server, heard } = await serve({ keepAliveMs: 50 });
  const relay = await relayTo(server.port);
  const caller = call(relay.port, { keepAliveMs: 50 });
  await caller.until('opened');
  relay.freeze();
  expect(await caller.until('closed')).toContain('did not answer keep-alive');
  await expect.poll(() => heard, { timeout: 10_000 }).toContain('closed');
});

/** Passes bytes on until it is frozen; then it takes them and passes nothing on, as a vanished machine would. */
async function relayTo(target: number): Promise<{ port: number; freeze(): void }> {
  let isFrozen = false;
  const sockets = new Set<net.Socket>();
  const relay = net.createServer((near) => {
    const far = net.connect(target, '127.0.0.1');
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on('data', (chunk) => isFrozen || to.write(chunk));
      from.on('error', () => {});
    }
  });
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => relay.close(resolve));
  });
  return { port: (relay.address() as net.AddressInfo).port, freeze: () => (isFrozen = true) };
}

/** OpenSSL itself, which insists on a client certificate of acme's as a stock gRPC server does. */
async function strictTlsServer(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'peering-tls-'));
  const { certificate, key } = owner.issue();
  writeFileSync(join(folder, 'server.pem'), certificate + key);
  writeFileSync(join(folder, 'roots.pem'), acme.certificate);
  const verify = ['-CAfile', 'roots.pem', '-Verify', '2', '-verify_return_error'];
  const args = ['s_server', '-accept', '127.0.0.1:0', '-cert', 'server.pem', '-key', 'server.pem', '-alpn', 'h2'];
  const server = spawn('openssl', [...args, ...verify], { cwd: folder, stdio: ['pipe', 'pipe', 'ignore'] });
  closing.push(() => {
    server.kill('SIGKILL');
    rmSync(folder, { recursive: true });
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.stdout.on('data', (chunk) => {
      const port = /ACCEPT \S*:(\d+)/.exec(String(chunk))?.[1];
      if (port !== undefined) resolve(Number(port));
    });
  });
}

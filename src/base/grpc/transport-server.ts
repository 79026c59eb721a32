// A gRPC server: bidirectional streams on HTTP/2, over TLS or, for a loopback address, in the clear. An edge. A caller is
// judged by its certificate before any of its bytes are read, and what it can make us hold is bounded. TLS itself lets
// any certificate through, or none: a failed handshake looks like a network fault, which callers retry for ever.

import http2 from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { errorText } from '../log.ts';
import { type GrpcServer, type GrpcServerOptions, type ServerLimits, serverLimits } from './server-options.ts';
import { codes } from './status.ts';
import { callOn, readMessages, refuseCall } from './transport-call.ts';
import { Connection, windowBytes } from './transport-connection.ts';
import { keepAlive } from './transport-keep-alive.ts';
import { PlainRequests } from './transport-plain.ts';

const judgeMsDefault = 5000;
const handshakeMsMax = 10_000;
const ownerOnly = 0o600;
const isGrpc = /^application\/grpc(\+proto)?($|;)/;

export function serveGrpc<Caller>(options: GrpcServerOptions<Caller>): Promise<GrpcServer> {
  const limits = { ...serverLimits, ...options.limits };
  const server = listenerOf(options, limits);
  const connections = new Connections(options, limits);
  server.maxConnections = limits.connections;
  // Before HTTP/2 makes a session of it.
  server.prependListener('connection', (socket: Socket) => connections.opened(socket));
  server.on('session', (session: http2.ServerHttp2Session) => connections.add(session));
  server.on('tlsClientError', (error) => options.log.debug('TLS handshake failed', { error: errorText(error) }));
  const judging = setInterval(() => connections.judgeAgain(), options.judgeMs ?? judgeMsDefault);
  judging.unref();
  server.on('close', () => clearInterval(judging));
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    const { socketPath, host, port } = options;
    const listening = () => {
      server.removeListener('error', reject);
      server.on('error', (error) => options.log.error('gRPC listener failed', { error: errorText(error) }));
      resolve({
        port: socketPath === undefined ? (server.address() as AddressInfo).port : 0,
        setCertificate: (cert, key) => 'setSecureContext' in server && server.setSecureContext({ cert, key }),
        trustChanged: () => connections.judgeAgain(),
        close: () =>
          new Promise((closed) => {
            server.close(() => closed());
            connections.destroy();
          }),
      });
    };
    if (socketPath === undefined) server.listen({ host, port }, listening);
    else withMode(options.socketMode ?? ownerOnly, () => server.listen({ path: socketPath }, listening));
  });
}

// A socket is made before listen() returns. Changing its mode afterwards would leave a moment in which others connect.
function withMode(mode: number, listen: () => void): void {
  const before = process.umask(0o777 & ~mode);
  try {
    listen();
  } finally {
    process.umask(before);
  }
}

function listenerOf<Caller>({ tls }: GrpcServerOptions<Caller>, limits: ServerLimits) {
  const settings = { maxConcurrentStreams: limits.streamsPerConnection, initialWindowSize: windowBytes };
  if (tls === undefined) return http2.createServer({ settings });
  return http2.createSecureServer({
    cert: tls.certificate,
    key: tls.key,
    minVersion: 'TLSv1.2',
    requestCert: true,
    rejectUnauthorized: false,
    handshakeTimeout: handshakeMsMax,
    settings,
  });
}

class Connections<Caller> {
  readonly #options: GrpcServerOptions<Caller>;
  readonly #limits: ServerLimits;
  readonly #plain = new PlainRequests();
  readonly #open = new Set<Connection<Caller>>();
  /** By the address and port of the other side. */
  readonly #sockets = new Map<string, Socket>();
  /** Those whose handshake is not over, oldest first. */
  readonly #unknown = new Set<Socket>();

  constructor(options: GrpcServerOptions<Caller>, limits: ServerLimits) {
    this.#options = options;
    this.#limits = limits;
  }

  opened(socket: Socket): void {
    const key = `${socket.remoteAddress} ${socket.remotePort}`;
    this.#sockets.set(key, socket);
    this.#unknown.add(socket);
    socket.on('close', () => {
      this.#sockets.delete(key);
      this.#unknown.delete(socket);
    });
    // A handshake takes milliseconds: the oldest unfinished one is the least likely to be meant well.
    if (this.#unknown.size > this.#limits.handshakes) this.#unknown.values().next().value?.destroy();
  }

  add(session: http2.ServerHttp2Session): void {
    const { log, keepAliveMs } = this.#options;
    session.on('error', (error) => log.debug('gRPC connection failed', { error: errorText(error) }));
    const { remoteAddress, remotePort } = session.socket;
    const socket = this.#sockets.get(`${remoteAddress} ${remotePort}`);
    if (socket !== undefined) this.#unknown.delete(socket);
    const connection = new Connection({ session, socket, options: this.#options, limits: this.#limits });
    if (!this.#hasRoomFor(connection)) return connection.destroy();
    this.#open.add(connection);
    session.on('close', () => this.#open.delete(connection));
    session.on('stream', (stream, headers) => this.#take(connection, stream, headers));
    const onAlive = () => {
      for (const { handlers } of connection.calls) handlers.onAlive?.();
    };
    // After a goodbye of the caller the socket waits for it to hang up, which it may never do.
    keepAlive(session, { intervalMs: keepAliveMs, onAlive, onGivenUp: () => connection.destroy() });
  }

  judgeAgain(): void {
    for (const connection of [...this.#open]) connection.judgeAgain();
  }

  destroy(): void {
    for (const connection of [...this.#open]) connection.destroy();
    for (const socket of [...this.#sockets.values()]) socket.destroy();
  }

  // Strangers have a bound of their own, so that they cannot keep trusted callers out.
  #hasRoomFor(connection: Connection<Caller>): boolean {
    const { connectionsPerCaller, strangers } = this.#limits;
    const key = connection.callerKey;
    const alike = [...this.#open].filter(({ callerKey }) => callerKey === key);
    if (key === undefined) return alike.length < strangers;
    if (alike.length >= connectionsPerCaller) {
      const idle = alike.find(({ calls }) => calls.size === 0);
      if (idle === undefined) return false;
      idle.destroy();
    }
    return true;
  }

  #take(connection: Connection<Caller>, stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders): void {
    stream.on('error', () => {});
    const isPost = headers[':method'] === 'POST';
    const contentType = headers['content-type'] ?? '';
    if (isPost && isGrpc.test(contentType)) return this.#takeCall(connection, stream, headers);
    if (!isPost || contentType !== 'application/json') return stream.respond({ ':status': 415 }, { endStream: true });
    const { route, log } = this.#options;
    const request = { path: headers[':path'] ?? '', verdict: connection.verdict(), from: connection.from };
    void this.#plain.take({ stream, route: route?.(request), limits: this.#limits, log });
  }

  #takeCall(connection: Connection<Caller>, stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders): void {
    const { accept, onRefused, messageBytesMax } = this.#options;
    const verdict = connection.verdict();
    if (verdict.kind === 'refused') {
      onRefused?.({ ...verdict, from: connection.from });
      return refuseCall(stream, verdict.code, verdict.reason);
    }
    const path = headers[':path'] ?? '';
    const call = callOn(stream, { path, headers, caller: verdict.caller });
    const handlers = accept(call);
    if (handlers === undefined) return refuseCall(stream, codes.unimplemented, `${path} is not served here`);
    const open = { call, handlers };
    connection.calls.add(open);
    stream.on('close', () => {
      connection.calls.delete(open);
      handlers.onClosed();
    });
    readMessages(stream, { call, handlers, messageBytesMax });
  }
}

// gRPC as an owner serves it: HTTP/2 over TLS, one bidirectional stream per call. An edge; who may call is decided by
// `trust.ts`, what is said on the stream by a session.

import { X509Certificate } from 'node:crypto';
import http2 from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { errorText, type Log } from '../base/log.ts';
import { FrameError, FrameReader, frameOf } from './frames.ts';
import { type Code, codes } from './messages.ts';
import type { Verdict } from './trust.ts';

/** One call, as whoever answers it sees it. */
export interface ServerCall {
  readonly path: string;
  readonly headers: http2.IncomingHttpHeaders;
  readonly peer: string;
  readonly identity: string;
  sendHeaders(headers: Readonly<Record<string, string>>): void;
  /** False when the other side is slower than we are: wait for `onDrain`. */
  send(message: Uint8Array): boolean;
  end(code: Code, reason: string): void;
}

export interface CallHandlers {
  onMessage(message: Buffer): void;
  onDrain(): void;
  /** Called once: the consumer left, or the connection broke. */
  onClosed(): void;
}

export interface PeeringServerOptions {
  readonly host: string;
  readonly port: number;
  readonly certificate: string;
  readonly key: string;
  /** Decides from what was presented; asked once per connection and again whenever trust changes. */
  readonly judge: (presented: readonly X509Certificate[]) => Verdict;
  /** Undefined for a method that is not served. */
  readonly accept: (call: ServerCall) => CallHandlers | undefined;
  readonly messageBytesMax: number;
  readonly keepAliveMs: number;
  readonly log: Log;
}

export interface PeeringServer {
  readonly port: number;
  /** New connections use these; open streams go on. */
  setCertificate(certificate: string, key: string): void;
  close(): Promise<void>;
}

export function servePeering(options: PeeringServerOptions): Promise<PeeringServer> {
  const server = http2.createSecureServer({
    cert: options.certificate,
    key: options.key,
    minVersion: 'TLSv1.2',
    requestCert: true,
    // The call is refused instead, with a code that the other side understands.
    rejectUnauthorized: false,
    settings: { maxConcurrentStreams: 16, initialWindowSize: 1 << 20 },
  });
  const sessions = new Set<http2.ServerHttp2Session>();
  server.on('session', (session) => {
    sessions.add(session);
    keepAlive(session, options.keepAliveMs);
    session.on('close', () => sessions.delete(session));
    session.on('error', (error) => options.log.debug('peering connection failed', { error }));
  });
  server.on('tlsClientError', (error) => options.log.debug('peering handshake failed', { error: errorText(error) }));
  server.on('stream', (stream, headers) => takeCall(stream, headers, options));
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, () => {
      server.removeListener('error', reject);
      resolve({
        port: (server.address() as AddressInfo).port,
        setCertificate: (cert, key) => server.setSecureContext({ cert, key }),
        close: () => closeServer(server, sessions),
      });
    });
  });
}

function takeCall(
  stream: http2.ServerHttp2Stream,
  headers: http2.IncomingHttpHeaders,
  options: PeeringServerOptions,
): void {
  stream.on('error', () => {});
  const isGrpc = headers[':method'] === 'POST' && (headers['content-type'] ?? '').startsWith('application/grpc');
  if (!isGrpc) {
    stream.respond({ ':status': 415 }, { endStream: true });
    return;
  }
  const verdict = options.judge(presentedBy(stream));
  if (verdict.kind === 'refused') return refuse(stream, codes.unauthenticated, verdict.reason);
  const path = headers[':path'] ?? '';
  const call = callOn(stream, { path, headers, peer: verdict.peer, identity: verdict.identity });
  const handlers = options.accept(call);
  if (handlers === undefined) return refuse(stream, codes.unimplemented, `${path} is not served here`);
  readMessages(stream, call, handlers, options.messageBytesMax);
}

function callOn(
  stream: http2.ServerHttp2Stream,
  about: Pick<ServerCall, 'path' | 'headers' | 'peer' | 'identity'>,
): ServerCall {
  let trailers: Record<string, string> = { 'grpc-status': String(codes.internal) };
  stream.on('wantTrailers', () => stream.sendTrailers(trailers));
  return {
    ...about,
    sendHeaders(extra) {
      if (stream.headersSent || stream.destroyed) return;
      stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...extra }, { waitForTrailers: true });
    },
    send(message) {
      this.sendHeaders({});
      return stream.destroyed || stream.write(frameOf(message));
    },
    end(code, reason) {
      if (stream.destroyed || stream.writableEnded) return;
      this.sendHeaders({});
      trailers = statusTrailers(code, reason);
      stream.end();
    },
  };
}

function readMessages(
  stream: http2.ServerHttp2Stream,
  call: ServerCall,
  handlers: CallHandlers,
  messageBytesMax: number,
): void {
  const reader = new FrameReader(messageBytesMax);
  stream.on('data', (chunk: Buffer) => {
    try {
      for (const message of reader.read(chunk)) handlers.onMessage(message);
    } catch (error) {
      const isTooLarge = error instanceof FrameError && error.isTooLarge;
      call.end(isTooLarge ? codes.resourceExhausted : codes.invalidArgument, errorText(error));
      stream.pause();
    }
  });
  stream.on('drain', () => handlers.onDrain());
  // Half-closing is how a consumer deregisters.
  stream.on('end', () => call.end(codes.ok, ''));
  stream.on('close', () => handlers.onClosed());
}

function refuse(stream: http2.ServerHttp2Stream, code: Code, reason: string): void {
  stream.respond(
    { ':status': 200, 'content-type': 'application/grpc', ...statusTrailers(code, reason) },
    { endStream: true },
  );
  stream.close();
}

// Percent-encoded as the gRPC protocol asks of grpc-message.
function statusTrailers(code: Code, reason: string): Record<string, string> {
  return { 'grpc-status': String(code), ...(reason === '' ? {} : { 'grpc-message': encodeURIComponent(reason) }) };
}

function presentedBy(stream: http2.ServerHttp2Stream): X509Certificate[] {
  const socket = stream.session?.socket as TLSSocket | undefined;
  const chain: X509Certificate[] = [];
  let next = socket?.getPeerCertificate(true);
  while (next?.raw !== undefined && chain.length < 8) {
    const certificate = new X509Certificate(next.raw);
    if (chain.some((known) => known.fingerprint256 === certificate.fingerprint256)) break;
    chain.push(certificate);
    next = next.issuerCertificate;
  }
  return chain;
}

// A half-open connection is noticed by an unanswered PING, long before TCP would.
export function keepAlive(session: http2.Http2Session, intervalMs: number, onAlive: () => void = () => {}): void {
  let isAnswered = true;
  const timer = setInterval(() => {
    if (!isAnswered) return session.destroy(new Error('the other side does not answer keep-alive'));
    isAnswered = false;
    session.ping((error) => {
      isAnswered = error === null;
      if (isAnswered) onAlive();
    });
  }, intervalMs);
  session.on('close', () => clearInterval(timer));
}

function closeServer(server: http2.Http2SecureServer, sessions: ReadonlySet<http2.ServerHttp2Session>): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    for (const session of sessions) session.destroy();
  });
}

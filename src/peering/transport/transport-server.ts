// gRPC as an owner serves it: HTTP/2 over TLS, one bidirectional stream per call. An edge; who may call is decided by
// `trust.ts`, what is said on the stream by a session. The same port answers our own few plain requests.

import type { X509Certificate } from 'node:crypto';
import http2 from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { errorText, type Log } from '../../base/log.ts';
import { type Code, codes } from '../session/messages.ts';
import type { Verdict } from '../trust/trust.ts';
import { FrameReader, frameOf } from './frames.ts';
import { presentedOn } from './transport-certificates.ts';
import { keepAlive } from './transport-keep-alive.ts';
import { statusTrailers } from './transport-status.ts';

/** One call, as whoever answers it sees it. */
export interface ServerCall {
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
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
  /** The consumer answered keep-alive. */
  onAlive?(): void;
  /** Called once: the consumer left, or the connection broke. */
  onClosed(): void;
}

export interface PlainRequest {
  readonly path: string;
  readonly body: Buffer;
  readonly verdict: Verdict;
}

export interface PlainAnswer {
  readonly status: number;
  readonly body: string;
}

export interface RefusedCaller {
  /** The peer whose trust domain it named, if there is one. */
  readonly claimed: string | undefined;
  readonly reason: string;
  readonly from: string;
}

export interface PeeringServerOptions {
  readonly host: string;
  readonly port: number;
  readonly certificate: string;
  readonly key: string;
  /** Why nobody can be served yet; until that is over, nobody can be judged either. */
  readonly whyUnavailable?: () => string | undefined;
  /** Decides from what was presented; asked for each call, and again for those that are open when trust changed. */
  readonly judge: (presented: readonly X509Certificate[]) => Verdict;
  /** Undefined for a method that is not served. */
  readonly accept: (call: ServerCall) => CallHandlers | undefined;
  /** Told of each caller that is refused as Unauthenticated. */
  readonly onRefused?: (refusal: RefusedCaller) => void;
  /** How often those whose calls are open are judged again, because certificates expire. */
  readonly judgeMs?: number;
  /** Requests that are not gRPC; undefined for a path that is not served. */
  readonly answer?: (request: PlainRequest) => Promise<PlainAnswer> | undefined;
  readonly messageBytesMax: number;
  readonly keepAliveMs: number;
  readonly log: Log;
}

export interface PeeringServer {
  readonly port: number;
  /** New connections use these; open streams go on. */
  setCertificate(certificate: string, key: string): void;
  /** Ends the calls of those who are no longer trusted; the others notice nothing. */
  trustChanged(): void;
  close(): Promise<void>;
}

interface OpenCall {
  readonly session: http2.Http2Session | undefined;
  readonly handlers: CallHandlers;
  readonly call: ServerCall;
  readonly presented: readonly X509Certificate[];
}

/** What a consumer may have on its way to us, on one stream and on the connection. */
const windowBytes = 1 << 20;
const lingerMs = 2000;
const judgeMsDefault = 5000;
const plainBodyBytesMax = 256 * 1024;
const isGrpc = /^application\/grpc(\+proto)?($|;)/;

export function servePeering(options: PeeringServerOptions): Promise<PeeringServer> {
  const server = http2.createSecureServer({
    cert: options.certificate,
    key: options.key,
    minVersion: 'TLSv1.2',
    requestCert: true,
    // The call is refused instead, with a code that the other side understands.
    rejectUnauthorized: false,
    settings: { maxConcurrentStreams: 16, initialWindowSize: windowBytes },
  });
  const sessions = new Set<http2.ServerHttp2Session>();
  const open = new Set<OpenCall>();
  server.on('session', (session) => {
    sessions.add(session);
    session.setLocalWindowSize(windowBytes);
    const onAlive = () => {
      for (const entry of open) if (entry.session === session) entry.handlers.onAlive?.();
    };
    keepAlive(session, { intervalMs: options.keepAliveMs, onAlive });
    session.on('close', () => sessions.delete(session));
    session.on('error', (error) => options.log.debug('peering connection failed', { error: errorText(error) }));
  });
  server.on('tlsClientError', (error) => options.log.debug('peering handshake failed', { error: errorText(error) }));
  server.on('stream', (stream, headers) => takeRequest({ stream, headers, options, open }));
  const judging = setInterval(() => judgeAgain(open, options.judge), options.judgeMs ?? judgeMsDefault);
  judging.unref();
  server.on('close', () => clearInterval(judging));
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, () => {
      server.removeListener('error', reject);
      server.on('error', (error) => options.log.error('peering listener failed', { error: errorText(error) }));
      resolve({
        port: (server.address() as AddressInfo).port,
        setCertificate: (cert, key) => server.setSecureContext({ cert, key }),
        trustChanged: () => judgeAgain(open, options.judge),
        close: () => closeServer(server, sessions),
      });
    });
  });
}

interface Incoming {
  readonly stream: http2.ServerHttp2Stream;
  readonly headers: http2.IncomingHttpHeaders;
  readonly options: PeeringServerOptions;
  readonly open: Set<OpenCall>;
}

function takeRequest(incoming: Incoming): void {
  const { stream, headers, options } = incoming;
  stream.on('error', () => {});
  const presented = presentedBy(stream);
  const verdict = options.judge(presented);
  const isPost = headers[':method'] === 'POST';
  const contentType = headers['content-type'] ?? '';
  if (isPost && isGrpc.test(contentType)) return takeCall(incoming, presented, verdict);
  if (isPost && contentType === 'application/json') return void takePlain(incoming, verdict);
  stream.respond({ ':status': 415 }, { endStream: true });
}

function takeCall(incoming: Incoming, presented: readonly X509Certificate[], verdict: Verdict): void {
  const { stream, headers, options, open } = incoming;
  const unavailable = options.whyUnavailable?.();
  if (unavailable !== undefined) return refuse(stream, codes.unavailable, unavailable);
  if (verdict.kind === 'unavailable') return refuse(stream, codes.unavailable, verdict.reason);
  if (verdict.kind === 'refused') {
    options.onRefused?.({ claimed: verdict.claimed, reason: verdict.reason, from: remoteOf(stream) });
    return refuse(stream, codes.unauthenticated, verdict.reason);
  }
  const path = headers[':path'] ?? '';
  const call = callOn(stream, { path, headers, peer: verdict.peer, identity: verdict.identity });
  const handlers = options.accept(call);
  if (handlers === undefined) return refuse(stream, codes.unimplemented, `${path} is not served here`);
  const entry = { call, presented, handlers, session: stream.session };
  open.add(entry);
  stream.on('close', () => {
    open.delete(entry);
    handlers.onClosed();
  });
  readMessages(stream, call, handlers, options.messageBytesMax);
}

function callOn(
  stream: http2.ServerHttp2Stream,
  about: Pick<ServerCall, 'path' | 'headers' | 'peer' | 'identity'>,
): ServerCall {
  let trailers: Record<string, string> = { 'grpc-status': String(codes.internal) };
  stream.on('wantTrailers', () => {
    stream.sendTrailers(trailers);
    // The consumer may leave its side open; it has this long to read how the call ended.
    setTimeout(() => stream.close(http2.constants.NGHTTP2_NO_ERROR), lingerMs).unref();
  });
  return {
    ...about,
    sendHeaders(extra) {
      if (stream.headersSent || stream.destroyed) return;
      stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...extra }, { waitForTrailers: true });
    },
    send(message) {
      if (stream.destroyed || stream.writableEnded) return true;
      this.sendHeaders({});
      return stream.write(frameOf(message));
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
  const reader = new FrameReader({ messageBytesMax });
  stream.on('data', (chunk: Buffer) => {
    if (stream.writableEnded) return;
    try {
      for (const message of reader.read(chunk)) handlers.onMessage(message);
    } catch (error) {
      call.end(codes.invalidArgument, errorText(error));
    }
  });
  stream.on('drain', () => handlers.onDrain());
  // Half-closing is how a consumer deregisters.
  stream.on('end', () => call.end(codes.ok, ''));
}

async function takePlain({ stream, headers, options }: Incoming, verdict: Verdict): Promise<void> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > plainBodyBytesMax) return stream.close(http2.constants.NGHTTP2_ENHANCE_YOUR_CALM);
      chunks.push(chunk);
    }
    const request = { path: headers[':path'] ?? '', body: Buffer.concat(chunks), verdict };
    const { status, body } = (await options.answer?.(request)) ?? { status: 404, body: '{}' };
    if (stream.destroyed) return;
    stream.respond({ ':status': status, 'content-type': 'application/json' });
    stream.end(body);
  } catch (error) {
    options.log.warn('peering request failed', { error: errorText(error) });
    stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
  }
}

function judgeAgain(open: ReadonlySet<OpenCall>, judge: PeeringServerOptions['judge']): void {
  for (const { call, presented } of [...open]) {
    const verdict = judge(presented);
    if (verdict.kind === 'unavailable') call.end(codes.unavailable, verdict.reason);
    else if (verdict.kind === 'refused') call.end(codes.unauthenticated, verdict.reason);
    else if (verdict.peer !== call.peer) call.end(codes.unavailable, `this certificate now stands for ${verdict.peer}`);
  }
}

function refuse(stream: http2.ServerHttp2Stream, code: Code, reason: string): void {
  stream.respond(
    { ':status': 200, 'content-type': 'application/grpc', ...statusTrailers(code, reason) },
    { endStream: true },
  );
  setTimeout(() => stream.close(http2.constants.NGHTTP2_NO_ERROR), lingerMs).unref();
}

function presentedBy(stream: http2.ServerHttp2Stream): X509Certificate[] {
  return presentedOn(stream.session?.socket as TLSSocket | undefined);
}

function remoteOf(stream: http2.ServerHttp2Stream): string {
  return stream.session?.socket.remoteAddress ?? '';
}

function closeServer(server: http2.Http2SecureServer, sessions: ReadonlySet<http2.ServerHttp2Session>): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    for (const session of sessions) session.destroy();
  });
}

// The HTTPS edge: HTTP/2 and HTTP/1.1 over TLS, with bounds on everything a client may take. It carries requests to
// `handle` and answers back; who may do what, and what an answer says, is not decided here.

import { constants as cryptoConstants } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  constants,
  createSecureServer,
  type Http2SecureServer,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { HttpResponse } from '../../base/http.ts';
import { errorText, type Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import { TryLimits } from '../../base/try-limits.ts';
import type { World } from '../../base/world.ts';
import { errorResponse } from '../encoding/respond.ts';
import type { ApiRequest } from '../model/access.ts';
import { StatusError } from '../model/status.ts';
import { type AuditSink, auditEvent } from '../security/audit.ts';
import type { Pki } from '../security/pki.ts';
import { type Connection, Connections } from './connections.ts';
import { countNothing, type EdgeCounters, edgeCounters } from './counters.ts';
import { Exchange } from './exchange.ts';
import { defaultLimits, type EdgeLimits } from './limits.ts';
import { http1Transport, http2Transport, type Transport } from './transports.ts';

export interface ServeOptions {
  readonly api: { handle(request: ApiRequest): Promise<HttpResponse> };
  readonly pki: Pick<Pki, 'clientCa' | 'serverCredentials' | 'onRenewed'>;
  readonly listen: { readonly host: string; readonly port: number };
  readonly world: Pick<World, 'clock' | 'random'>;
  readonly log: Log;
  readonly limits?: Partial<EdgeLimits>;
  readonly audit?: AuditSink;
  readonly metrics?: Metrics;
}

export interface ApiServer {
  readonly address: { readonly host: string; readonly port: number };
  /** Switches the audit log on, or off with undefined, from the next request on. */
  setAudit(sink: AuditSink | undefined): void;
  /** Ends all watches; their clients go on where they were, here or elsewhere. */
  endWatches(): void;
  /** Takes nothing new, finishes what is in flight, ends watches, and closes. */
  close(): Promise<void>;
}

export async function serve(options: ServeOptions): Promise<ApiServer> {
  const edge = new Edge(options);
  await edge.listen();
  return edge;
}

type StreamEvent = [stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number, rawHeaders: string[]];

class Edge implements ApiServer {
  readonly #options: ServeOptions;
  readonly #limits: EdgeLimits;
  readonly #server: Http2SecureServer;
  readonly #connections: Connections;
  readonly #bySession = new WeakMap<Http2Session, Connection>();
  readonly #exchanges = new Set<Exchange>();
  readonly #counters: EdgeCounters;
  readonly #bodies = { bytes: 0 };
  readonly #heavyHeaders: TryLimits;
  readonly #forgetRenewals: () => void;
  #audit: AuditSink | undefined;
  #sweeping: NodeJS.Timeout | undefined;
  #onIdle: (() => void) | undefined;
  #isClosing = false;

  constructor(options: ServeOptions) {
    this.#options = options;
    this.#limits = { ...defaultLimits, ...options.limits };
    this.#audit = options.audit;
    const { heavyHeadersBurst: burst, heavyHeadersPerSecond } = this.#limits;
    const everyMs = 1000 / heavyHeadersPerSecond;
    this.#heavyHeaders = new TryLimits(options.world.clock, {
      perAddress: { burst, everyMs },
      inAll: { burst: 8 * burst, everyMs: everyMs / 8 },
    });
    this.#counters = options.metrics === undefined ? countNothing : edgeCounters(options.metrics);
    this.#connections = new Connections(this.#limits);
    this.#server = createSecureServer({ ...tlsOptions(options.pki), ...protocolOptions(this.#limits) });
    this.#forgetRenewals = options.pki.onRenewed(() => this.#server.setSecureContext(tlsOptions(options.pki)));
    this.#wire();
  }

  get address(): { host: string; port: number } {
    const { address, port } = this.#server.address() as AddressInfo;
    return { host: address, port };
  }

  setAudit(sink: AuditSink | undefined): void {
    this.#audit = sink;
  }

  listen(): Promise<void> {
    const { host, port } = this.#options.listen;
    const sweepMs = Math.min(1000, Math.ceil(smallestTimeLimitMs(this.#limits) / 4));
    this.#sweeping = setInterval(() => this.#sweep(), sweepMs).unref();
    return new Promise((resolve, reject) => {
      const onError = (cause: Error) => {
        clearInterval(this.#sweeping);
        reject(new Error(`cannot listen on ${host}:${port}, choose another address with --listen`, { cause }));
      };
      this.#server.once('error', onError);
      this.#server.listen({ host, port, backlog: 1024 }, () => {
        this.#server.removeListener('error', onError);
        resolve();
      });
    });
  }

  endWatches(): void {
    for (const exchange of this.#exchanges) exchange.endStream();
  }

  async close(): Promise<void> {
    if (this.#isClosing) return;
    this.#isClosing = true;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.endWatches();
    await this.#settled();
    this.#connections.destroyAll();
    clearInterval(this.#sweeping);
    this.#forgetRenewals();
    await closed;
  }

  #settled(): Promise<void> {
    if (this.#exchanges.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const patience = setTimeout(resolve, this.#limits.graceMsMax);
      this.#onIdle = () => {
        clearTimeout(patience);
        // The last answer has been handed over; one turn lets it reach the socket before that is closed.
        setImmediate(resolve);
      };
    });
  }

  #wire(): void {
    const server = this.#server;
    const { log } = this.#options;
    server.on('connection', (socket: Socket) => this.#connected(socket));
    server.on('secureConnection', (socket: TLSSocket) => this.#connections.of(socket)?.secured(socket));
    server.on('session', (session) => {
      const connection = this.#connections.of(session.socket);
      connection?.spokeHttp2(session);
      if (connection !== undefined) this.#bySession.set(session, connection);
      session.on('error', (error) => log.debug('an http/2 session broke', { error: errorText(error) }));
    });
    server.on('request', (request: IncomingMessage, response: ServerResponse) => this.#onHttp1(request, response));
    // Listening to `request` made Node wrap every HTTP/2 stream in its compatibility layer: streams are taken bare.
    server.removeAllListeners('stream');
    server.on('stream', (...[stream, headers, flags, rawHeaders]: StreamEvent) => {
      stream.on('error', () => {});
      const bytes = headerBytes(rawHeaders);
      if (this.#isTooHeavy(stream.session?.socket.remoteAddress, bytes))
        stream.session?.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
      else if (bytes <= this.#limits.headerBytesMax) this.#onStream(stream, headers, flags);
      else stream.respond({ ':status': 431 }, { endStream: true });
    });
    // Such as too many open files: the next connection may fare better.
    server.on('error', (error) => {
      if (server.listening) log.error('the server could not take a connection', { error: errorText(error) });
    });
    server.on('clientError', (error: NodeJS.ErrnoException, socket) => refuseBrokenHttp1(error, socket as Socket));
    server.on('tlsClientError', (error) => log.debug('a tls handshake failed', { error: errorText(error) }));
    server.on('unknownProtocol', (socket) => socket.destroy());
  }

  #connected(socket: Socket): void {
    socket.on('error', () => {});
    this.#connections.open(socket, this.#nowMs());
    this.#counters.connectionOpened();
    socket.once('close', () => this.#counters.connectionClosed());
  }

  /** Reading a header of many fields takes a millisecond: a few senders of them would hold up everybody. */
  #isTooHeavy(address: string | undefined, bytes: number): boolean {
    return bytes > this.#limits.heavyHeaderBytes && !this.#heavyHeaders.mayTry(address ?? '', bytes);
  }

  #onHttp1(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#connections.of(request.socket);
    if (connection === undefined) return void request.socket.destroy();
    if (this.#isTooHeavy(request.socket.remoteAddress, headerBytes(request.rawHeaders)))
      return refuseBrokenHttp1({ code: 'too many heavy headers' }, request.socket);
    if (this.#isClosing) response.shouldKeepAlive = false;
    connection.inTurn(() => this.#begin(http1Transport(request, response), connection));
  }

  #onStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number): void {
    const connection = stream.session && this.#bySession.get(stream.session);
    // A stream the client reset is gone for HTTP/2, but what it asked for may still be at work.
    if (connection === undefined || connection.openExchanges >= 2 * this.#limits.streamsPerConnectionMax) {
      stream.close(constants.NGHTTP2_REFUSED_STREAM);
      return;
    }
    this.#begin(http2Transport(stream, headers, flags), connection);
  }

  #begin(transport: Transport, connection: Connection): void {
    const { api, world, log } = this.#options;
    connection.hasRequested = true;
    connection.openExchanges++;
    const exchange = new Exchange({
      transport,
      client: connection.client,
      wallMs: world.clock.wallMs(),
      auditId: this.#audit === undefined ? '' : world.random.uuid(),
      handle: (request) => this.#refused(request.method) ?? api.handle(request),
      limits: this.#limits,
      bodies: this.#bodies,
      log,
      nowMs: () => this.#nowMs(),
      onResponse: (begun) => {
        if (begun.isStream) this.#record(begun, connection, 'ResponseStarted');
      },
      onDone: (done) => this.#done(done, connection),
      onStall: () => {
        this.#counters.readerCut();
        connection.probe(this.#nowMs() + this.#limits.stallMsMax);
      },
    });
    this.#exchanges.add(exchange);
    void exchange.run();
  }

  /** Without a line in the audit log there is no write, if that was asked for. */
  #refused(method: string): Promise<HttpResponse> | undefined {
    const reason = method === 'GET' || method === 'HEAD' ? undefined : this.#audit?.refusal?.();
    if (reason === undefined) return undefined;
    return Promise.resolve(
      errorResponse(new StatusError('ServiceUnavailable', reason, { details: { retryAfterSeconds: 5 } })),
    );
  }

  #done(exchange: Exchange, connection: Connection): void {
    this.#exchanges.delete(exchange);
    connection.openExchanges--;
    connection.activeMs = this.#nowMs();
    this.#record(exchange, connection, 'ResponseComplete');
    this.#counters.requestDone({
      method: exchange.transport.method,
      status: exchange.status,
    });
    connection.nextInTurn();
    if (this.#exchanges.size === 0) this.#onIdle?.();
  }

  #record(exchange: Exchange, connection: Connection, stage: 'ResponseStarted' | 'ResponseComplete'): void {
    if (exchange.auditId === '') return;
    this.#audit?.record(
      auditEvent({
        stage,
        auditId: exchange.auditId,
        method: exchange.transport.method,
        path: exchange.transport.path,
        userAgent: exchange.transport.headers['user-agent'] ?? '',
        sourceAddress: connection.address,
        status: exchange.status,
        trail: exchange.trail,
        receivedWallMs: exchange.wallMs,
        nowWallMs: this.#options.world.clock.wallMs(),
      }),
    );
  }

  #sweep(): void {
    const nowMs = this.#nowMs();
    for (const exchange of this.#exchanges) exchange.sweep(nowMs);
    this.#connections.sweep(nowMs);
  }

  #nowMs(): number {
    return this.#options.world.clock.monotonicMs();
  }
}

function tlsOptions(pki: ServeOptions['pki']) {
  const { certificate, key } = pki.serverCredentials();
  return {
    cert: certificate,
    key,
    ca: pki.clientCa,
    minVersion: 'TLSv1.2' as const,
    // A resumed session would carry an old verdict on the client's certificate.
    secureOptions: cryptoConstants.SSL_OP_NO_TICKET,
    sessionTimeout: 1,
  };
}

function protocolOptions(limits: EdgeLimits) {
  return {
    allowHTTP1: true,
    requestCert: true,
    // A client without a certificate, or with a bad one, gets an answer that says so.
    rejectUnauthorized: false,
    handshakeTimeout: limits.headersMsMax,
    settings: {
      maxConcurrentStreams: limits.streamsPerConnectionMax,
      maxHeaderListSize: limits.headerBytesMax,
      initialWindowSize: 256 * 1024,
      enablePush: false,
    },
    maxSessionMemory: 64,
    streamResetBurst: limits.resetBurst,
    streamResetRate: limits.resetsPerSecond,
    http1Options: {
      maxHeaderSize: limits.headerBytesMax,
      headersTimeout: limits.headersMsMax,
      requestTimeout: limits.headersMsMax + limits.bodyMsMax,
      keepAliveTimeout: limits.idleMsMax,
      connectionsCheckingInterval: Math.min(1000, Math.ceil(limits.headersMsMax / 4)),
    },
  };
}

// HTTP/2 holds a client to the limit only once it has acknowledged it. RFC 9113 section 6.5.2 counts 32 bytes a field.
function headerBytes(rawHeaders: readonly string[]): number {
  let bytes = rawHeaders.length * 16;
  for (const part of rawHeaders) bytes += part.length;
  return bytes;
}

function smallestTimeLimitMs(limits: EdgeLimits): number {
  const { headersMsMax, bodyMsMax, handleMsMax, stallMsMax, idleMsMax } = limits;
  return Math.min(headersMsMax, bodyMsMax, handleMsMax, stallMsMax, idleMsMax);
}

function refuseBrokenHttp1(error: { readonly code?: string }, socket: Socket): void {
  if (!socket.writable) return void socket.destroy();
  const codes: Record<string, string> = {
    HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
    ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
    'too many heavy headers': '429 Too Many Requests',
  };
  const line = codes[error.code ?? ''] ?? '400 Bad Request';
  socket.end(`HTTP/1.1 ${line}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
  socket.destroySoon();
}

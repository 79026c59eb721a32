// DNS over TCP (RFC 7766) and TLS (RFC 7858): many queries on one connection, answered as they become ready. A connection
// that is idle, sends slowly or does not read its answers is closed; so is the oldest idle one when there are too many. A
// client may close its side before its answers have come. Connections count from the moment they are accepted, and a TLS
// handshake has its own time limit.

import type { Http2SecureServer } from 'node:http2';
import { createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from 'node:tls';
import { FrameReader, frameMessage } from '../../base/dns/frames.ts';
import type { Timer, Timers } from '../../base/world.ts';
import type { Responder } from '../chain/responder.ts';
import type { TlsMaterial } from '../config/config.ts';
import { Answer } from '../message/answer.ts';
import { headerBytes, messageBytesMax } from '../message/wire.ts';
import type { Tally } from '../metrics/observe.ts';
import { OpenConnections } from './open-connections.ts';
import type { Listening } from './server-udp.ts';

export interface StreamOptions {
  readonly responder: Responder;
  readonly nsid: Uint8Array;
  readonly timers: Timers;
  readonly host: string;
  readonly port: number;
  readonly reusePort: boolean;
  readonly tls?: TlsMaterial;
  readonly idleMs?: number;
  readonly handshakeMs?: number;
  readonly connectionsMax?: number;
  readonly tally: Tally;
  readonly onError: (error: unknown) => void;
}

export const defaultIdleMs = 10_000;
export const defaultHandshakeMs = 3000;
export const defaultConnectionsMax = 1000;
/** Answers that a client has asked for and does not read. */
const unreadBytesMax = 1 << 20;
/** For a whole zone. */
const transferMsMax = 120_000;
/** Queries of one connection that wait for upstream servers. */
const waitingMax = 256;

export async function listenStream(options: StreamOptions): Promise<Listening> {
  const answer = new Answer(new Uint8Array(messageBytesMax + 2));
  answer.nsid = options.nsid;
  answer.keepaliveMs = options.idleMs ?? defaultIdleMs;
  const open = new OpenConnections(options.connectionsMax ?? defaultConnectionsMax);
  const { timers, handshakeMs = defaultHandshakeMs } = options;
  const drain = new Drain();
  const serveOn = (socket: Socket) => {
    const onActive = () => open.touch(socket);
    if (options.tls) onActive();
    new Connection(socket, { answer, options, onActive, drain }).serve();
  };
  const server = options.tls ? tlsServer(options.tls, serveOn) : createTcpServer(streamDefaults, serveOn);
  // Before any handshake: who only connects counts too. Listed first, so that it is known before it is served.
  server.prependListener('connection', (socket: Socket) => {
    open.add(socket, options.tls && timers.after(handshakeMs, () => socket.destroy()));
  });
  return listenOn(server, options, { open, drain });
}

/** Its connections are drained before it ends; a renewed certificate counts for new ones. */
export async function listenOn(
  server: Server | TlsServer | Http2SecureServer,
  options: StreamOptions,
  { open, drain }: { readonly open: OpenConnections; readonly drain: Drain },
): Promise<Listening> {
  server.on('error', options.onError);
  await listen(server, options);
  return {
    port: (server.address() as { port: number }).port,
    drain: () => {
      server.close();
      return drain.whenEmpty();
    },
    ...('setSecureContext' in server ? { setTls: (tls) => server.setSecureContext(secureContext(tls)) } : {}),
    close: () =>
      new Promise((resolve) => {
        // With an error, which does not matter, if draining has closed it.
        server.close(() => resolve());
        open.destroyAll();
      }),
  };
}

/** Counts the queries of all connections that wait. */
export class Drain {
  #waiting = 0;
  #onEmpty = () => {};

  whenEmpty(): Promise<void> {
    return this.#waiting === 0 ? Promise.resolve() : new Promise((resolve) => (this.#onEmpty = resolve));
  }

  count(step: 1 | -1): void {
    this.#waiting += step;
    if (this.#waiting === 0) this.#onEmpty();
  }
}

const streamDefaults = { noDelay: true, allowHalfOpen: true };

function tlsServer(tls: TlsMaterial, accept: (socket: Socket) => void): Server {
  const server = createTlsServer(
    {
      ...secureContext(tls),
      requestCert: tls.clientAuthority !== undefined,
      rejectUnauthorized: false,
      ALPNProtocols: ['dot'],
      ...streamDefaults,
    },
    accept,
  );
  // A handshake that fails is the client's trouble.
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  return server;
}

export function secureContext({ certificate, key, clientAuthority }: TlsMaterial) {
  return { cert: certificate, key, ca: clientAuthority, minVersion: 'TLSv1.2' } as const;
}

function listen(server: Server, { host, port, reusePort }: Omit<StreamOptions, 'tls'>): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port, reusePort, ipv6Only: host.includes(':') }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

interface ServeParts {
  readonly answer: Answer;
  readonly options: StreamOptions;
  readonly onActive: () => void;
  readonly drain: Drain;
}

class Connection {
  readonly #socket: Socket;
  readonly #parts: ServeParts;
  readonly #transport: 'tls' | 'tcp';
  readonly #address: string;
  readonly #port: number;
  readonly #identity: string;
  readonly #frames = new FrameReader();
  #waiting = 0;
  #hasEnded = false;
  #idle: Timer;

  constructor(socket: Socket, parts: ServeParts) {
    this.#socket = socket;
    this.#parts = parts;
    const { options } = parts;
    this.#transport = options.tls ? 'tls' : 'tcp';
    this.#address = socket.remoteAddress ?? '';
    this.#port = socket.remotePort ?? 0;
    this.#identity = options.tls ? identityOf(socket as TLSSocket) : '';
    this.#idle = options.timers.after(options.idleMs ?? defaultIdleMs, () => socket.destroy());
  }

  serve(): void {
    const socket = this.#socket;
    socket.on('data', (chunk: Buffer) => {
      try {
        this.#read(chunk);
      } catch (error) {
        this.#failed(error);
      }
    });
    // Its last queries are answered before our side is closed too.
    socket.on('end', () => {
      this.#hasEnded = true;
      this.#endIfDone();
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#idle.cancel());
  }

  #read(chunk: Buffer): void {
    this.#frames.add(chunk);
    let isComplete = false;
    for (let packet = this.#frames.next(); packet !== undefined; packet = this.#frames.next()) {
      // A packet shorter than a header is no DNS message.
      if (packet.length < headerBytes) {
        this.#socket.destroy();
        return;
      }
      this.#take(packet);
      isComplete = true;
    }
    if (!isComplete) return;
    // Only whole queries count as life: one byte a minute would otherwise hold a connection for ever.
    this.#restartIdle();
    this.#parts.onActive();
  }

  #take(packet: Buffer): void {
    const { options, answer, drain } = this.#parts;
    const { responder, timers } = options;
    const result = responder.respond(packet, this.#transport, this.#address, this.#port, this.#identity, answer, 0);
    if (typeof result === 'number') {
      if (result > 0) this.#send(answer.bytes.subarray(0, result));
      return;
    }
    this.#waiting += 1;
    drain.count(1);
    if (this.#waiting >= waitingMax) this.#socket.pause();
    result.take((message, more) => {
      if (message) this.#send(message);
      const finish = () => {
        this.#waiting -= 1;
        drain.count(-1);
        this.#socket.resume();
        this.#endIfDone();
      };
      const onFault = (error: unknown) => this.#failed(error);
      if (more) sendAll(this.#socket, more, { timers, finish, onFault });
      else finish();
    });
  }

  #send(message: Uint8Array): void {
    const socket = this.#socket;
    if (socket.destroyed) return;
    socket.write(frameMessage(message));
    if (socket.writableLength > unreadBytesMax) socket.destroy();
  }

  #restartIdle(): void {
    const { timers, idleMs = defaultIdleMs } = this.#parts.options;
    this.#idle.cancel();
    this.#idle = timers.after(idleMs, () => (this.#waiting > 0 ? this.#restartIdle() : this.#socket.destroy()));
  }

  #endIfDone(): void {
    if (this.#hasEnded && this.#waiting === 0) this.#socket.end();
  }

  /** A fault in a query ends only its connection. */
  #failed(error: unknown): void {
    const { tally, onError } = this.#parts.options;
    tally.add('droppedFault');
    onError(error);
    this.#socket.destroy();
  }
}

interface SendAllOptions {
  readonly timers: Timers;
  readonly finish: () => void;
  readonly onFault: (error: unknown) => void;
}

/** No faster than the client reads; one that takes too long is cut off. */
function sendAll(socket: Socket, messages: Iterator<Uint8Array>, { timers, finish, onFault }: SendAllOptions): void {
  const tooLong = timers.after(transferMsMax, () => socket.destroy());
  let isOver = false;
  const end = () => {
    if (isOver) return;
    isOver = true;
    tooLong.cancel();
    socket.off('drain', next);
    socket.off('close', end);
    messages.return?.();
    finish();
  };
  function next(): void {
    try {
      while (!socket.destroyed) {
        const { done, value } = messages.next();
        if (done) return end();
        if (!socket.write(frameMessage(value))) return;
      }
    } catch (error) {
      end();
      onFault(error);
    }
  }
  socket.on('drain', next);
  socket.on('close', end);
  next();
}

/** Common name or URI of a certificate that the client authority signed. */
export function identityOf(socket: TLSSocket): string {
  if (!socket.authorized) return '';
  const certificate = socket.getPeerCertificate();
  const uri = /URI:([^,]+)/.exec(certificate.subjectaltname ?? '')?.[1];
  const name = certificate.subject?.CN;
  return uri ?? (Array.isArray(name) ? name[0] : name) ?? '';
}

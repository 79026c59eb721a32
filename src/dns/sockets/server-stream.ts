// DNS over TCP (RFC 7766) and TLS (RFC 7858): many queries on one connection, answered as they become ready. A connection
// that is idle, sends slowly or does not read its answers is closed; so is the oldest idle one when there are too many. A
// client may close its side before its answers have come. Connections count from the moment they are accepted, and a TLS
// handshake has its own time limit.

import { createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from 'node:tls';
import { FrameReader, frameMessage } from '../../base/dns/frames.ts';
import type { Timers } from '../../base/world.ts';
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
    serve(socket, { answer, options, onActive, drain });
  };
  const server = options.tls ? tlsServer(options.tls, serveOn) : createTcpServer(streamDefaults, serveOn);
  // Before any handshake: who only connects counts too. Listed first, so that it is known before it is served.
  server.prependListener('connection', (socket: Socket) => {
    open.add(socket, options.tls && timers.after(handshakeMs, () => socket.destroy()));
  });
  server.on('error', options.onError);
  await listen(server, options);
  return {
    port: (server.address() as { port: number }).port,
    drain: () => {
      server.close();
      return drain.whenEmpty();
    },
    ...(options.tls ? { setTls: (material) => (server as TlsServer).setSecureContext(secureContext(material)) } : {}),
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

export function listen(server: Server, { host, port, reusePort }: Omit<StreamOptions, 'tls'>): Promise<void> {
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

function serve(socket: Socket, { answer, options, onActive, drain }: ServeParts): void {
  const transport = options.tls ? 'tls' : 'tcp';
  const address = socket.remoteAddress ?? '';
  const port = socket.remotePort ?? 0;
  const identity = options.tls ? identityOf(socket as TLSSocket) : '';
  const idleMs = options.idleMs ?? defaultIdleMs;
  const frames = new FrameReader();
  let waiting = 0;
  let hasEnded = false;
  let idle = options.timers.after(idleMs, () => socket.destroy());

  const restartIdle = () => {
    idle.cancel();
    idle = options.timers.after(idleMs, () => (waiting > 0 ? restartIdle() : socket.destroy()));
  };

  function send(message: Uint8Array): void {
    if (socket.destroyed) return;
    socket.write(frameMessage(message));
    if (socket.writableLength > unreadBytesMax) socket.destroy();
  }

  function endIfDone(): void {
    if (hasEnded && waiting === 0) socket.end();
  }

  function take(packet: Buffer): void {
    const result = options.responder.respond(packet, transport, address, port, identity, answer, 0);
    if (typeof result === 'number') {
      if (result > 0) send(answer.bytes.subarray(0, result));
      return;
    }
    waiting += 1;
    drain.count(1);
    if (waiting >= waitingMax) socket.pause();
    result.take((message, more) => {
      if (message) send(message);
      const finish = () => {
        waiting -= 1;
        drain.count(-1);
        socket.resume();
        endIfDone();
      };
      if (more) sendAll(socket, more, { timers: options.timers, finish, onFault });
      else finish();
    });
  }

  /** A fault in a query ends only its connection. */
  function onFault(error: unknown): void {
    options.tally.add('droppedFault');
    options.onError(error);
    socket.destroy();
  }

  function onData(chunk: Buffer): void {
    frames.add(chunk);
    let isComplete = false;
    for (let packet = frames.next(); packet !== undefined; packet = frames.next()) {
      // A packet shorter than a header is no DNS message.
      if (packet.length < headerBytes) {
        socket.destroy();
        return;
      }
      take(packet);
      isComplete = true;
    }
    // Only whole queries count as life: one byte a minute would otherwise hold a connection for ever.
    if (isComplete) {
      restartIdle();
      onActive();
    }
  }

  socket.on('data', (chunk: Buffer) => {
    try {
      onData(chunk);
    } catch (error) {
      onFault(error);
    }
  });
  // Its last queries are answered before our side is closed too.
  socket.on('end', () => {
    hasEnded = true;
    endIfDone();
  });
  socket.on('error', () => socket.destroy());
  socket.on('close', () => idle.cancel());
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

// DNS over HTTPS (RFC 8484), HTTP/2 and HTTP/1.1: GET and POST of `/dns-query`. Loaded where it is served only. A connection
// that is idle, sends slowly or does not read its answers is closed, as over TCP.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { createSecureServer } from 'node:http2';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { rcode, recordType } from '../../base/dns/codes.ts';
import { tryDecodeMessage } from '../../base/dns/message.ts';
import type { Timer } from '../../base/world.ts';
import type { TlsMaterial } from '../config/config.ts';
import { Answer } from '../message/answer.ts';
import { headerBytes, messageBytesMax } from '../message/wire.ts';
import { OpenConnections } from './open-connections.ts';
import {
  Drain,
  defaultConnectionsMax,
  defaultHandshakeMs,
  defaultIdleMs,
  identityOf,
  listenOn,
  type StreamOptions,
  secureContext,
} from './server-stream.ts';
import type { Listening } from './server-udp.ts';

const httpsPath = '/dns-query';
const messageType = 'application/dns-message';
const streamsMax = 100;
const headerListBytesMax = 16_384;
/** For a body to come, and for an answer to be read. */
const transferMs = 10_000;
/** Base64url of the longest message, and the path before it. */
const urlMax = Math.ceil((messageBytesMax * 4) / 3) + 100;

type Options = StreamOptions & { readonly tls: TlsMaterial };
type Refusal = { readonly status: number; readonly text: string };

export async function listenHttps(options: Options): Promise<Listening> {
  const { timers, tls, handshakeMs = defaultHandshakeMs } = options;
  const server = createSecureServer({
    ...secureContext(tls),
    allowHTTP1: true,
    requestCert: tls.clientAuthority !== undefined,
    rejectUnauthorized: false,
    settings: { maxConcurrentStreams: streamsMax, maxHeaderListSize: headerListBytesMax },
  });
  const open = new OpenConnections(options.connectionsMax ?? defaultConnectionsMax);
  const drain = new Drain();
  const idle = new IdleConnections(options);
  const respond = responderOf(options, drain);
  server.prependListener('connection', (socket: Socket) => {
    open.add(
      socket,
      timers.after(handshakeMs, () => socket.destroy()),
    );
  });
  server.on('secureConnection', (socket: TLSSocket) => {
    open.touch(socket);
    idle.begin(socket);
  });
  server.on('session', (session) => session.on('error', () => session.destroy()));
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    open.touch(request.socket);
    idle.inUse(request.socket, response);
    respond(request, response);
  });
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  server.on('clientError', (_error, socket) => socket.destroy());
  server.on('unknownProtocol', (socket) => socket.destroy());
  return listenOn(server, options, { open, drain });
}

/** Ends connections on which nothing has been asked for a while. */
class IdleConnections {
  readonly #options: Pick<Options, 'timers' | 'idleMs'>;
  readonly #open = new Map<string, { readonly socket: TLSSocket; requests: number; timer: Timer }>();

  constructor(options: Pick<Options, 'timers' | 'idleMs'>) {
    this.#options = options;
  }

  begin(socket: TLSSocket): void {
    const key = keyOf(socket);
    const entry = { socket, requests: 0, timer: this.#timer(socket) };
    this.#open.set(key, entry);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      entry.timer.cancel();
      if (this.#open.get(key) === entry) this.#open.delete(key);
    });
  }

  inUse(socket: Socket, response: ServerResponse): void {
    const entry = this.#open.get(keyOf(socket));
    if (!entry) return;
    entry.requests += 1;
    entry.timer.cancel();
    response.once('close', () => {
      entry.requests -= 1;
      if (entry.requests === 0 && !entry.socket.destroyed) entry.timer = this.#timer(entry.socket);
    });
  }

  #timer(socket: TLSSocket): Timer {
    const { timers, idleMs = defaultIdleMs } = this.#options;
    return timers.after(idleMs, () => socket.destroy());
  }
}

/** The same for a connection and for what HTTP/2 shows of it. */
function keyOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

function responderOf({ responder, nsid, timers, tally, onError }: Options, drain: Drain) {
  const answer = new Answer(new Uint8Array(messageBytesMax + 2));
  answer.nsid = nsid;

  function handle(message: Uint8Array, request: IncomingMessage, response: ServerResponse): void {
    const { remoteAddress = '', remotePort = 0 } = request.socket;
    const identity = identityOf(request.socket as TLSSocket);
    const result = responder.respond(message, 'https', remoteAddress, remotePort, identity, answer, 0);
    const give = (reply: Uint8Array | undefined) => {
      if (reply) sendMessage(response, reply);
      else refuse(response, silent);
      untilRead(request, response);
    };
    if (typeof result === 'number') give(result === 0 ? undefined : Buffer.from(answer.bytes.subarray(0, result)));
    else {
      drain.count(1);
      result.take((reply) => {
        drain.count(-1);
        give(reply);
      });
    }
  }

  function untilRead(request: IncomingMessage, response: ServerResponse): void {
    if (response.destroyed) return;
    const timer = timers.after(transferMs, () => request.destroy());
    response.once('close', () => timer.cancel());
  }

  return (request: IncomingMessage, response: ServerResponse): void => {
    request.on('error', () => {});
    response.on('error', () => {});
    const slow = timers.after(transferMs, () => request.destroy());
    response.once('close', () => slow.cancel());
    void messageIn(request)
      .then((message) => {
        slow.cancel();
        if ('status' in message) {
          refuse(response, message);
          untilRead(request, response);
        } else handle(message, request, response);
      })
      .catch((error: unknown) => {
        tally.add('droppedFault');
        onError(error);
        request.destroy();
      });
  };
}

async function messageIn(request: IncomingMessage): Promise<Uint8Array | Refusal> {
  const { method, url = '', headers } = request;
  const [path, search = ''] = url.length > urlMax ? [''] : url.split('?', 2);
  if (url.length > urlMax) return { status: 414, text: 'the message is too long' };
  if (path !== httpsPath) return { status: 404, text: `DNS is at ${httpsPath}` };
  if (method === 'GET') return checked(Buffer.from(new URLSearchParams(search).get('dns') ?? '', 'base64url'));
  if (method !== 'POST') return { status: 405, text: 'GET and POST are served' };
  if (headers['content-type'] !== messageType) return { status: 415, text: `want ${messageType}` };
  const chunks: Buffer[] = [];
  let length = 0;
  // A refusal can be sent before all of the body has come.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > messageBytesMax) return { status: 413, text: 'the message is too long' };
    chunks.push(chunk);
  }
  return checked(Buffer.concat(chunks));
}

function checked(message: Buffer): Uint8Array | Refusal {
  if (message.length >= headerBytes && message.length <= messageBytesMax) return message;
  return { status: 400, text: 'this is no DNS message' };
}

/** What would be met with silence elsewhere. */
const silent: Refusal = { status: 400, text: 'this is no query' };

function refuse(response: ServerResponse, { status, text }: Refusal): void {
  if (response.destroyed) return;
  const body = `${text}\n`;
  const allow = status === 405 ? { allow: 'GET, POST' } : {};
  response.writeHead(status, { 'content-type': 'text/plain', 'content-length': body.length, ...allow });
  response.end(body);
}

function sendMessage(response: ServerResponse, message: Uint8Array): void {
  if (response.destroyed) return;
  response.writeHead(200, {
    'content-type': messageType,
    'content-length': message.length,
    'cache-control': `max-age=${freshSeconds(message)}`,
  });
  response.end(message);
}

/** RFC 8484 section 5.1: no longer than any record of the answer, or than the SOA of a "no". */
function freshSeconds(bytes: Uint8Array): number {
  const message = tryDecodeMessage(bytes);
  const code = message ? message.flags & 15 : rcode.SERVFAIL;
  if (!message || (code !== rcode.NOERROR && code !== rcode.NXDOMAIN)) return 0;
  const { answers, authorities } = message;
  const soa = authorities.filter(({ type }) => type === recordType.SOA);
  const bounds = [
    ...answers.map(({ ttl }) => ttl),
    ...soa.map(({ ttl, rdata }) => Math.min(ttl, Buffer.from(rdata).readUInt32BE(rdata.length - 4))),
  ];
  return bounds.length === 0 ? 0 : Math.min(...bounds);
}

// One HTTP/2 connection with many requests at once. A PING every ten seconds notices a peer that has vanished without a
// word; then everything on the connection fails at once and the next request opens a new one.

import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import type { Socket } from 'node:net';
import type { HttpRequest, HttpResponse } from '../http.ts';
import { ConnectionError } from './connection-error.ts';
import { responseBody } from './response-body.ts';
import { UnprocessedError } from './unprocessed-error.ts';

export interface PingTimes {
  readonly pingEveryMs: number;
  readonly pingAnswerMs: number;
}

/** A dead connection is noticed within the sum of both. */
const defaultPingTimes: PingTimes = { pingEveryMs: 10_000, pingAnswerMs: 15_000 };
/** A caller that gave up sooner had its own reasons. */
const unansweredMs = 500;
const streamWindowBytes = 1024 * 1024;
const connectionWindowBytes = 16 * 1024 * 1024;
/** For a server that does not say how many it takes. */
const streamsMaxDefault = 100;

export interface Http2SessionOptions {
  readonly socket: Socket;
  readonly server: string;
  readonly pingTimes?: PingTimes;
}

export class Http2Session {
  readonly #socket: Socket;
  readonly #server: string;
  readonly #pingTimes: PingTimes;
  readonly #session;
  #openStreams = 0;
  #isReady = false;
  /** A request was given up without an answer, and the peer has been silent since: nothing new goes this way. */
  #isSuspect = false;
  #failure: Error | undefined;
  readonly #stopPings;
  readonly whenReady: Promise<void>;

  constructor({ socket, server, pingTimes = defaultPingTimes }: Http2SessionOptions) {
    this.#socket = socket;
    this.#server = server;
    this.#pingTimes = pingTimes;
    this.#session = connect(this.#server, {
      createConnection: () => this.#socket,
      settings: { enablePush: false, initialWindowSize: streamWindowBytes },
    });
    this.#session.once('connect', () => this.#session.setLocalWindowSize(connectionWindowBytes));
    this.#session.on('error', (error) => {
      this.#failure ??= error;
    });
    this.#stopPings = keepPinging(this.#session, this.#pingTimes, (error) => {
      this.#failure = error;
      this.#session.destroy(error);
    });
    this.#session.once('close', () => {
      this.#stopPings();
      this.#socket.destroy();
    });
    this.whenReady = new Promise<void>((resolve, reject) => {
      this.#session.once('remoteSettings', () => {
        this.#isReady = true;
        resolve();
      });
      this.#session.once('close', () =>
        reject(
          new UnprocessedError(`${this.#server}: the connection closed before it could be used`, {
            cause: this.#failure,
          }),
        ),
      );
    });
  }

  send(request: HttpRequest): Promise<HttpResponse> {
    return new Promise((resolve, reject) => {
      const what = `${request.method} ${this.#server}${request.path}`;
      const stream = openStream(this.#session, request, what);
      this.#openStreams += 1;
      const describe = (cause: unknown) => describeFailure(what, { stream, cause, sessionFailure: this.#failure });
      const sentMs = performance.now();
      let isAnswered = false;
      const onAbort = () => {
        if (!isAnswered && performance.now() - sentMs >= unansweredMs) this.#suspect();
        cancel(stream, request.signal?.reason);
      };
      request.signal?.addEventListener('abort', onAbort, { once: true });
      stream.once('close', () => {
        this.#openStreams -= 1;
        request.signal?.removeEventListener('abort', onAbort);
        if (!isAnswered) reject(describe(new Error('closed without an answer')));
      });
      stream.on('error', (error) => reject(describe(error)));
      stream.once('response', (headers) => {
        isAnswered = true;
        const wasCutOff = () => stream.rstCode !== constants.NGHTTP2_NO_ERROR || stream.aborted;
        resolve({
          status: Number(headers[':status']),
          headers: plainHeaders(headers),
          body: responseBody({ stream, wasCutOff, cancel: () => cancel(stream), describe }),
        });
      });
      if (request.body !== undefined) stream.end(request.body);
    });
  }

  /** Nothing is left of it: one that takes no more requests may still have some under way. */
  isGone(): boolean {
    return this.#session.destroyed && this.#socket.destroyed;
  }

  hasRoom(): boolean {
    return this.#isReady && this.#isOpen() && !this.#isSuspect && this.#openStreams < this.#streamsMax();
  }

  /** Lets requests under way end. */
  retire(): void {
    return this.#session.close();
  }

  destroy(): void {
    this.#session.destroy();
    this.#socket.destroy();
  }

  #streamsMax() {
    return this.#session.remoteSettings.maxConcurrentStreams ?? streamsMaxDefault;
  }

  #isOpen() {
    return !this.#session.closed && !this.#session.destroyed;
  }

  #suspect(): void {
    if (this.#isSuspect || this.#session.destroyed) return;
    this.#isSuspect = true;
    this.#session.ping((error) => {
      if (error === null) this.#isSuspect = false;
    });
  }
}

function openStream(session: ClientHttp2Session, request: HttpRequest, what: string): ClientHttp2Stream {
  try {
    const headers = { ':method': request.method, ':path': request.path, ...request.headers };
    return session.request(headers, { endStream: request.body === undefined });
  } catch (cause) {
    throw new UnprocessedError(`${what}: the connection was closed before the request was sent`, { cause });
  }
}

function cancel(stream: ClientHttp2Stream, reason?: unknown): void {
  if (stream.destroyed) return;
  stream.close(constants.NGHTTP2_CANCEL);
  stream.destroy(reason instanceof Error ? reason : undefined);
}

interface Failure {
  readonly stream: ClientHttp2Stream;
  readonly cause: unknown;
  readonly sessionFailure: Error | undefined;
}

function describeFailure(what: string, { stream, cause, sessionFailure }: Failure): Error {
  if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) {
    return new UnprocessedError(`${what}: the server did not take the request`, { cause });
  }
  return new ConnectionError(what, sessionFailure ?? cause);
}

function keepPinging(session: ClientHttp2Session, times: PingTimes, onDead: (error: Error) => void): () => void {
  const { pingEveryMs, pingAnswerMs } = times;
  let answerTimer: NodeJS.Timeout | undefined;
  const ping = () => {
    if (session.destroyed || answerTimer !== undefined) return;
    answerTimer = setTimeout(
      () => onDead(new Error(`no answer to a PING within ${pingAnswerMs} ms, the connection is dead`)),
      pingAnswerMs,
    );
    session.ping(() => {
      clearTimeout(answerTimer);
      answerTimer = undefined;
    });
  };
  const interval = setInterval(ping, pingEveryMs);
  return () => {
    clearInterval(interval);
    clearTimeout(answerTimer);
  };
}

function plainHeaders(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const plain: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || name.startsWith(':')) continue;
    plain[name] = Array.isArray(value) ? value.join(', ') : String(value);
  }
  return plain;
}

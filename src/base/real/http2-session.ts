// One HTTP/2 connection with many requests at once. A PING every ten seconds notices a peer that has vanished without a
// word; then everything on the connection fails at once and the next request opens a new one.

import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import type { Socket } from 'node:net';
import type { HttpRequest, HttpResponse } from '../http.ts';
import { ConnectionError } from './connection-error.ts';
import { responseBody } from './response-body.ts';
import { UnprocessedError } from './unprocessed-error.ts';

export interface Http2Session {
  send(request: HttpRequest): Promise<HttpResponse>;
  /** Resolves when the server has said how many requests it takes at once; until then there is room for none. */
  readonly whenReady: Promise<void>;
  hasRoom(): boolean;
  /** Nothing is left of it: one that takes no more requests may still have some under way. */
  isGone(): boolean;
  /** Lets requests under way end. */
  retire(): void;
  destroy(): void;
}

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

export function createHttp2Session({
  socket,
  server,
  pingTimes = defaultPingTimes,
}: Http2SessionOptions): Http2Session {
  const session = connect(server, {
    createConnection: () => socket,
    settings: { enablePush: false, initialWindowSize: streamWindowBytes },
  });
  let openStreams = 0;
  let isReady = false;
  /** A request was given up without an answer, and the peer has been silent since: nothing new goes this way. */
  let isSuspect = false;
  let failure: Error | undefined;
  session.once('connect', () => session.setLocalWindowSize(connectionWindowBytes));
  session.on('error', (error) => {
    failure ??= error;
  });
  const stopPings = keepPinging(session, pingTimes, (error) => {
    failure = error;
    session.destroy(error);
  });
  session.once('close', () => {
    stopPings();
    socket.destroy();
  });

  const whenReady = new Promise<void>((resolve, reject) => {
    session.once('remoteSettings', () => {
      isReady = true;
      resolve();
    });
    session.once('close', () =>
      reject(new UnprocessedError(`${server}: the connection closed before it could be used`, { cause: failure })),
    );
  });
  const streamsMax = () => session.remoteSettings.maxConcurrentStreams ?? streamsMaxDefault;
  const isOpen = () => !session.closed && !session.destroyed;

  function suspect(): void {
    if (isSuspect || session.destroyed) return;
    isSuspect = true;
    session.ping((error) => {
      if (error === null) isSuspect = false;
    });
  }

  function send(request: HttpRequest): Promise<HttpResponse> {
    return new Promise((resolve, reject) => {
      const what = `${request.method} ${server}${request.path}`;
      const stream = openStream(session, request, what);
      openStreams += 1;
      const describe = (cause: unknown) => describeFailure(what, { stream, cause, sessionFailure: failure });
      const sentMs = performance.now();
      let isAnswered = false;
      const onAbort = () => {
        if (!isAnswered && performance.now() - sentMs >= unansweredMs) suspect();
        cancel(stream, request.signal?.reason);
      };
      request.signal?.addEventListener('abort', onAbort, { once: true });
      stream.once('close', () => {
        openStreams -= 1;
        request.signal?.removeEventListener('abort', onAbort);
        reject(describe(new Error('closed without an answer')));
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

  return {
    send,
    whenReady,
    isGone: () => session.destroyed && socket.destroyed,
    hasRoom: () => isReady && isOpen() && !isSuspect && openStreams < streamsMax(),
    retire: () => session.close(),
    // The session lets go of its socket at times without closing it, when the server goes away meanwhile.
    destroy: () => {
      session.destroy();
      socket.destroy();
    },
  };
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

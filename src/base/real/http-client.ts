// The real HttpTransport: HTTP/2 where the server speaks it, else HTTP/1.1, as the TLS handshake says. Connections are
// opened when needed, reused, and replaced when they break. A request is sent again by itself only if the server
// certainly did not look at it. Redirects are not followed.

import type { HttpAccess, HttpRequest, HttpResponse, HttpTransport } from '../http.ts';
import { openConnection } from './connect.ts';
import { createHttp1Sender, type Http1Sender } from './http1-sender.ts';
import { createHttp2Session, type Http2Session, type PingTimes } from './http2-session.ts';
import { UnprocessedError } from './unprocessed-error.ts';

type Carrier = Pick<HttpTransport, 'send'>;

const attemptsMax = 3;

export function createHttpClient(access: HttpAccess, options: { pingTimes?: PingTimes } = {}): HttpTransport {
  /** Where the server was at the last connection. */
  let place = access;
  let prefix = prefixOf(access);
  let sessions: Http2Session[] = [];
  let http1: Http1Sender | undefined;
  let opening: Promise<void> | undefined;
  let isClosed = false;

  /** A connection with room for one more request, if one is open. */
  function ready(): Carrier | undefined {
    if (isClosed) throw new Error(`${access.server}: this client was closed`);
    sessions = sessions.filter((session) => !session.isGone());
    return http1 ?? sessions.find((session) => session.hasRoom());
  }

  /** Whoever does not know where it is now asks where it was. */
  async function locate(): Promise<HttpAccess> {
    const server = await access.currentServer?.().catch(() => undefined);
    if (server !== undefined && server !== place.server)
      [place, prefix] = [{ ...access, server }, prefixOf({ server })];
    return place;
  }

  /** Those that ask while a connection is being opened share it. */
  function openShared(): Promise<void> {
    opening ??= open().finally(() => {
      opening = undefined;
    });
    return opening;
  }

  async function open(): Promise<void> {
    const { socket, protocol } = await openConnection(await locate());
    if (isClosed) socket.destroy();
    else if (protocol === 'h2') {
      const session = createHttp2Session({ socket, server: originOf(place), ...options });
      // Until the server's limit of streams is known, a request may have to wait for others to end, and a watch does
      // not end.
      sessions.push(session);
      await session.whenReady;
    } else http1 = createHttp1Sender({ server: originOf(place), first: socket, open: reopen });
  }

  /** Another HTTP/1.1 connection. If there is none to be had, the next request asks anew which protocol to speak. */
  async function reopen() {
    try {
      const { socket, protocol } = await openConnection(place);
      if (protocol !== 'h2') return socket;
      socket.destroy();
      throw new UnprocessedError(`${access.server}: the server now speaks HTTP/2`);
    } catch (error) {
      http1 = undefined;
      throw error;
    }
  }

  async function send(request: HttpRequest): Promise<HttpResponse> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return noticeRefusal(await sendOnce(request));
      } catch (error) {
        if (!(error instanceof UnprocessedError) || attempt >= attemptsMax) throw error;
      }
    }
  }

  async function sendOnce(request: HttpRequest): Promise<HttpResponse> {
    const headers = await withToken(request.headers);
    for (;;) {
      request.signal?.throwIfAborted();
      // Nothing is awaited between choosing a connection and using it: its room cannot be given away twice.
      const carrier = ready();
      if (carrier !== undefined) return carrier.send({ ...request, path: prefix + request.path, headers });
      await unlessAborted(openShared(), request.signal);
    }
  }

  async function withToken(headers: HttpRequest['headers']): Promise<HttpRequest['headers']> {
    const token = await access.bearerToken?.();
    return token === undefined ? headers : { ...headers, authorization: `Bearer ${token}` };
  }

  /** A renewed certificate counts only on a new connection. */
  function noticeRefusal(response: HttpResponse): HttpResponse {
    if (response.status !== 401) return response;
    access.onUnauthorized?.();
    if (access.clientCertificatePair !== undefined) {
      for (const session of sessions) session.retire();
      http1?.retire();
    }
    return response;
  }

  return {
    send,
    close: () => {
      isClosed = true;
      for (const session of sessions) session.destroy();
      http1?.destroy();
    },
  };
}

const originOf = ({ server }: Pick<HttpAccess, 'server'>) => new URL(server).origin;
const prefixOf = ({ server }: Pick<HttpAccess, 'server'>) => new URL(server).pathname.replace(/\/$/, '');

function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

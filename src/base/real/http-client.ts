// The real HttpTransport: HTTP/2 where the server speaks it, else HTTP/1.1, as the TLS handshake says. Connections are
// opened when needed, reused, and replaced when they break. A request is sent again by itself only if the server
// certainly did not look at it. Redirects are not followed. A server with several addresses is left for its next one when it
// is silent, or says that it cannot serve.

import { type HttpAccess, type HttpRequest, type HttpResponse, type HttpTransport, readBody } from '../http.ts';
import { openConnection } from './connect.ts';
import { createHttp1Sender, type Http1Sender } from './http1-sender.ts';
import { createHttp2Session, type Http2Session, type PingTimes } from './http2-session.ts';
import { type PlacedConnection, Places } from './places.ts';
import { UnprocessedError } from './unprocessed-error.ts';

type Carrier = Pick<HttpTransport, 'send'>;

interface PlacedSession {
  readonly place: HttpAccess;
  readonly session: Http2Session;
}

const attemptsMax = 3;
/** Where there is another address to go to. */
const impatientPingTimes: PingTimes = { pingEveryMs: 600, pingAnswerMs: 1_000 };
/** A server that says it is unavailable is asked this seldom whether all of it is. */
const readyLookMs = 1_000;

export function createHttpClient(access: HttpAccess, options: { pingTimes?: PingTimes } = {}): HttpTransport {
  const places = new Places(access);
  let sessions: PlacedSession[] = [];
  let http1: { readonly place: HttpAccess; readonly sender: Http1Sender } | undefined;
  let lookedMs = Number.NEGATIVE_INFINITY;
  let opening: Promise<void> | undefined;
  let isClosed = false;

  /** A connection with room for one more request, if one is open. */
  function ready(): { readonly place: HttpAccess; readonly carrier: Carrier } | undefined {
    if (isClosed) throw new Error(`${access.server}: this client was closed`);
    if (http1 !== undefined) return { place: http1.place, carrier: http1.sender };
    sessions = sessions.filter(({ session }) => !session.isGone());
    const found = sessions.find(({ session }) => session.hasRoom());
    return found && { place: found.place, carrier: found.session };
  }

  /** Those that ask while a connection is being opened share it. */
  function openShared(): Promise<void> {
    opening ??= open().finally(() => {
      opening = undefined;
    });
    return opening;
  }

  async function open(): Promise<void> {
    const opened = await places.connect();
    const { socket, protocol } = opened.connection;
    if (isClosed) socket.destroy();
    else if (protocol === 'h2') await openHttp2(opened);
    else {
      const { place } = opened;
      const sender = createHttp1Sender({ server: originOf(place), first: socket, open: () => reopen(place) });
      http1 = { place, sender };
    }
  }

  async function openHttp2({ place, connection: { socket } }: PlacedConnection): Promise<void> {
    const impatient = places.areSeveral ? { pingTimes: impatientPingTimes } : {};
    const session = createHttp2Session({ socket, server: originOf(place), ...impatient, ...options });
    // Until the server's limit of streams is known, a request may have to wait for others to end, and a watch does
    // not end.
    sessions.push({ place, session });
    await session.whenReady;
  }

  /** Another HTTP/1.1 connection. If there is none to be had, the next request asks anew which protocol to speak. */
  async function reopen(place: HttpAccess) {
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
        return await sendOnce(request);
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
      const found = ready();
      if (found !== undefined) {
        const { place, carrier } = found;
        const response = await carrier.send({ ...request, path: prefixOf(place) + request.path, headers });
        if (response.status === 503 && places.areSeveral) void leaveUnlessReady(place, headers);
        return noticeRefusal(response);
      }
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
      for (const { session } of sessions) session.retire();
      http1?.sender.retire();
    }
    return response;
  }

  /** A server that is there and cut off from what it needs: its watches show nothing any more, so they end too. */
  async function leaveUnlessReady(place: HttpAccess, headers: HttpRequest['headers']): Promise<void> {
    const nowMs = performance.now();
    const held = sessions.filter((one) => one.place.server === place.server);
    const asked = held.find(({ session }) => session.hasRoom());
    if (asked === undefined || nowMs - lookedMs < readyLookMs) return;
    lookedMs = nowMs;
    const request = {
      method: 'GET',
      path: `${prefixOf(place)}/readyz`,
      headers,
      signal: AbortSignal.timeout(readyLookMs),
    };
    const status = await asked.session.send(request).then(statusOf, () => undefined);
    if (status === 200 || isClosed) return;
    places.leave(place.server);
    for (const { session } of held) session.destroy();
  }

  return {
    send,
    close: () => {
      isClosed = true;
      for (const { session } of sessions) session.destroy();
      http1?.sender.destroy();
    },
  };
}

const originOf = ({ server }: Pick<HttpAccess, 'server'>) => new URL(server).origin;
const prefixOf = ({ server }: Pick<HttpAccess, 'server'>) => new URL(server).pathname.replace(/\/$/, '');

async function statusOf(response: HttpResponse): Promise<number> {
  await readBody(response.body);
  return response.status;
}

function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

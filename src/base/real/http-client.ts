// The real HttpTransport: HTTP/2 where the server speaks it, else HTTP/1.1, as the TLS handshake says. Connections are
// opened when needed, reused, and replaced when they break. A request is sent again by itself only if the server
// certainly did not look at it. Redirects are not followed. A server with several addresses is left for its next one when it
// is silent, or says that it cannot serve.

import { type HttpAccess, type HttpRequest, type HttpResponse, type HttpTransport, readBody } from '../http.ts';
import { openConnection } from './connect.ts';
import { createHttp1Sender, type Http1Sender } from './http1-sender.ts';
import { Http2Session, type PingTimes } from './http2-session.ts';
import { type PlacedConnection, Places } from './places.ts';
import { UnprocessedError } from './unprocessed-error.ts';

type Sender = Pick<HttpTransport, 'send'>;

interface PlacedSession {
  readonly place: HttpAccess;
  readonly session: Http2Session;
}

const attemptsMax = 3;
/** Where there is another address to go to. */
const impatientPingTimes: PingTimes = { pingEveryMs: 600, pingAnswerMs: 1_000 };
/** A server that says it is unavailable is asked this seldom whether all of it is. */
const readyLookMs = 1_000;

export class HttpClient implements HttpTransport {
  readonly #access: HttpAccess;
  readonly #options: { pingTimes?: PingTimes };
  readonly #places;
  #sessions: PlacedSession[] = [];
  #http1: { readonly place: HttpAccess; readonly sender: Http1Sender } | undefined;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #opening: Promise<void> | undefined;
  #isClosed = false;

  constructor(access: HttpAccess, options: { pingTimes?: PingTimes } = {}) {
    this.#access = access;
    this.#options = options;
    this.#places = new Places(this.#access);
  }

  async send(request: HttpRequest): Promise<HttpResponse> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#sendOnce(request);
      } catch (error) {
        if (!(error instanceof UnprocessedError) || attempt >= attemptsMax) throw error;
      }
    }
  }

  close() {
    this.#isClosed = true;
    for (const { session } of this.#sessions) session.destroy();
    this.#http1?.sender.destroy();
  }

  /** A connection with room for one more request, if one is open. */
  #ready(): { readonly place: HttpAccess; readonly sender: Sender } | undefined {
    if (this.#isClosed) throw new Error(`${this.#access.server}: this client was closed`);
    if (this.#http1 !== undefined) return { place: this.#http1.place, sender: this.#http1.sender };
    this.#sessions = this.#sessions.filter(({ session }) => !session.isGone());
    const found = this.#sessions.find(({ session }) => session.hasRoom());
    return found && { place: found.place, sender: found.session };
  }

  /** Those that ask while a connection is being opened share it. */
  #openShared(): Promise<void> {
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #open(): Promise<void> {
    const opened = await this.#places.connect();
    const { socket, protocol } = opened.connection;
    if (this.#isClosed) socket.destroy();
    else if (protocol === 'h2') await this.#openHttp2(opened);
    else {
      const { place } = opened;
      const sender = createHttp1Sender({ server: originOf(place), first: socket, open: () => this.#reopen(place) });
      this.#http1 = { place, sender };
    }
  }

  async #openHttp2({ place, connection: { socket } }: PlacedConnection): Promise<void> {
    const impatient = this.#places.areSeveral ? { pingTimes: impatientPingTimes } : {};
    const session = new Http2Session({ socket, server: originOf(place), ...impatient, ...this.#options });
    // Until the server's limit of streams is known, a request may have to wait for others to end, and a watch does
    // not end.
    this.#sessions.push({ place, session });
    await session.whenReady;
  }

  /** Another HTTP/1.1 connection. If there is none to be had, the next request asks anew which protocol to speak. */
  async #reopen(place: HttpAccess) {
    try {
      const { socket, protocol } = await openConnection(place);
      if (protocol !== 'h2') return socket;
      socket.destroy();
      throw new UnprocessedError(`${this.#access.server}: the server now speaks HTTP/2`);
    } catch (error) {
      this.#http1 = undefined;
      throw error;
    }
  }

  async #sendOnce(request: HttpRequest): Promise<HttpResponse> {
    const headers = await this.#withToken(request.headers);
    for (;;) {
      request.signal?.throwIfAborted();
      // Nothing is awaited between choosing a connection and using it: its room cannot be given away twice.
      const found = this.#ready();
      if (found !== undefined) {
        const { place, sender } = found;
        const response = await sender.send({ ...request, path: prefixOf(place) + request.path, headers });
        if (response.status === 503 && this.#places.areSeveral) void this.#leaveUnlessReady(place, headers);
        return this.#noticeRefusal(response);
      }
      await unlessAborted(this.#openShared(), request.signal);
    }
  }

  async #withToken(headers: HttpRequest['headers']): Promise<HttpRequest['headers']> {
    const token = await this.#access.bearerToken?.();
    return token === undefined ? headers : { ...headers, authorization: `Bearer ${token}` };
  }

  /** A renewed certificate counts only on a new connection. */
  #noticeRefusal(response: HttpResponse): HttpResponse {
    if (response.status !== 401) return response;
    this.#access.onUnauthorized?.();
    if (this.#access.clientCertificatePair !== undefined) {
      for (const { session } of this.#sessions) session.retire();
      this.#http1?.sender.retire();
    }
    return response;
  }

  /** A server that is there and cut off from what it needs: its watches show nothing any more, so they end too. */
  async #leaveUnlessReady(place: HttpAccess, headers: HttpRequest['headers']): Promise<void> {
    const nowMs = performance.now();
    const held = this.#sessions.filter((one) => one.place.server === place.server);
    const asked = held.find(({ session }) => session.hasRoom());
    if (asked === undefined || nowMs - this.#lookedMs < readyLookMs) return;
    this.#lookedMs = nowMs;
    const request = {
      method: 'GET',
      path: `${prefixOf(place)}/readyz`,
      headers,
      signal: AbortSignal.timeout(readyLookMs),
    };
    const status = await asked.session.send(request).then(statusOf, () => undefined);
    if (status === 200 || this.#isClosed) return;
    this.#places.leave(place.server);
    for (const { session } of held) session.destroy();
  }
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

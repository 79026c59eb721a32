// Requests over kept-alive HTTP/1.1 connections, for servers that do not speak HTTP/2. One request at a time on each.

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { HttpRequest, HttpResponse } from '../http.ts';
import { ConnectionError } from './connection-error.ts';
import { Agent, request as httpRequest } from './node-http.ts';
import { responseBody } from './response-body.ts';
import { UnprocessedError } from './unprocessed-error.ts';

export interface Http1Sender {
  send(request: HttpRequest): Promise<HttpResponse>;
  /** Uses no connection again that is idle now. */
  retire(): void;
  destroy(): void;
}

export interface Http1SenderOptions {
  readonly server: string;
  /** A connection that is open already, used first. */
  readonly first: Socket;
  readonly open: () => Promise<Socket>;
}

export function createHttp1Sender(options: Http1SenderOptions): Http1Sender {
  const agent = new ConnectionAgent(options);
  const host = new URL(options.server).host;

  function attempt(request: HttpRequest): Promise<HttpResponse> {
    return new Promise((resolve, reject) => {
      const what = `${request.method} ${options.server}${request.path}`;
      const describe = (cause: unknown) => describeFailure(what, cause);
      const { method, path, signal } = request;
      const headers = { host, ...request.headers };
      const outgoing = httpRequest({ agent, method, path, headers, signal });
      outgoing.on('error', (error: NodeJS.ErrnoException) => {
        if (isStaleConnection(request, outgoing.reusedSocket, error)) resolve(attempt(request));
        else reject(describe(signal?.aborted ? signal.reason : error));
      });
      outgoing.once('response', (incoming) => resolve(toResponse(incoming, describe)));
      outgoing.end(request.body);
    });
  }

  return {
    send: attempt,
    retire: () => {
      for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
    },
    destroy: () => agent.destroy(),
  };
}

/** A failed connect explains itself; other failures get the request as context. */
function describeFailure(what: string, cause: unknown): Error {
  if (cause instanceof ConnectionError || cause instanceof UnprocessedError) return cause;
  return new ConnectionError(what, cause);
}

/** An idle connection closed under us just as we used it. Safe to repeat only what changes nothing. */
function isStaleConnection(request: HttpRequest, wasReused: boolean, error: NodeJS.ErrnoException): boolean {
  return wasReused && request.method === 'GET' && error.code === 'ECONNRESET' && !request.signal?.aborted;
}

function toResponse(incoming: IncomingMessage, describe: (cause: unknown) => Error): HttpResponse {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return {
    status: incoming.statusCode ?? 0,
    headers,
    body: responseBody({
      stream: incoming,
      wasCutOff: () => !incoming.complete,
      cancel: () => incoming.destroy(),
      describe,
    }),
  };
}

class ConnectionAgent extends Agent {
  readonly #open: () => Promise<Socket>;
  #first: Socket | undefined;

  constructor(options: Http1SenderOptions) {
    super({ keepAlive: true, maxFreeSockets: 8 });
    this.#open = options.open;
    this.#first = options.first;
  }

  override createConnection(_options: unknown, callback?: (error: Error | null, socket: Socket) => void): undefined {
    const first = this.#first;
    this.#first = undefined;
    const opened = first !== undefined && !first.destroyed ? Promise.resolve(first) : this.#open();
    opened.then(
      (socket) => callback?.(null, socket),
      (error) => callback?.(error, undefined as unknown as Socket),
    );
  }

  override destroy(): void {
    this.#first?.destroy();
    super.destroy();
  }
}

// HTTP/1.1 and HTTP/2 behind one shape: how a request comes in and how its answer goes out.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { Readable, Writable } from 'node:stream';

export interface Transport {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly hasBody: boolean;
  readonly input: Readable;
  readonly output: Writable;
  /** Everything written to `output` in this turn of the event loop leaves in one write. */
  batchThisTurn(): void;
  /** Sends the head of the answer; the body, so long if that is known, is written to `output`. */
  respond(status: number, headers: Readonly<Record<string, string>>, length?: number): void;
  readonly hasResponded: boolean;
  /** Nothing more will be read of this request, however much there is. */
  refuseRest(): void;
  /** The answer does not depend on the rest of the request: it is thrown away as it comes. */
  ignoreRest(): void;
  /** Ends the exchange without a proper end, so that the other side knows that something is missing. */
  cut(why: 'stalled' | 'failed'): void;
  onGone(listener: () => void): void;
}

export function http2Transport(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number): Transport {
  const endsWithHeaders = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
  if (headers.expect === '100-continue') stream.additionalHeaders({ ':status': 100 });
  const refuseRest = () => {
    // RFC 9113 section 8.1: a complete answer, then NO_ERROR, says that the rest of the request is not wanted.
    stream.once('finish', () => stream.close(constants.NGHTTP2_NO_ERROR));
    stream.resume();
  };
  return {
    method: headers[':method'] ?? '',
    path: headers[':path'] ?? '',
    headers: headers as Record<string, string>,
    hasBody: !endsWithHeaders,
    input: stream,
    output: stream,
    batchThisTurn: () => {
      if (stream.writableCorked > 0) return;
      stream.cork();
      process.nextTick(() => stream.uncork());
    },
    respond: (status, head, length) => {
      if (stream.destroyed || stream.headersSent) return;
      stream.respond(
        length === undefined
          ? { ':status': status, ...head }
          : { ':status': status, ...head, 'content-length': length },
      );
    },
    get hasResponded() {
      return stream.headersSent;
    },
    refuseRest,
    ignoreRest: refuseRest,
    cut: (why) => {
      stream.close(why === 'stalled' ? constants.NGHTTP2_ENHANCE_YOUR_CALM : constants.NGHTTP2_INTERNAL_ERROR);
      stream.destroy();
    },
    onGone: (listener) => stream.once('close', listener),
  };
}

export function http1Transport(request: IncomingMessage, response: ServerResponse): Transport {
  const { headers } = request;
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  return {
    method: request.method ?? '',
    path: originPath(request.url ?? ''),
    headers: headers as Record<string, string>,
    hasBody,
    input: request,
    output: response,
    // Node batches by itself. A corked response that ends in the same turn would send its last chunk before its data.
    batchThisTurn: () => {},
    respond: (status, head, length) => {
      if (response.headersSent) return;
      response.writeHead(status, length === undefined ? head : { ...head, 'content-length': length });
    },
    get hasResponded() {
      return response.headersSent;
    },
    refuseRest: () => {
      response.shouldKeepAlive = false;
      response.once('finish', () => request.socket.destroySoon());
      request.resume();
    },
    // Node reads what is left before the next request of the connection; its time for a whole request bounds that.
    ignoreRest: () => {},
    cut: () => request.socket.destroy(),
    onGone: (listener) => response.once('close', listener),
  };
}

/** RFC 9112 section 3.2.2: a server must understand the absolute form too. */
function originPath(target: string): string {
  if (target.startsWith('/')) return target;
  const match = /^https?:\/\/[^/?]*(\/.*)?$/i.exec(target);
  return match === null ? target : (match[1] ?? '/');
}

// Plain JSON requests on the port of a gRPC server. An edge. Routed by their head; the body is read only for a route that
// needs it, and only so many at once, so large and for so long.

import http2 from 'node:http2';
import { errorText, type Log } from '../log.ts';
import type { PlainAnswer, PlainRoute, ServerLimits } from './server-options.ts';

export interface PlainOptions {
  readonly stream: http2.ServerHttp2Stream;
  readonly route: PlainRoute | undefined;
  readonly limits: ServerLimits;
  readonly log: Log;
}

export class PlainRequests {
  #reading = 0;

  async take({ stream, route, limits, log }: PlainOptions): Promise<void> {
    if (route === undefined) return answer(stream, { status: 404, body: '{}' });
    if ('status' in route) return answer(stream, route);
    if (this.#reading >= limits.bodies)
      return answer(stream, { status: 503, body: '{"message":"too many requests are being read; try again"}' });
    this.#reading += 1;
    const tooSlow = setTimeout(() => stream.close(http2.constants.NGHTTP2_CANCEL), limits.bodyMs);
    try {
      const body = await bodyOf(stream, limits.bodyBytes);
      if (body !== undefined) answer(stream, await route.withBody(body));
    } catch (error) {
      log.debug('plain request failed', { error: errorText(error) });
      stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
    } finally {
      clearTimeout(tooSlow);
      this.#reading -= 1;
    }
  }
}

async function bodyOf(stream: http2.ServerHttp2Stream, bytesMax: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bytesMax) {
      stream.close(http2.constants.NGHTTP2_ENHANCE_YOUR_CALM);
      return undefined;
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function answer(stream: http2.ServerHttp2Stream, { status, body }: PlainAnswer): void {
  if (stream.destroyed) return;
  stream.respond({ ':status': status, 'content-type': 'application/json' });
  stream.end(body);
  // The unread rest of a body must not keep the stream open.
  if (!stream.readableEnded) stream.once('finish', () => stream.close(http2.constants.NGHTTP2_NO_ERROR));
}

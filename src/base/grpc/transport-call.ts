// One gRPC call on an HTTP/2 stream, from the server's side: its messages both ways, its status, its end. An edge.

import http2 from 'node:http2';
import { errorText } from '../log.ts';
import { FrameReader, frameOf } from './frames.ts';
import type { CallHandlers, ServerCall } from './server-options.ts';
import { type Code, codes, statusTrailers } from './status.ts';
import { acceptedEncodings, isGzip } from './transport-encodings.ts';

/** How long a caller that keeps its side open may take to read how the call ended. */
const lingerMs = 2000;

export function callOn<Caller>(
  stream: http2.ServerHttp2Stream,
  about: Pick<ServerCall<Caller>, 'path' | 'headers' | 'caller'>,
): ServerCall<Caller> {
  let trailers: Record<string, string> = { 'grpc-status': String(codes.internal) };
  stream.on('wantTrailers', () => {
    stream.sendTrailers(trailers);
    closeSoon(stream);
  });
  return {
    ...about,
    sendHeaders(extra) {
      if (stream.headersSent || stream.destroyed) return;
      stream.respond(
        { ':status': 200, 'content-type': 'application/grpc', ...acceptedEncodings, ...extra },
        { waitForTrailers: true },
      );
    },
    send(message) {
      if (stream.destroyed || stream.writableEnded) return true;
      this.sendHeaders({});
      return stream.write(frameOf(message));
    },
    get unsentBytes() {
      return stream.writableLength;
    },
    pause: () => void stream.pause(),
    resume: () => void stream.resume(),
    end(code, reason) {
      if (stream.destroyed || stream.writableEnded) return;
      this.sendHeaders({});
      trailers = statusTrailers(code, reason);
      stream.end();
    },
  };
}

export function readMessages<Caller>(
  stream: http2.ServerHttp2Stream,
  { call, handlers, messageBytesMax }: { call: ServerCall<Caller>; handlers: CallHandlers; messageBytesMax: number },
): void {
  const reader = new FrameReader({ messageBytesMax, isGzip: () => isGzip(call.headers) });
  stream.on('data', (chunk: Buffer) => {
    if (stream.writableEnded) return;
    try {
      for (const message of reader.read(chunk)) handlers.onMessage(message);
    } catch (error) {
      call.end(codes.invalidArgument, errorText(error));
    }
  });
  stream.on('drain', () => handlers.onDrain());
  // A caller that half-closes is done.
  stream.on('end', () => call.end(codes.ok, ''));
}

/** Ends a call that nothing was read of. */
export function refuseCall(stream: http2.ServerHttp2Stream, code: Code, reason: string): void {
  if (stream.destroyed) return;
  stream.respond(
    { ':status': 200, 'content-type': 'application/grpc', ...statusTrailers(code, reason) },
    { endStream: true },
  );
  closeSoon(stream);
}

function closeSoon(stream: http2.ServerHttp2Stream): void {
  setTimeout(() => stream.close(http2.constants.NGHTTP2_NO_ERROR), lingerMs).unref();
}

// One endpoint of etcd: unary gRPC calls that share an HTTP/2 connection, made anew after it breaks. An edge.

import http2 from 'node:http2';
import { FrameReader, frameOf } from '../../../base/grpc/frames.ts';
import { type Code, codeOfFailure, codes, statusIn } from '../../../base/grpc/status.ts';
import { keepAlive } from '../../../base/grpc/transport-keep-alive.ts';
import { errorText } from '../../../base/log.ts';
import { type EtcdCall, type EtcdEndpoint, EtcdError } from './client.ts';

export interface EndpointOptions {
  /** `https://10.0.0.1:2379` */
  readonly url: string;
  /** PEM; the authorities of the system if absent. */
  readonly ca?: string | undefined;
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
}

/** A page of rows, each of at most 1.5 MB, with room. */
const answerBytesMax = 512 * 1024 * 1024;
const windowBytes = 8 << 20;
/** etcd ends connections that ask more often than every 5 s. */
const keepAliveOptions = { intervalMs: 10_000, answerMsMax: 3_000 };

export function etcdEndpoint(options: EndpointOptions): EtcdEndpoint {
  let session: http2.ClientHttp2Session | undefined;
  const connected = () => {
    if (session === undefined || session.destroyed || session.closed) session = connect(options);
    return session;
  };
  const drop = (reason?: Error) => {
    session?.destroy(reason);
    session = undefined;
  };
  return { url: options.url, call: (call) => send(options.url, connected(), call, drop), close: () => drop() };
}

function connect({ url, ca, certificate, key }: EndpointOptions): http2.ClientHttp2Session {
  const session = http2.connect(url, {
    ...(ca === undefined ? {} : { ca }),
    ...(certificate === undefined ? {} : { cert: certificate, key }),
    minVersion: 'TLSv1.2',
    settings: { initialWindowSize: windowBytes },
  });
  // Each call on it listens for the same error; there may be none, or very many.
  session.on('error', () => {});
  session.setMaxListeners(0);
  session.on('connect', () => {
    if (session.destroyed) return;
    session.setLocalWindowSize(windowBytes);
    keepAlive(session, keepAliveOptions);
  });
  return session;
}

function send(
  url: string,
  session: http2.ClientHttp2Session,
  call: EtcdCall,
  drop: (reason: Error) => void,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let isDone = false;
    const finish = (settle: () => void) => {
      if (isDone) return;
      isDone = true;
      clearTimeout(timer);
      session.off('error', onSessionError);
      settle();
    };
    const fail = (code: Code, reason: string) => finish(() => reject(new EtcdError(code, `etcd ${url}: ${reason}`)));
    const onSessionError = (error: Error) => fail(codeOfFailure(error), errorText(error));
    session.on('error', onSessionError);
    // The connection goes with it, and so do the calls beside it: a member that is frozen answers nothing on it.
    const timer = setTimeout(() => {
      const reason = `no answer within ${call.withinMs} ms`;
      fail(codes.deadlineExceeded, reason);
      drop(new Error(`another call on the connection got ${reason}`));
    }, call.withinMs);
    const stream = session.request({
      ':method': 'POST',
      ':path': call.path,
      'content-type': 'application/grpc',
      te: 'trailers',
      // Without it a member that lost its leader waits, and says nothing.
      hasleader: 'true',
      ...(call.token === undefined ? {} : { token: call.token }),
    });
    const reader = new FrameReader({ messageBytesMax: answerBytesMax });
    let answer: Buffer | undefined;
    const take = (headers: http2.IncomingHttpHeaders) => {
      const status = statusIn(headers);
      if (status === undefined) return;
      if (status.code !== codes.ok) fail(status.code, status.reason || `code ${status.code}`);
      else if (answer === undefined) fail(codes.internal, 'the answer is empty');
      else finish(() => resolve(answer!));
    };
    stream.on('response', (headers) => {
      if (headers[':status'] !== 200) fail(codes.unavailable, `answered with HTTP ${headers[':status']}, not gRPC`);
      take(headers);
    });
    stream.on('trailers', take);
    stream.on('data', (chunk: Buffer) => {
      try {
        for (const message of reader.read(chunk)) answer ??= message;
      } catch (error) {
        fail(codes.internal, errorText(error));
      }
    });
    stream.on('error', (error) => fail(codeOfFailure(error), errorText(error)));
    stream.on('close', () => setImmediate(() => fail(codes.unavailable, 'the call ended without an answer')));
    stream.end(frameOf(call.message));
  });
}

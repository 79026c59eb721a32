// gRPC as a consumer calls it: one HTTP/2 connection to an owner, one bidirectional stream on it. An edge. Never
// stops reading in order to write; stops reading only on request, while received messages are being stored.

import type { X509Certificate } from 'node:crypto';
import http2 from 'node:http2';
import type { PeerCertificate } from 'node:tls';
import { errorText } from '../log.ts';
import { FrameReader, frameOf } from './frames.ts';
import { type Code, codeOfFailure, codes, statusIn } from './status.ts';
import { presentedOn } from './transport-certificates.ts';
import { acceptedEncodings, isGzip } from './transport-encodings.ts';
import { keepAlive } from './transport-keep-alive.ts';

export interface DialOptions {
  /** `https://150.214.141.1:8008` or with an FQDN. */
  readonly address: string;
  readonly serverName?: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly certificate: string;
  readonly key: string;
  /** This owner's roots only. */
  readonly roots: readonly string[];
  /** Whether the owner may have this SPIFFE identity. */
  readonly isExpected: (identity: string) => boolean;
  readonly messageBytesMax: number;
  readonly connectMsMax: number;
  readonly keepAliveMs: number;
  /** Time for the answer to a keep-alive; until the next one if absent. */
  readonly answerMsMax?: number;
}

export interface ClientHandlers {
  /** The owner's initial metadata came. */
  onOpened(headers: Readonly<Record<string, string | string[] | undefined>>): void;
  onMessage(message: Buffer): void;
  /** A message was too large to be read; this is how it began. */
  onOversized(oversized: { readonly length: number; readonly beginning: Buffer }): void;
  /** Buffered data was sent, after a write had returned false. */
  onDrain?(): void;
  /** Any sign of life: a message, or an answer to keep-alive. */
  onAlive(): void;
  /** Called once, whatever ended the call. */
  onClosed(code: Code, reason: string, cause?: CloseCause): void;
}

/** The server found that we ask too often for a sign of life. */
export type CloseCause = 'tooManyPings';

export interface ClientCall {
  send(message: Uint8Array): void;
  /** Bytes that the owner has not taken from us yet. */
  readonly unsentBytes: number;
  pause(): void;
  resume(): void;
  /** The owner's certificate and its issuers; empty before the connection is made. */
  presented?(): readonly X509Certificate[];
  /** Asks for a sign of life, beside the regular ones. */
  probe?(): void;
  /** Deregisters: ends our side, and with it the call. */
  cancel(code?: Code, reason?: string): void;
}

export type Dial = (options: DialOptions, handlers: ClientHandlers) => ClientCall;

/** Bytes that the owner may have in flight to us. */
const windowBytes = 1 << 20;
/** How long the reason of a failure may come after the failure. */
const causeDelayMs = 50;

type Finish = (code: Code, reason: string, cause?: CloseCause) => void;

export const dial: Dial = (options, handlers) => {
  const session = http2.connect(options.address, {
    cert: options.certificate,
    key: options.key,
    ca: [...options.roots],
    minVersion: 'TLSv1.2',
    servername: options.serverName,
    // The identity is the SPIFFE one; an address behind a balancer says nothing about who answers.
    checkServerIdentity: (_host, certificate) => wrongIdentity(certificate, options.isExpected),
    settings: { initialWindowSize: windowBytes },
  });
  let isFinished = false;
  const finish: Finish = (code, reason, cause) => {
    if (isFinished) return;
    isFinished = true;
    clearTimeout(connecting);
    session.destroy();
    handlers.onClosed(code, reason, cause);
  };
  // gRPC's servers answer so to a client that pings more often than they allow.
  session.on('goaway', (code, _lastStream, data) => {
    const isAboutPings = code === http2.constants.NGHTTP2_ENHANCE_YOUR_CALM && String(data).includes('too_many_pings');
    if (isAboutPings) finish(codes.unavailable, `${options.address} allows fewer keep-alive pings`, 'tooManyPings');
  });
  const connecting = setTimeout(
    () => finish(codes.unavailable, `${options.address} did not answer in ${options.connectMsMax} ms`),
    options.connectMsMax,
  );
  const onAlive = () => {
    if (!isFinished) handlers.onAlive();
  };
  session.on('connect', () => {
    clearTimeout(connecting);
    // Node announces a connection a moment after it is made; the call may have been cancelled meanwhile.
    if (session.destroyed) return;
    // The stream's window alone is not enough: the connection has one of its own, of 64 KB, which over a long
    // distance is used up long before the owner receives our updates.
    session.setLocalWindowSize(windowBytes);
    keepAlive(session, { intervalMs: options.keepAliveMs, answerMsMax: options.answerMsMax, onAlive });
    onAlive();
  });
  session.on('error', (error) => finish(codeOfFailure(error), `${options.address}: ${errorText(error)}`));
  session.on('close', () =>
    setTimeout(() => finish(codes.unavailable, `${options.address} closed the connection`), causeDelayMs),
  );
  const stream = session.request({
    ':method': 'POST',
    ':path': options.path,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...acceptedEncodings,
    ...options.headers,
  });
  listen(stream, { options, handlers, finish, isFinished: () => isFinished });
  return callOn(stream, finish, onAlive);
};

function callOn(stream: http2.ClientHttp2Stream, finish: Finish, onAlive: () => void): ClientCall {
  return {
    send: (message) => {
      if (!stream.destroyed && !stream.writableEnded) stream.write(frameOf(message));
    },
    get unsentBytes() {
      return stream.writableLength;
    },
    pause: () => void stream.pause(),
    resume: () => void stream.resume(),
    presented: () => presentedOn(stream.session?.socket),
    probe: () => {
      const { session } = stream;
      if (session && !session.destroyed) session.ping((error) => !error && onAlive());
    },
    cancel: (code = codes.cancelled, reason = 'cancelled by us') => {
      stream.close(http2.constants.NGHTTP2_CANCEL);
      finish(code, reason);
    },
  };
}

interface Listening {
  readonly options: DialOptions;
  readonly handlers: ClientHandlers;
  readonly finish: Finish;
  readonly isFinished: () => boolean;
}

function listen(stream: http2.ClientHttp2Stream, { options, handlers, finish, isFinished }: Listening): void {
  const { address, messageBytesMax } = options;
  let isCompressed = false;
  const reader = new FrameReader({
    messageBytesMax,
    isGzip: () => isCompressed,
    onOversized: (oversized) => handlers.onOversized(oversized),
  });
  const takeStatus = (headers: http2.IncomingHttpHeaders) => {
    const status = statusIn(headers);
    if (status !== undefined) finish(status.code, status.reason || `${address} ended the call`);
    return status !== undefined;
  };
  stream.on('response', (headers) => {
    isCompressed = isGzip(headers);
    if (headers[':status'] !== 200)
      return finish(codes.unavailable, `${address} answered with HTTP ${headers[':status']}, not gRPC`);
    if (!takeStatus(headers) && !isFinished()) handlers.onOpened(headers);
  });
  stream.on('trailers', takeStatus);
  stream.on('data', (chunk: Buffer) => {
    if (isFinished()) return;
    handlers.onAlive();
    try {
      for (const message of reader.read(chunk)) if (!isFinished()) handlers.onMessage(message);
    } catch (error) {
      finish(codes.invalidArgument, `${address}: ${errorText(error)}`);
    }
  });
  stream.on('drain', () => handlers.onDrain?.());
  // When the connection failed, either its own error or the stream's says why, in either order; the other says nothing.
  const finishSoon = (reason: string) => setTimeout(() => finish(codes.unavailable, reason), causeDelayMs).unref();
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code?.startsWith('ERR_HTTP2_')) finishSoon(`${address}: ${errorText(error)}`);
    else finish(codeOfFailure(error), `${address}: ${errorText(error)}`);
  });
  stream.on('close', () => finishSoon(`${address} ended the stream without a status`));
}

function wrongIdentity(certificate: PeerCertificate, isExpected: (identity: string) => boolean): Error | undefined {
  const names = (certificate.subjectaltname ?? '').split(', ').filter((name) => name.startsWith('URI:spiffe://'));
  const isNamed = names.length === 1 && isExpected((names[0] as string).slice('URI:'.length));
  if (isNamed && !certificate.ca) return undefined;
  const reason = isNamed ? 'shows the certificate of an authority' : 'is not expected';
  return Object.assign(new Error(`the owner is ${names.join(', ') || 'without an identity'}, which ${reason}`), {
    code: 'ERR_PEER_IDENTITY',
  });
}

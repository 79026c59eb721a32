// gRPC as a consumer calls it: one HTTP/2 connection to an owner, one bidirectional stream on it. An edge.

import http2 from 'node:http2';
import type { PeerCertificate } from 'node:tls';
import { errorText } from '../base/log.ts';
import { FrameReader, frameOf } from './frames.ts';
import { type Code, codes } from './messages.ts';
import { keepAlive } from './transport-server.ts';

export interface DialOptions {
  /** `https://150.214.141.1:8008` or with an FQDN. */
  readonly address: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly certificate: string;
  readonly key: string;
  /** This owner's roots and nobody else's. */
  readonly roots: readonly string[];
  /** The SPIFFE identity the owner must present. */
  readonly identity: string;
  readonly messageBytesMax: number;
  readonly connectMsMax: number;
  readonly keepAliveMs: number;
}

export interface ClientHandlers {
  /** The owner's initial metadata came. */
  onOpened(headers: http2.IncomingHttpHeaders): void;
  onMessage(message: Buffer): void;
  /** Any sign of life: a message, or an answer to keep-alive. */
  onAlive(): void;
  /** Called once, whatever ended the call. */
  onClosed(code: Code, reason: string): void;
}

export interface ClientCall {
  send(message: Uint8Array): void;
  /** Deregisters: ends our side, and with it the call. */
  cancel(): void;
}

export function dial(options: DialOptions, handlers: ClientHandlers): ClientCall {
  const session = http2.connect(options.address, {
    cert: options.certificate,
    key: options.key,
    ca: [...options.roots],
    minVersion: 'TLSv1.2',
    // The identity is the SPIFFE one; an address behind a balancer says nothing about who answers.
    checkServerIdentity: (_host, certificate) => wrongIdentity(certificate, options.identity),
    settings: { initialWindowSize: 1 << 20 },
  });
  let outcome: { code: Code; reason: string } | undefined;
  const finish = (code: Code, reason: string) => {
    if (outcome !== undefined) return;
    outcome = { code, reason };
    clearTimeout(connecting);
    session.destroy();
    handlers.onClosed(code, reason);
  };
  const connecting = setTimeout(
    () => finish(codes.unavailable, `${options.address} did not answer in ${options.connectMsMax} ms`),
    options.connectMsMax,
  );
  session.on('connect', () => {
    clearTimeout(connecting);
    keepAlive(session, options.keepAliveMs, handlers.onAlive);
  });
  session.on('error', (error) => finish(codeOfFailure(error), `${options.address}: ${errorText(error)}`));
  session.on('close', () => finish(codes.unavailable, `${options.address} closed the connection`));
  const stream = session.request({
    ':method': 'POST',
    ':path': options.path,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...options.headers,
  });
  listen(stream, options, handlers, finish);
  return {
    send: (message) => {
      if (!stream.destroyed && !stream.writableEnded) stream.write(frameOf(message));
    },
    cancel: () => {
      stream.close(http2.constants.NGHTTP2_CANCEL);
      finish(codes.cancelled, 'cancelled by us');
    },
  };
}

function listen(
  stream: http2.ClientHttp2Stream,
  options: DialOptions,
  handlers: ClientHandlers,
  finish: (code: Code, reason: string) => void,
): void {
  const reader = new FrameReader(options.messageBytesMax);
  const takeStatus = (headers: http2.IncomingHttpHeaders) => {
    if (headers['grpc-status'] === undefined) return;
    finish(Number(headers['grpc-status']) as Code, decodeMessage(String(headers['grpc-message'] ?? '')));
  };
  stream.on('response', (headers) => {
    if (headers[':status'] !== 200)
      return finish(codes.unavailable, `${options.address} answered with HTTP ${headers[':status']}, not gRPC`);
    if (headers['grpc-status'] !== undefined) return takeStatus(headers);
    handlers.onOpened(headers);
  });
  stream.on('trailers', takeStatus);
  stream.on('data', (chunk: Buffer) => {
    handlers.onAlive();
    try {
      for (const message of reader.read(chunk)) handlers.onMessage(message);
    } catch (error) {
      finish(codes.invalidArgument, `${options.address}: ${errorText(error)}`);
    }
  });
  stream.on('error', (error) => finish(codeOfFailure(error), `${options.address}: ${errorText(error)}`));
  stream.on('close', () => finish(codes.unavailable, `${options.address} ended the stream without a status`));
}

function wrongIdentity(certificate: PeerCertificate, expected: string): Error | undefined {
  const names = (certificate.subjectaltname ?? '').split(', ');
  if (names.includes(`URI:${expected}`)) return undefined;
  return Object.assign(new Error(`the owner is ${names.join(', ') || 'nameless'}, expected ${expected}`), {
    code: 'ERR_PEER_IDENTITY',
  });
}

// What TLS says of certificates is a matter of configuration: retrying would not help.
function codeOfFailure(error: Error): Code {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  const isCertificate = /CERT|ERR_PEER_IDENTITY|UNABLE_TO_VERIFY|SELF_SIGNED|TLS_ALERT|SSL_ALERT|ERR_SSL_.*ALERT/.test(
    code,
  );
  return isCertificate ? codes.unauthenticated : codes.unavailable;
}

function decodeMessage(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

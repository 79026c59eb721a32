// The parts that a gRPC server is built from: how a caller is judged, what answers a stream, and what is bounded.

import type { X509Certificate } from 'node:crypto';
import type { Log } from '../log.ts';
import type { Code } from './status.ts';

/** The decision about a connection, from the certificates that it presented. */
export type Verdict<Caller> = { readonly kind: 'trusted'; readonly caller: Caller } | Refusal;

export interface Refusal {
  readonly kind: 'refused';
  /** Unauthenticated, or Unavailable if the same caller may be served later. */
  readonly code: Code;
  readonly reason: string;
  /** The known caller that it claims to be, if any. */
  readonly claimed?: string;
}

export interface RefusedCaller extends Refusal {
  /** Its address. */
  readonly from: string;
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** One call, as the code that answers it sees it. */
export interface ServerCall<Caller> {
  readonly path: string;
  readonly headers: Headers;
  readonly caller: Caller;
  sendHeaders(headers: Readonly<Record<string, string>>): void;
  /** False when the other side is slower than we are: wait for `onDrain`. */
  send(message: Uint8Array): boolean;
  /** Bytes that the caller has not taken from us yet. */
  readonly unsentBytes: number;
  /** Stops reading from the caller until `resume`. */
  pause(): void;
  resume(): void;
  end(code: Code, reason: string): void;
}

export interface CallHandlers {
  onMessage(message: Buffer): void;
  onDrain(): void;
  /** The caller answered keep-alive. */
  onAlive?(): void;
  /** Called once: the caller left, or the connection broke. */
  onClosed(): void;
}

export interface PlainRequest<Caller> {
  readonly path: string;
  readonly verdict: Verdict<Caller>;
  /** The caller's address. */
  readonly from: string;
}

export interface PlainAnswer {
  readonly status: number;
  readonly body: string;
}

/** Decided from the head of a request: an answer at once, or one that needs the body. */
export type PlainRoute = PlainAnswer | { readonly withBody: (body: Buffer) => Promise<PlainAnswer> };

/** Bounds on what callers can make us hold. */
export interface ServerLimits {
  readonly connections: number;
  /** Connections whose TLS handshake is not over; the oldest is closed for a new one. */
  readonly handshakes: number;
  /** Connections of one caller; the oldest without a call is closed for a new one. */
  readonly connectionsPerCaller: number;
  /** Connections whose caller is refused, and how long each may stay. */
  readonly strangers: number;
  readonly strangerMs: number;
  readonly streamsPerConnection: number;
  /** Plain requests whose body is being read, how long one may take, and how large it may be. */
  readonly bodies: number;
  readonly bodyMs: number;
  readonly bodyBytes: number;
}

export const serverLimits: ServerLimits = {
  connections: 4096,
  handshakes: 256,
  connectionsPerCaller: 1024,
  strangers: 64,
  strangerMs: 10_000,
  streamsPerConnection: 16,
  bodies: 16,
  bodyMs: 10_000,
  bodyBytes: 256 * 1024,
};

export interface GrpcServerOptions<Caller> {
  readonly host: string;
  readonly port: number;
  /** A unix socket to listen on in place of host and port, for callers on the same machine. */
  readonly socketPath?: string;
  /** Permissions of that socket, from its first moment on. */
  readonly socketMode?: number;
  /** Without it HTTP/2 is spoken in the clear, and `judge` gets no certificates. */
  readonly tls?: { readonly certificate: string; readonly key: string };
  /** Asked for each new connection, and again when trust changed. */
  readonly judge: (presented: readonly X509Certificate[]) => Verdict<Caller>;
  /** Equal for connections of the same caller. */
  readonly callerKey: (caller: Caller) => string;
  /** Undefined for a method that is not served. */
  readonly accept: (call: ServerCall<Caller>) => CallHandlers | undefined;
  /** Called for each call that is refused. */
  readonly onRefused?: (caller: RefusedCaller) => void;
  /** How often callers are judged again, because certificates expire. */
  readonly judgeMs?: number;
  /** Requests that are not gRPC; undefined for a path that is not served. */
  readonly route?: (request: PlainRequest<Caller>) => PlainRoute | undefined;
  readonly messageBytesMax: number;
  readonly keepAliveMs: number;
  readonly limits?: Partial<ServerLimits>;
  readonly log: Log;
}

export interface GrpcServer {
  readonly port: number;
  /** New connections use these; open streams go on. */
  setCertificate(certificate: string, key: string): void;
  /** Judges all connections again. Ends the calls of callers that are no longer trusted. */
  trustChanged(): void;
  close(): Promise<void>;
}

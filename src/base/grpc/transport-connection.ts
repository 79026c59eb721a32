// One connection to a gRPC server: who it is, the calls open on it, and how long a refused caller may keep it. An edge.

import type { X509Certificate } from 'node:crypto';
import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { CallHandlers, GrpcServerOptions, ServerCall, ServerLimits, Verdict } from './server-options.ts';
import { codes } from './status.ts';
import { presentedOn } from './transport-certificates.ts';

export interface OpenCall<Caller> {
  readonly call: ServerCall<Caller>;
  readonly handlers: CallHandlers;
}

/** The bytes that a trusted caller may have on their way to us, on one stream and on the connection. */
export const windowBytes = 1 << 20;

export interface ConnectionParts<Caller> {
  readonly session: ServerHttp2Session;
  /** The TCP connection below TLS. */
  readonly socket: Socket | undefined;
  readonly options: GrpcServerOptions<Caller>;
  readonly limits: ServerLimits;
}

export class Connection<Caller> {
  readonly session: ServerHttp2Session;
  readonly from: string;
  readonly calls = new Set<OpenCall<Caller>>();
  readonly #options: GrpcServerOptions<Caller>;
  readonly #presented: readonly X509Certificate[];
  readonly #strangerMs: number;
  #verdict: Verdict<Caller>;
  #leaving: NodeJS.Timeout | undefined;
  #hasWideWindow = false;
  readonly #socket: Socket | undefined;

  constructor({ session, socket, options, limits }: ConnectionParts<Caller>) {
    this.session = session;
    this.#socket = socket;
    this.#options = options;
    this.#strangerMs = limits.strangerMs;
    this.from = session.socket.remoteAddress ?? '';
    this.#presented = presentedOn(session.socket);
    this.#verdict = options.judge(this.#presented);
    this.#follow();
    session.on('close', () => clearTimeout(this.#leaving));
  }

  /** The key of its caller; undefined for a refused one. */
  get callerKey(): string | undefined {
    return this.#verdict.kind === 'trusted' ? this.#options.callerKey(this.#verdict.caller) : undefined;
  }

  /** A caller that could not be served is judged again for each call: the reason may be over. */
  verdict(): Verdict<Caller> {
    if (this.#verdict.kind === 'refused' && this.#verdict.code === codes.unavailable) this.judgeAgain();
    return this.#verdict;
  }

  judgeAgain(): void {
    const before = this.callerKey;
    this.#verdict = this.#options.judge(this.#presented);
    this.#follow();
    if (this.#verdict.kind === 'refused') return this.#endCalls(this.#verdict.code, this.#verdict.reason);
    const now = this.callerKey;
    if (before !== undefined && before !== now)
      this.#endCalls(codes.unavailable, `this certificate now stands for ${now}`);
  }

  // Destroying the session alone says goodbye and waits for the other side to hang up, which may never do so.
  destroy(): void {
    this.session.destroy();
    this.#socket?.destroy();
  }

  #endCalls(code: ServerCallCode, reason: string): void {
    for (const { call } of [...this.calls]) call.end(code, reason);
  }

  // Only a trusted caller gets a wide window: HTTP/2's own default bounds what a stranger can make us hold to 64 KB.
  #follow(): void {
    if (this.#verdict.kind === 'trusted') {
      clearTimeout(this.#leaving);
      this.#leaving = undefined;
      if (!this.#hasWideWindow && !this.session.destroyed) this.session.setLocalWindowSize(windowBytes);
      this.#hasWideWindow = true;
    } else {
      this.#leaving ??= setTimeout(() => this.destroy(), this.#strangerMs).unref();
    }
  }
}

type ServerCallCode = Parameters<ServerCall<unknown>['end']>[0];

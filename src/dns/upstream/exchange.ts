// How a question reaches another server and its reply comes back. The socket side is transport.ts; tests have their own.

import type { ServerAddress, TlsClient } from '../config/config.ts';

export interface ExchangeOptions {
  readonly server: ServerAddress;
  /** A whole query; its id is set by the transport, which must choose an unpredictable one. */
  readonly message: Uint8Array;
  readonly timeoutMs: number;
  readonly isTcp: boolean;
  /** Over TLS in any case, and as this client. */
  readonly tls?: TlsClient;
}

/** The same way to other servers, but over TLS. */
export function overTls(exchange: Exchange, tls: TlsClient): Exchange {
  return { ask: (options) => exchange.ask({ ...options, tls }), close: () => exchange.close() };
}

/** Takes a reply that is its own to keep, or undefined if there is none. */
export type TakeReply = (reply: Uint8Array | undefined) => void;

export interface Exchange {
  /** The reply that fits the question: same id, same question to the letter, from the server asked. Rejects after the time. */
  ask(options: ExchangeOptions): Promise<Uint8Array>;
  /** The same over UDP without a promise, for forwarded queries. The message is the exchange's from now on. */
  send?(options: ExchangeOptions, done: TakeReply): void;
  close(): void;
}

/** By the quick way if the exchange has it and it is right for the server. */
export function sendBy(exchange: Exchange, options: ExchangeOptions, done: TakeReply): void {
  if (exchange.send && !options.isTcp && options.server.tls === undefined) exchange.send(options, done);
  else exchange.ask(options).then(done, () => done(undefined));
}

// Streams of the later draft that peers opened to us, as a way to take from them: on such a stream both sides may publish
// and subscribe. To a link it looks like a call that it dialed, except that it cannot be had before the peer comes.

import type { ServerCall } from '../../base/grpc/server-options.ts';
import { codes } from '../../base/grpc/status.ts';
import type { ClientCall, ClientHandlers, Dial } from '../../base/grpc/transport-client.ts';
import type { Timers } from '../../base/world.ts';
import type { PeerCaller } from '../trust/trust.ts';
import { snapshotHeader } from './wire.ts';

interface Incoming {
  readonly call: ServerCall<PeerCaller>;
  /** The consumer on this stream; undefined if there is none. */
  handlers: ClientHandlers | undefined;
}

export interface IncomingStreamsOptions {
  readonly timers: Timers;
  /** The peer opened a stream on which can be taken from it. */
  readonly onOpened: (peer: string) => void;
}

export class IncomingStreams {
  readonly #options: IncomingStreamsOptions;
  readonly #streams = new Map<string, Incoming>();

  constructor(options: IncomingStreamsOptions) {
    this.#options = options;
  }

  opened(call: ServerCall<PeerCaller>): void {
    const { peer } = call.caller;
    this.#streams.get(peer)?.handlers?.onClosed(codes.unavailable, 'the peer opened another stream');
    this.#streams.set(peer, { call, handlers: undefined });
    this.#options.onOpened(peer);
  }

  alive(call: ServerCall<PeerCaller>): void {
    this.#of(call)?.handlers?.onAlive();
  }

  /** False if we do not consume from this peer. */
  message(call: ServerCall<PeerCaller>, bytes: Buffer): boolean {
    const handlers = this.#of(call)?.handlers;
    if (handlers === undefined) return false;
    handlers.onAlive();
    handlers.onMessage(bytes);
    return true;
  }

  closed(call: ServerCall<PeerCaller>): void {
    const incoming = this.#of(call);
    if (incoming === undefined) return;
    this.#streams.delete(call.caller.peer);
    incoming.handlers?.onClosed(codes.unavailable, 'the peer closed its stream');
  }

  /** In place of dialing the peer. */
  dialTo(peer: string): Dial {
    return (_options, handlers) => {
      const incoming = this.#streams.get(peer);
      if (incoming !== undefined) incoming.handlers = handlers;
      this.#options.timers.after(0, () => {
        if (incoming === undefined) return handlers.onClosed(codes.unavailable, 'the peer has no stream to us');
        if (incoming.handlers !== handlers) return;
        handlers.onAlive();
        // A client that asks for the end of a snapshot to be marked can mark it itself.
        handlers.onOpened({ [snapshotHeader]: incoming.call.headers[snapshotHeader] });
      });
      return callOn(incoming, handlers);
    };
  }

  #of(call: ServerCall<PeerCaller>): Incoming | undefined {
    const incoming = this.#streams.get(call.caller.peer);
    return incoming?.call === call ? incoming : undefined;
  }
}

// Only our subscription ends: the peer's subscription on the same stream continues.
function callOn(incoming: Incoming | undefined, handlers: ClientHandlers): ClientCall {
  return {
    send: (message) => void incoming?.call.send(message),
    get unsentBytes() {
      return incoming?.call.unsentBytes ?? 0;
    },
    pause: () => incoming?.call.pause(),
    resume: () => incoming?.call.resume(),
    cancel: (code = codes.cancelled, reason = 'cancelled by us') => {
      if (incoming?.handlers !== handlers) return;
      incoming.handlers = undefined;
      incoming.call.resume();
      handlers.onClosed(code, reason);
    },
  };
}

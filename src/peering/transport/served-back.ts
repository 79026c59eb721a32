// A stream that we opened to an owner, as a way to serve it: on a stream of the later draft it may subscribe to us, too.
// To the owner's side of ours it looks like a call that the peer made.

import type { CallHandlers, ServerCall } from '../../base/grpc/server-options.ts';
import type { ClientCall } from '../../base/grpc/transport-client.ts';
import { identitiesOf, type PeerCaller } from '../trust/trust.ts';

export type ServeBack = (call: ServerCall<PeerCaller>) => CallHandlers | undefined;

export interface ServedBackOptions {
  readonly peer: string;
  readonly path: string;
  readonly call: ClientCall;
  /** The owner's initial metadata. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly serve: ServeBack;
}

/** As an HTTP/2 stream buffers before it says that it is full. */
const highWaterBytes = 64 * 1024;

/** Undefined if the peer is not served. */
export function serveBack({ peer, path, call, headers, serve }: ServedBackOptions): CallHandlers | undefined {
  const owner = call.presented?.()[0];
  const identity = owner === undefined ? '' : (identitiesOf(owner)[0] ?? '');
  let isOver = false;
  return serve({
    ...{ path, headers, caller: { peer, identity } },
    sendHeaders() {},
    send(message) {
      if (!isOver) call.send(message);
      return call.unsentBytes < highWaterBytes;
    },
    get unsentBytes() {
      return call.unsentBytes;
    },
    pause() {},
    resume() {},
    // Only our serving ends: what we take from the owner on the same stream goes on.
    end() {
      isOver = true;
    },
  });
}

// The next step of a consumer after its stream ended: the protocol's error table (seed 000, Appendix B) as one function. Pure.

import type { BackoffOptions } from '../../base/backoff.ts';
import { type Code, codes } from '../../base/grpc/status.ts';

export type AfterClose =
  /** State 6 or 8 of the client (Appendix A): tries again after an exponential back-off. */
  | { readonly kind: 'backOff' }
  /** The owner does not speak this version; we know another one. */
  | { readonly kind: 'nextVersion' }
  /** State 7 or 9 of the client: stops until configuration or certificates change, or a retry is requested. */
  | { readonly kind: 'stop' };

const fatal: ReadonlySet<Code> = new Set([
  codes.invalidArgument,
  codes.unauthenticated,
  codes.permissionDenied,
  codes.failedPrecondition,
]);

export function afterClose(code: Code, options: { readonly hasNextVersion: boolean }): AfterClose {
  if (code === codes.unimplemented) return { kind: options.hasNextVersion ? 'nextVersion' : 'stop' };
  return { kind: fatal.has(code) ? 'stop' : 'backOff' };
}

/** Half of each step is jitter, so that the first delay is at least the 1 s that the seed asks for. */
export const reconnectBackoff: BackoffOptions = { firstMs: 2000, delayMsMax: 60_000 };

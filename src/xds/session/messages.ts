// The messages between a proxy and the server, in both variants of the protocol, as plain values.

import type { XdsType } from '../resource.ts';
import type { Entry } from '../view/entry.ts';

export interface NodeInfo {
  readonly id: string;
  readonly cluster: string;
  readonly region: string;
  readonly zone: string;
  readonly userAgent: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface Answer {
  readonly nonce: string;
  /** Present when the response was refused. */
  readonly error?: string;
}

export interface ClientRequest {
  readonly typeUrl: string;
  readonly node?: NodeInfo;
  /** Absent in the first request for a type. */
  readonly answer?: Answer;
  /** Every name that is wanted (sotw), or the changes since the last request (delta). */
  readonly names:
    | { readonly kind: 'all'; readonly names: readonly string[] }
    | { readonly kind: 'changes'; readonly subscribe: readonly string[]; readonly unsubscribe: readonly string[] };
  /** The proxy's state from an earlier stream: one version for everything (sotw), or one for each resource (delta). */
  readonly held: { readonly version: string } | { readonly versions: Readonly<Record<string, string>> };
}

export interface ServerResponse {
  readonly type: XdsType;
  readonly nonce: string;
  /** Version of the proxy's whole state once it accepts. */
  readonly version: string;
  readonly entries: readonly Entry[];
  /** Only in `delta`. */
  readonly removed: readonly string[];
}

export type SessionEvent =
  /** The proxy answered a response that is in flight. */
  | { readonly kind: 'answered' }
  /** It answered something that is not. */
  | { readonly kind: 'stale' }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** A resource that it refused before is in order again, or gone. */
  | { readonly kind: 'recovered'; readonly type: XdsType; readonly name: string };

/** A version that one proxy refused. It is never sent to that proxy again. */
interface Refusal {
  readonly entry: Entry;
  readonly message: string;
  /** The version that the proxy goes on with; undefined if it never had one. */
  readonly lastGood: Entry | undefined;
}

/** State of a proxy kept between its streams: its refusals, by type and name. */
export type Refusals = Map<string, Refusal>;

export function refusalKey(type: XdsType, name: string): string {
  return `${type}:${name}`;
}

// The input of a verb: the server's parts, and one request after it was routed, authenticated and authorized.

import type { HttpResponse } from '../../base/http.ts';
import type { Log } from '../../base/log.ts';
import type { Turns } from '../../base/turns.ts';
import type { World } from '../../base/world.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import type { Entry, Store, StoreEvent } from '../store/store.ts';
import type { ApiRequest, Attributes, Credential, User } from './access.ts';
import type { RequestContext } from './kind.ts';
import type { ApiLimits } from './limits.ts';
import type { Registry, Served } from './registry.ts';
import type { Stored } from './stored.ts';

export interface Engine {
  readonly world: World;
  readonly store: Store;
  readonly registry: Registry;
  readonly limits: ApiLimits;
  readonly log: Log;
  readonly memo: EventMemo;
  readonly watches: OpenWatches;
  /** Long work asks here before each of its pieces. */
  readonly turns: Turns;
  readonly quotas: QuotaKeeper;
}

/** Encodings of an event that its watchers share. */
export interface EventMemo {
  /** The bytes made of an event in one form; `make` is called once per event and form. */
  bytes(event: StoreEvent, form: string, make: () => Buffer): Buffer;
  /** Shared by all callers: not to be changed. */
  object(served: Served, entry: Entry): AnyObject;
}

/** The remaining capacity of a namespace. */
interface QuotaKeeper {
  /** Throws StatusError Forbidden if there is no room. To be called back when the write is done or given up. */
  reserve(call: Call, name: string, added: { readonly count: number; readonly bytes: number }): () => void;
}

/** The watches that are open, so that they can be counted and ended. */
export interface OpenWatches {
  /** Throws StatusError TooManyRequests when there are too many. Returns how to leave. */
  enter(userName: string, watch: OpenWatch): () => void;
  count(): number;
  closeAll(): void;
  /** Ends those whose right or account has gone, some at a time. */
  review(): void;
  /** The same for those whose credential is bound to the object with this store key. */
  reviewBoundTo(key: string): void;
}

export interface OpenWatch {
  /** Store keys of the objects that its credential is bound to. */
  readonly boundTo: readonly string[];
  isStillAllowed(): Promise<boolean>;
  end(): void;
  /** Ends it and drops what waits in it. */
  revoke(): void;
}

/** Where something is: a kind in one of its versions, a namespace, a name. */
export interface Place {
  readonly served: Served;
  /** Empty for cluster-scoped kinds and for all namespaces. */
  readonly namespace: string;
  readonly name: string;
}

export interface Call extends Place {
  readonly subresource: string;
  readonly query: URLSearchParams;
  readonly request: ApiRequest;
  readonly user: User;
  readonly nowMs: number;
  readonly isDryRun: boolean;
  /** Whether the user may still do this: asked again and again by what outlives its request. */
  readonly isStillAllowed: () => Promise<boolean>;
  /** Whether the user may do something else too. */
  readonly may: (attributes: Attributes) => boolean;
  readonly credential: Credential;
  /** Told to the client in Warning headers. */
  readonly warnings: string[];
}

export type Answer =
  | { readonly kind: 'object'; readonly code: number; readonly stored: Stored }
  | { readonly kind: 'list'; readonly list: ListAnswer }
  | { readonly kind: 'json'; readonly code: number; readonly value: unknown }
  | { readonly kind: 'stream'; readonly body: Exclude<HttpResponse['body'], Uint8Array> };

export interface ListAnswer {
  readonly revision: number;
  readonly entries: readonly Entry[];
  readonly continueToken?: string;
  readonly remainingItemCount?: number;
}

export function contextOf(engine: Engine, call: Pick<Call, 'user' | 'nowMs' | 'isDryRun'>): RequestContext {
  return { user: call.user, nowMs: call.nowMs, isDryRun: call.isDryRun, store: engine.store };
}

/** The user of the server's own parts. */
export const systemUser: User = { name: 'system:apiserver', groups: ['system:masters'] };

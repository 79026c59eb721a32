// Typed requests to a home. Nothing is tried twice, with one exception: 429 and 503 that carry Retry-After were not
// acted upon, and are sent again a bounded number of times. Every request has a time limit, taken from World timers.

import type { HttpTransport } from '../../base/http.ts';
import { sleep, type Timers, type World } from '../../base/world.ts';
import { type AnyObject, apiVersionOf, type KubernetesObject, type ResourceType } from '../objects/object.ts';
import { withLists } from './foreign.ts';
import { MissingRights } from './missing-rights.ts';
import { objectPath, type Query, withQuery } from './paths.ts';
import { Renewals } from './renewals.ts';
import { createRequester, type RequestSpec } from './request.ts';
import { decodeWatch, type WatchEvent } from './watch-stream.ts';

export interface ObjectRef {
  readonly namespace?: string;
  readonly name: string;
}

export interface RequestOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

export interface WriteOptions extends RequestOptions {
  readonly isDryRun?: boolean;
  /** `Strict` makes unknown fields an error. */
  readonly fieldValidation?: 'Ignore' | 'Warn' | 'Strict';
  readonly fieldManager?: string;
}

export interface Selection {
  /** All namespaces when absent. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

interface ListOptions extends RequestOptions, Selection {
  readonly limit?: number;
  readonly continue?: string;
  readonly resourceVersion?: string;
  readonly resourceVersionMatch?: 'Exact' | 'NotOlderThan';
  /** Reads a page in place of JSON.parse. */
  readonly decode?: ListDecoder;
}

/** May read items one by one, and of each only what its user needs. */
export type ListDecoder = (page: Uint8Array) => List<KubernetesObject>;

export interface List<T> {
  readonly metadata: {
    readonly resourceVersion: string;
    readonly continue?: string;
    readonly remainingItemCount?: number;
  };
  readonly items: T[];
  /**
   * In place of `items`, from a decoder that reads them only now, one after the other: a page of objects that live at the
   * same time would be copied by the garbage collector again and again. After a throw some have been visited.
   */
  readonly each?: (visit: (item: T) => void) => void;
}

export interface WatchOptions extends Selection {
  readonly resourceVersion: string;
  readonly signal?: AbortSignal;
  /** The home ends the stream after this time. */
  readonly timeoutMs?: number;
  readonly withBookmarks?: boolean;
}

type Patch =
  | { readonly kind: 'merge'; readonly body: object }
  | { readonly kind: 'json'; readonly body: readonly object[] }
  | { readonly kind: 'apply'; readonly body: object; readonly fieldManager: string; readonly isForced?: boolean };

export interface DeleteOptions extends RequestOptions {
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
  readonly gracePeriodSeconds?: number;
  readonly isDryRun?: boolean;
}

export interface Client {
  get<T extends KubernetesObject = AnyObject>(type: ResourceType, ref: ObjectRef, options?: RequestOptions): Promise<T>;
  /** One page, or everything if no limit is given. */
  list<T extends KubernetesObject = AnyObject>(type: ResourceType, options?: ListOptions): Promise<List<T>>;
  /** Page after page of one consistent list, 500 objects each by default. */
  listPaged<T extends KubernetesObject = AnyObject>(type: ResourceType, options?: ListOptions): AsyncIterable<List<T>>;
  /** Resolves when the home has begun to answer. The stream ends when the home ends it and throws when it broke. */
  watch<T extends KubernetesObject = AnyObject>(
    type: ResourceType,
    options: WatchOptions,
  ): Promise<AsyncIterable<WatchEvent<T>>>;
  create<T extends KubernetesObject = AnyObject>(type: ResourceType, object: T, options?: WriteOptions): Promise<T>;
  /** Refused with a conflict if the object's resourceVersion is not the newest. */
  update<T extends KubernetesObject = AnyObject>(type: ResourceType, object: T, options?: WriteOptions): Promise<T>;
  updateStatus<T extends KubernetesObject = AnyObject>(
    type: ResourceType,
    object: T,
    options?: WriteOptions,
  ): Promise<T>;
  patch<T extends KubernetesObject = AnyObject>(
    type: ResourceType,
    ref: ObjectRef,
    patch: Patch,
    options?: WriteOptions & { readonly subresource?: string },
  ): Promise<T>;
  delete(type: ResourceType, ref: ObjectRef, options?: DeleteOptions): Promise<void>;
  deleteCollection(type: ResourceType, selection: Selection, options?: DeleteOptions): Promise<void>;
  /** POST to a subresource such as a ServiceAccount's `token`. */
  createSubresource<T extends KubernetesObject = AnyObject>(
    type: ResourceType,
    ref: ObjectRef & { readonly subresource: string },
    body: T,
    options?: WriteOptions,
  ): Promise<T>;
  /** GET of any path that answers JSON, or what `decode` reads: discovery, `/version`. */
  getPath<T = unknown>(path: string, options?: PathOptions<T>): Promise<T>;
  /** Leases that this client wrote: by them a watch that broke knows the home again. */
  readonly renewals: Renewals;
  /** Rights that it was refused lately. */
  missingRights(): string[];
  close(): void;
}

export interface PathOptions<T> extends RequestOptions {
  readonly decode?: (body: Uint8Array) => T;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ClientOptions {
  readonly world: Pick<World, 'timers' | 'random'>;
  readonly userAgent: string;
  /** For everything but watches. */
  readonly requestTimeoutMs?: number;
}

const patchTypes = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
} as const;

export function createClient(transport: HttpTransport, options: ClientOptions): Client {
  const rights = new MissingRights();
  const { send, stream } = createRequester(transport, { ...options, rights });
  const renewals = new Renewals();
  const sendFor = async <T extends KubernetesObject>(type: ResourceType, spec: RequestSpec): Promise<T> => {
    const object = withLists(type, await send<T>(spec));
    if (!type.isRenewed) return object;
    if (spec.method === 'GET') renewals.read(type, object);
    else renewals.written(type, spec.json as KubernetesObject, object);
    return object;
  };
  const client: Client = {
    get: (type, ref, request) => sendFor(type, { method: 'GET', path: objectPath(type, ref), ...request }),
    list: async <T extends KubernetesObject>(type: ResourceType, list: ListOptions = {}) => {
      const path = withQuery(objectPath(type, list), listQuery(list));
      return withTypes(type, await send<List<T>>({ method: 'GET', path, ...list }));
    },
    listPaged: (type, list) => pages({ client, timers: options.world.timers }, type, list ?? {}),
    watch: async (type, watch) => {
      const path = withQuery(objectPath(type, watch), watchQuery(watch));
      const response = await stream({ method: 'GET', path, signal: watch.signal });
      const events = decodeWatch(response, `watch ${path}`);
      return (type.lists === undefined ? events : completed(type, events)) as never;
    },
    create: (type, object, write) =>
      sendFor(type, {
        method: 'POST',
        path: withQuery(objectPath(type, { namespace: object.metadata.namespace }), writeQuery(write)),
        json: object,
        ...write,
      }),
    update: (type, object, write) =>
      sendFor(type, {
        method: 'PUT',
        path: withQuery(objectPath(type, object.metadata), writeQuery(write)),
        json: object,
        ...write,
      }),
    updateStatus: (type, object, write) =>
      sendFor(type, {
        method: 'PUT',
        path: withQuery(objectPath(type, { ...object.metadata, subresource: 'status' }), writeQuery(write)),
        json: object,
        ...write,
      }),
    patch: (type, ref, patch, write) =>
      sendFor(type, {
        method: 'PATCH',
        path: withQuery(objectPath(type, { ...ref, subresource: write?.subresource }), patchQuery(patch, write)),
        json: patch.body,
        contentType: patchTypes[patch.kind],
        ...write,
      }),
    delete: async (type, ref, deletion) => {
      await send({ method: 'DELETE', path: objectPath(type, ref), json: deleteBody(deletion), ...deletion });
      if (type.isRenewed) renewals.deleted(type, ref);
    },
    deleteCollection: async (type, selection, deletion) => {
      const path = withQuery(objectPath(type, { namespace: selection.namespace }), listQuery(selection));
      await send({ method: 'DELETE', path, json: deleteBody(deletion), ...deletion });
    },
    createSubresource: (type, ref, body, write) =>
      send({ method: 'POST', path: withQuery(objectPath(type, ref), writeQuery(write)), json: body, ...write }),
    getPath: (path, request) => send({ method: 'GET', path, ...request }),
    renewals,
    missingRights: () => rights.list(),
    close: () => transport.close(),
  };
  return client;
}

// Kubernetes says the type of built-in kinds once for the whole list, and not in each item; no items may be null.
function withTypes<T extends KubernetesObject>(type: ResourceType, list: List<T>): List<T> {
  const apiVersion = apiVersionOf(type);
  const items = list.items ?? [];
  for (const item of items) {
    item.apiVersion ??= apiVersion;
    item.kind ??= type.kind;
    withLists(type, item);
  }
  return { ...list, items };
}

async function* completed<T extends KubernetesObject>(
  type: ResourceType,
  events: AsyncIterable<WatchEvent<T>>,
): AsyncGenerator<WatchEvent<T>> {
  for await (const event of events) {
    if (event.type !== 'BOOKMARK' && event.type !== 'ERROR') withLists(type, event.object);
    yield event;
  }
}

/** The next page is under way while its predecessor is being looked at: the home and we work at the same time. */
async function* pages<T extends KubernetesObject>(
  { client, timers }: { readonly client: Client; readonly timers: Timers },
  type: ResourceType,
  options: ListOptions,
): AsyncGenerator<List<T>> {
  const ask = (from: string | undefined) =>
    client.list<T>(type, { ...options, limit: options.limit ?? 500, continue: from });
  let asked: Promise<List<T>> | undefined = ask(options.continue);
  while (asked !== undefined) {
    const page: List<T> = await asked;
    const next = page.metadata.continue;
    asked = next ? ask(next) : undefined;
    // If the caller stops here, the result of the next request is not needed.
    asked?.catch(() => {});
    // The request leaves with the next turn of the loop: the home works on it while this page is read.
    if (asked) await sleep(timers, 0);
    yield page;
  }
}

function listQuery(options: ListOptions): Query {
  return {
    labelSelector: options.labelSelector,
    fieldSelector: options.fieldSelector,
    limit: options.limit === undefined ? undefined : String(options.limit),
    continue: options.continue,
    // A continue token carries its own revision; both together are refused.
    resourceVersion: options.continue ? undefined : options.resourceVersion,
    resourceVersionMatch: options.continue ? undefined : options.resourceVersionMatch,
  };
}

function watchQuery(options: WatchOptions): Query {
  return {
    watch: 'true',
    labelSelector: options.labelSelector,
    fieldSelector: options.fieldSelector,
    resourceVersion: options.resourceVersion,
    allowWatchBookmarks: options.withBookmarks === false ? undefined : 'true',
    timeoutSeconds: options.timeoutMs === undefined ? undefined : String(Math.ceil(options.timeoutMs / 1000)),
  };
}

function writeQuery(options: WriteOptions | undefined): Query {
  return {
    dryRun: options?.isDryRun ? 'All' : undefined,
    fieldValidation: options?.fieldValidation,
    fieldManager: options?.fieldManager,
  };
}

function patchQuery(patch: Patch, options: WriteOptions | undefined): Query {
  if (patch.kind !== 'apply') return writeQuery(options);
  return { ...writeQuery(options), fieldManager: patch.fieldManager, force: patch.isForced ? 'true' : undefined };
}

function deleteBody(options: DeleteOptions = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    preconditions: options.preconditions,
    propagationPolicy: options.propagationPolicy,
    gracePeriodSeconds: options.gracePeriodSeconds,
    dryRun: options.isDryRun ? ['All'] : undefined,
  };
}

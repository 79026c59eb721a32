// A home for tests that keeps one kind and a Lease in memory and misbehaves on demand. It speaks just enough of list, watch and
// discovery to drive a reflector through every fault; how a home should behave is the API server's own business.

import type { HttpRequest, HttpResponse } from '../../base/http.ts';
import type { AnyObject, ResourceType } from '../objects/object.ts';

interface Change {
  readonly revision: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: AnyObject;
}

export class ScriptedHome {
  readonly objects = new Map<string, AnyObject>();
  readonly requests: string[] = [];
  revision = 10;
  /** Revisions below this are gone. */
  floor = 0;
  isServed = true;
  lease: AnyObject | undefined;
  /** Answers before anything else is looked at; undefined lets the request through. */
  intercept: (path: URL, request: HttpRequest) => HttpResponse | undefined = () => undefined;
  readonly #type: ResourceType;
  readonly #history: Change[] = [];
  readonly #leases: AnyObject[] = [];
  readonly #watchers = new Set<Watcher>();
  #uids = 0;

  constructor(type: ResourceType) {
    this.#type = type;
  }

  /** Lists and watches asked for so far. */
  count(kind: 'list' | 'watch'): number {
    const isOne = new RegExp(`/${this.#type.plural}/`);
    return this.requests.filter(
      (request) =>
        request.includes('watch=true') === (kind === 'watch') &&
        request.includes(this.#type.plural) &&
        !isOne.test(request),
    ).length;
  }

  get watchers(): number {
    return this.#watchers.size;
  }

  put(name: string, fields: Record<string, unknown> = {}): void {
    const known = this.objects.get(name);
    this.revision += 1;
    const { group, version, kind } = this.#type;
    const object: AnyObject = {
      apiVersion: group === '' ? version : `${group}/${version}`,
      kind,
      metadata: {
        name,
        namespace: 'shop',
        uid: known?.metadata.uid ?? `uid-${++this.#uids}`,
        resourceVersion: String(this.revision),
      },
      ...fields,
    };
    this.objects.set(name, object);
    this.#record({ revision: this.revision, type: known === undefined ? 'ADDED' : 'MODIFIED', object });
  }

  delete(name: string): void {
    const known = this.objects.get(name);
    if (known === undefined) return;
    this.revision += 1;
    this.objects.delete(name);
    const object = { ...known, metadata: { ...known.metadata, resourceVersion: String(this.revision) } };
    this.#record({ revision: this.revision, type: 'DELETED', object });
  }

  /** As from a backup: everything after the revision never happened. */
  putBack(revision: number): void {
    const isLater = (one: AnyObject | undefined) => Number(one?.metadata.resourceVersion) > revision;
    while (isLater(this.#history.at(-1)?.object)) this.#history.pop();
    this.objects.clear();
    for (const { type, object } of this.#history) {
      if (type === 'DELETED') this.objects.delete(object.metadata.name);
      else this.objects.set(object.metadata.name, object);
    }
    while (isLater(this.#leases.at(-1))) this.#leases.pop();
    this.lease = this.#leases.at(-1);
    this.revision = revision;
  }

  bookmark(): void {
    this.revision += 1;
    const object = { kind: this.#type.kind, apiVersion: 'v1', metadata: { resourceVersion: String(this.revision) } };
    for (const watcher of this.#watchers) watcher.push({ type: 'BOOKMARK', object });
  }

  /** Sends this to every open watch, then ends it. */
  endWatches(last?: object): void {
    for (const watcher of this.#watchers) {
      if (last !== undefined) watcher.push(last);
      watcher.end();
    }
  }

  handle = async (request: HttpRequest): Promise<HttpResponse> => {
    const url = new URL(request.path, 'http://home');
    this.requests.push(request.path);
    const intercepted = this.intercept(url, request);
    if (intercepted !== undefined) return intercepted;
    if (url.pathname.includes('/leases')) return this.#leaseAnswer(request);
    if (url.pathname === '/apis') return json(200, { kind: 'APIGroupList', groups: [] });
    const [, name] = url.pathname.split(`/${this.#type.plural}/`);
    if (name !== undefined && this.isServed) return this.#get(name);
    if (!url.pathname.endsWith(this.#type.plural)) return this.#resources();
    if (!this.isServed) return status(404, 'NotFound', 'the server could not find the requested resource');
    return url.searchParams.get('watch') === 'true' ? this.#watch(url, request) : this.#list(url);
  };

  #resources(): HttpResponse {
    if (!this.isServed) return status(404, 'NotFound', 'no such group');
    return json(200, { kind: 'APIResourceList', resources: [{ name: this.#type.plural }] });
  }

  #leaseAnswer({ method, body }: HttpRequest): HttpResponse {
    if (method === 'POST' && this.lease !== undefined) return status(409, 'AlreadyExists', 'there is one');
    if (method !== 'GET') {
      const sent = JSON.parse(String(body)) as AnyObject;
      const { resourceVersion } = sent.metadata;
      if (resourceVersion !== undefined && resourceVersion !== this.lease?.metadata.resourceVersion)
        return status(409, 'Conflict', 'it is another');
      this.revision += 1;
      this.lease = { ...sent, metadata: { ...sent.metadata, resourceVersion: String(this.revision) } };
      this.#leases.push(this.lease);
    }
    return this.lease === undefined ? status(404, 'NotFound', 'no such lease') : json(200, this.lease);
  }

  #get(name: string): HttpResponse {
    const found = this.objects.get(name);
    return found === undefined ? status(404, 'NotFound', `${name} not found`) : json(200, found);
  }

  #list(url: URL): HttpResponse {
    const limit = Number(url.searchParams.get('limit')) || Number.POSITIVE_INFINITY;
    const [revision, after] = (url.searchParams.get('continue') ?? `${this.revision}:`).split(':') as [string, string];
    if (Number(revision) < this.floor) return status(410, 'Expired', 'the continue token is too old');
    const rest = [...this.objects.values()].filter(({ metadata }) => metadata.name > after).sort(byName);
    const items = rest.slice(0, limit);
    const isLast = items.length === rest.length;
    const metadata = {
      resourceVersion: revision,
      ...(isLast ? {} : { continue: `${revision}:${items.at(-1)?.metadata.name}` }),
    };
    return json(200, { kind: 'List', apiVersion: 'v1', metadata, items });
  }

  #watch(url: URL, request: HttpRequest): HttpResponse {
    const from = Number(url.searchParams.get('resourceVersion'));
    if (from < this.floor) return status(410, 'Expired', 'too old resource version');
    const watcher = new Watcher();
    for (const change of this.#history) if (change.revision > from) watcher.push(change);
    this.#watchers.add(watcher);
    const end = () => {
      this.#watchers.delete(watcher);
      watcher.end();
    };
    request.signal?.addEventListener('abort', end, { once: true });
    watcher.onEnd = () => this.#watchers.delete(watcher);
    return { status: 200, headers: {}, body: watcher };
  }

  #record(change: Change): void {
    this.#history.push(change);
    for (const watcher of this.#watchers) watcher.push(change);
  }
}

class Watcher implements AsyncIterable<Uint8Array> {
  onEnd: () => void = () => {};
  readonly #lines: Uint8Array[] = [];
  #isEnded = false;
  #wake: () => void = () => {};

  push({ type, object }: { type?: string; object?: object }): void {
    this.#lines.push(Buffer.from(`${JSON.stringify({ type, object })}\n`));
    this.#wake();
  }

  end(): void {
    this.#isEnded = true;
    this.onEnd();
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const line = this.#lines.shift();
      if (line !== undefined) yield line;
      else if (this.#isEnded) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

export function json(code: number, body: object, headers: Record<string, string> = {}): HttpResponse {
  return {
    status: code,
    headers: { 'content-type': 'application/json', ...headers },
    body: Buffer.from(JSON.stringify(body)),
  };
}

export function status(code: number, reason: string, message: string, causes: readonly object[] = []): HttpResponse {
  return json(code, {
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    code,
    reason,
    message,
    details: { causes },
  });
}

function byName(a: AnyObject, b: AnyObject): number {
  return a.metadata.name < b.metadata.name ? -1 : 1;
}

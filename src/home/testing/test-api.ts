// For this folder's tests: a whole API server over a store in memory, under a clock that moves only when told, and
// requests written as text.

import { readBody } from '../../base/http.ts';
import { silentLog } from '../../base/log.ts';
import { createMetrics, type Metrics } from '../../base/metrics.ts';
import type { Timer, World } from '../../base/world.ts';
import type { AnyObject } from '../../kube/objects/object.ts';
import { type Api, createApi } from '../api.ts';
import { customResourceDefinitionKind } from '../kinds/custom-resource-definition.ts';
import { builtinKinds } from '../kinds/index.ts';
import type { Access } from '../model/access.ts';
import type { Kind } from '../model/kind.ts';
import type { ApiLimits } from '../model/limits.ts';
import { createMemoryStore } from '../open-store.ts';
import type { LogStore } from '../store/log-store.ts';
import type { Store } from '../store/store.ts';

export const allowAll: Access = {
  authenticate: async () => ({ name: 'tester', groups: ['system:masters'] }),
  authorize: () => ({ isAllowed: true, reason: '' }),
};

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look wherever they want to in an answer.
  readonly body: any;
}

interface Due {
  readonly atMs: number;
  readonly run: () => void;
}

export class TestTime {
  #nowMs = 0;
  #random = 1;
  #uuids = 1;
  readonly #due = new Set<Due>();

  readonly world = {
    clock: { wallMs: () => Date.UTC(2026, 0, 1) + this.#nowMs, monotonicMs: () => this.#nowMs },
    timers: { after: (delayMs: number, run: () => void) => this.#after(delayMs, run) },
    random: {
      float: () => 0.5,
      bytes: (count: number) => Uint8Array.from({ length: count }, () => this.#next32() & 255),
      uuid: () => `00000000-0000-4000-8000-${String(this.#uuids++).padStart(12, '0')}`,
    },
    // biome-ignore lint/suspicious/noExplicitAny: the request path uses neither network nor disk.
    network: undefined as any,
    // biome-ignore lint/suspicious/noExplicitAny: see above
    disk: undefined as any,
  } satisfies World;

  // Marsaglia's xorshift: the same numbers in every run.
  #next32(): number {
    this.#random ^= this.#random << 13;
    this.#random ^= this.#random >>> 17;
    this.#random ^= this.#random << 5;
    return this.#random >>> 0;
  }

  get timerCount(): number {
    return this.#due.size;
  }

  /** Runs what is due on the way, in order, and lets everything that follows from it happen. */
  async advance(byMs: number): Promise<void> {
    const untilMs = this.#nowMs + byMs;
    await settle();
    for (let next = this.#next(untilMs); next !== undefined; next = this.#next(untilMs)) {
      this.#due.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.run();
      await settle();
    }
    this.#nowMs = untilMs;
  }

  #after(delayMs: number, run: () => void): Timer {
    const due = { atMs: this.#nowMs + delayMs, run };
    this.#due.add(due);
    return { cancel: () => void this.#due.delete(due) };
  }

  #next(untilMs: number): Due | undefined {
    let next: Due | undefined;
    for (const due of this.#due) if (due.atMs <= untilMs && (next === undefined || due.atMs < next.atMs)) next = due;
    return next;
  }
}

/** Everything in memory settles by microtasks. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 200; turn++) await Promise.resolve();
}

export interface TestApiOptions {
  readonly access?: Access;
  readonly limits?: Partial<ApiLimits>;
  readonly kinds?: readonly Kind[];
  readonly definitions?: readonly AnyObject[];
  readonly wrapStore?: (store: Store) => Store;
  readonly isStarted?: boolean;
}

export interface TestApi {
  readonly api: Api;
  readonly store: LogStore;
  readonly time: TestTime;
  readonly metrics: Metrics;
  /** `GET /api/v1/pods`, a body as an object, a text or bytes, further headers. */
  send(line: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Reply>;
  /** The same for something that must succeed; the body of the answer. */
  ok(line: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Reply['body']>;
  /** Opens a watch and collects what it sends. */
  watch(path: string, headers?: Readonly<Record<string, string>>): Promise<TestWatch>;
}

export class TestWatch {
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly events: any[] = [];
  isEnded = false;
  readonly #iterator: AsyncIterator<Uint8Array>;

  constructor(body: AsyncIterable<Uint8Array>) {
    this.#iterator = body[Symbol.asyncIterator]();
  }

  /** Reads until told to stop; the events so far are in `events`. */
  read(): this {
    void this.#pump();
    return this;
  }

  async #pump(): Promise<void> {
    for (;;) {
      const { done, value } = await this.#iterator.next();
      if (done) break;
      const lines = Buffer.from(value).toString().trimEnd().split('\n');
      this.events.push(...lines.map((line) => JSON.parse(line)));
    }
    this.isEnded = true;
  }

  close(): void {
    void this.#iterator.return?.();
  }

  /** `ADDED web@4` for each event, as people read it. */
  get lines(): string[] {
    return this.events.map(({ type, object }) => {
      const { metadata = {} } = object;
      const what = type === 'ERROR' ? String(object.code) : `${metadata.name ?? ''}@${metadata.resourceVersion}`;
      return `${type} ${what}`;
    });
  }

  get names(): string[] {
    return this.events.map(({ type, object }) => `${type} ${object.metadata?.name ?? object.code ?? ''}`.trim());
  }
}

export async function createTestApi(options: TestApiOptions = {}): Promise<TestApi> {
  const time = new TestTime();
  const store = createMemoryStore({ world: time.world });
  const metrics = createMetrics();
  const kindOptions = { serviceRanges: ['10.96.0.0/16'], random: time.world.random };
  const kinds = options.kinds ?? builtinKinds({ ...kindOptions, extra: [customResourceDefinitionKind] });
  const api = await createApi({
    world: time.world,
    store: options.wrapStore?.(store) ?? store,
    kinds,
    access: options.access ?? allowAll,
    log: silentLog,
    metrics,
    ...(options.limits && { limits: options.limits }),
    ...(options.definitions && { definitions: options.definitions }),
  });
  if (options.isStarted !== false) await api.start();
  const send: TestApi['send'] = async (line, body, headers = {}) => {
    const [method = '', path = ''] = line.split(' ');
    const bytes = bytesOf(body);
    const response = await api.handle({ method, path, headers, ...(bytes && { body: bytes }) });
    const text = Buffer.from(await readBody(response.body)).toString();
    return { status: response.status, headers: response.headers, body: text.startsWith('{') ? JSON.parse(text) : text };
  };
  return {
    api,
    store,
    time,
    metrics,
    send,
    ok: async (line, body, headers) => {
      const reply = await send(line, body, headers);
      if (reply.status >= 300) throw new Error(`${line}: ${reply.status} ${reply.body.message}`);
      return reply.body;
    },
    watch: async (path, headers = {}) => {
      const response = await api.handle({ method: 'GET', path, headers });
      if (response.body instanceof Uint8Array) throw new Error(`no watch: ${Buffer.from(response.body)}`);
      return new TestWatch(response.body);
    },
  };
}

/** The same store with some of its methods replaced. */
export function withMethods(store: Store, methods: Partial<Store>): Store {
  return {
    revision: () => store.revision(),
    floor: () => store.floor(),
    get: (key) => store.get(key),
    range: (request) => store.range(request),
    commit: (request) => store.commit(request),
    watch: (request) => store.watch(request),
    snapshot: () => store.snapshot(),
    compact: (revision) => store.compact(revision),
    writeFailure: () => store.writeFailure(),
    close: () => store.close(),
    ...methods,
  };
}

function bytesOf(body: unknown): Uint8Array | undefined {
  if (body === undefined) return undefined;
  if (body instanceof Uint8Array) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

export function configMap(name: string, data: Record<string, string> = {}, metadata: object = {}): AnyObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata }, data };
}

/** A definition with a status, a default, a pattern and an enum; `widgets.example.com`, short name `wd`. */
export function widgetDefinition(): AnyObject {
  const spec = {
    type: 'object',
    required: ['size'],
    properties: {
      size: { type: 'integer', minimum: 1, maximum: 10 },
      color: { type: 'string', default: 'blue', enum: ['blue', 'red'] },
      parts: { type: 'array', items: { type: 'object', properties: { name: { type: 'string' } } } },
    },
  };
  const status = { type: 'object', properties: { ready: { type: 'boolean' } } };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec, status } } };
  const columns = [{ name: 'Size', type: 'integer', jsonPath: '.spec.size' }];
  const version = { served: true, schema, subresources: { status: {} }, additionalPrinterColumns: columns };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList', shortNames: ['wd'] },
      versions: [
        { name: 'v1', storage: true, ...version },
        { name: 'v1beta1', storage: false, ...version },
      ],
    },
  };
}

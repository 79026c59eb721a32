// The API server as a value: a function from requests to answers over a store, and the parts that work behind it. HTTP
// is one way to reach it; embedded controllers and simulation call `handle` directly.

import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { IpRange } from '../base/net/ip.ts';
import { Turns } from '../base/turns.ts';
import type { World } from '../base/world.ts';
import type { AnyObject } from '../kube/objects/object.ts';
import { createDefinitions } from './background/definitions.ts';
import { createEventExpiry } from './background/event-expiry.ts';
import { createGarbageCollection } from './background/garbage.ts';
import { createNamespaceContents } from './background/namespace-contents.ts';
import { createNamespaceEmptying, ensureNamespaces } from './background/namespaces.ts';
import { createOwnService, type OwnAddress } from './background/own-service.ts';
import { createOpenApi } from './discovery/openapi.ts';
import type { Access, AuthorityFacts } from './model/access.ts';
import type { Engine } from './model/call.ts';
import type { DefinedKindRules, Kind } from './model/kind.ts';
import { type ApiLimits, defaultLimits } from './model/limits.ts';
import { createRegistry } from './model/registry.ts';
import { Quotas } from './quota/quota.ts';
import { createHandle, type Handle } from './request/handle.ts';
import { type AuditFacts, createPathHandler } from './request/paths.ts';
import { createRequestMetrics } from './request/request-metrics.ts';
import type { Snapshots } from './snapshot/snapshots.ts';
import type { Store } from './store/store.ts';
import { createPartProxy } from './verbs/part-proxy.ts';
import { createEventMemo } from './watch/event-memo.ts';
import { createOpenWatches } from './watch/open-watches.ts';

export interface ApiOptions {
  readonly world: World;
  readonly store: Store;
  /** Built-in kinds, Namespace and CustomResourceDefinition among them. */
  readonly kinds: readonly Kind[];
  readonly access: Access;
  readonly log: Log;
  readonly metrics?: Metrics;
  readonly limits?: Partial<ApiLimits>;
  /** With it, every namespace has its certificates and an account `default`. */
  readonly authority?: AuthorityFacts;
  readonly audit?: AuditFacts;
  readonly snapshots?: Snapshots;
  /** Definitions that are there from the first start on. */
  readonly definitions?: readonly AnyObject[];
  /** Addresses of other machines whose parts may be asked through this home; none if absent. */
  readonly partRanges?: readonly IpRange[];
  /** Rules that the schemas of definitions cannot express. */
  readonly kindRules?: DefinedKindRules;
}

export interface Api {
  /** Never rejects: what goes wrong is a Status in the answer. */
  readonly handle: Handle;
  /** Makes what must be there, then begins to collect garbage and old Events, empty namespaces and serve definitions. */
  start(): Promise<void>;
  /** Ends all watches and the parts behind. The store stays open. */
  stop(): Promise<void>;
  /** Creates the definitions that are not there and updates those that differ; resolves when they are served. */
  ensureDefinitions(definitions: readonly AnyObject[]): Promise<void>;
  /** Tells clients inside where the server is: the Service `kubernetes`. */
  announce(own: OwnAddress): Promise<void>;
  /** Resolves when nothing is left to do behind the requests answered so far. */
  whenIdle(): Promise<void>;
}

export async function createApi(options: ApiOptions): Promise<Api> {
  const limits = { ...defaultLimits, ...options.limits };
  const withoutQuotas: Omit<Engine, 'quotas'> = {
    world: options.world,
    store: options.store,
    registry: createRegistry(options.kinds),
    limits,
    log: options.log,
    memo: createEventMemo(),
    watches: createOpenWatches(limits.openWatchesMax, options.world.timers),
    turns: new Turns(options.world),
  };
  const quotas = new Quotas(withoutQuotas);
  const engine: Engine = { ...withoutQuotas, quotas };
  const stopReviews = options.access.onChange?.(() => engine.watches.review());
  const stopBoundReviews = options.access.onGone?.((key) => engine.watches.reviewBoundTo(key));
  let state: 'not started' | 'starting' | 'started' | 'stopped' = 'not started';
  const definitions = createDefinitions(engine, options.kindRules);
  await definitions.load();
  const parts = [
    quotas,
    definitions,
    createNamespaceEmptying(engine),
    createGarbageCollection(engine),
    createEventExpiry(engine),
    ...(options.authority === undefined ? [] : [createNamespaceContents(engine, options.authority)]),
  ];
  const ownService = createOwnService(engine);
  const metrics = createRequestMetrics(options.metrics, () => engine.watches.count());
  const answerPath = createPathHandler({
    engine,
    metrics: options.metrics,
    openApi: createOpenApi(engine.registry, () => engine.turns.next()),
    authority: options.authority,
    tokenIssuer: options.access.tokenIssuer,
    audit: options.audit,
    snapshots: options.snapshots,
    waitsFor: () => (state === 'started' ? undefined : `the server is ${state}`),
  });
  return {
    handle: createHandle({
      engine,
      access: options.access,
      metrics,
      answerPath,
      partProxy: createPartProxy(engine, options.partRanges),
    }),
    start: async () => {
      state = 'starting';
      await ensureNamespaces(engine);
      await definitions.ensure(options.definitions ?? []);
      for (const part of parts) await part.start();
      state = 'started';
    },
    stop: async () => {
      state = 'stopped';
      stopReviews?.();
      stopBoundReviews?.();
      engine.watches.closeAll();
      ownService.stop();
      for (const part of parts.toReversed()) await part.stop();
    },
    ensureDefinitions: (wanted) => definitions.ensure(wanted),
    announce: (own) => ownService.announce(own),
    whenIdle: async () => {
      for (const part of parts) await part.whenIdle();
    },
  };
}

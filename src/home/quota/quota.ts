// Holds writes against the ResourceQuotas of their namespace. Pending writes reserve their place, so that concurrent
// writes do not all fit into the last free one. Keeps status.used up to date, once a second at most.

import { errorText } from '../../base/log.ts';
import type { Timer } from '../../base/world.ts';
import { parseWholeQuantity, type ResourceQuota, resourceQuotaType } from '../../kube/objects/resource-quota.ts';
import type { Background } from '../background/follow.ts';
import { isScoped, resourceNamed } from '../kinds/resource-quota.ts';
import { type Call, type Engine, systemUser } from '../model/call.ts';
import { keyPrefixOf } from '../model/kind.ts';
import { StatusError } from '../model/status.ts';
import { detailsOf } from '../model/status-errors.ts';
import { parsePlace, textOf } from '../model/stored.ts';
import { forEachEntry } from '../store/each-entry.ts';
import { CompactedError, type StoreEvent } from '../store/store.ts';
import { modify } from '../verbs/modify.ts';
import { systemCall } from '../verbs/system-call.ts';
import { Ledger, resourceOf } from './ledger.ts';

const statusDelayMs = 1000;
const quotaPrefix = keyPrefixOf(resourceQuotaType);

export interface Added {
  readonly count: number;
  readonly bytes: number;
}

interface Limit {
  /** As written in spec.hard. */
  readonly name: string;
  /** Empty for the bytes of everything. */
  readonly resource: string;
  readonly hard: number;
}

export class Quotas implements Background {
  readonly #engine: Omit<Engine, 'quotas'>;
  readonly #stored = new Ledger();
  readonly #reserved = new Ledger();
  /** Namespace, then name of the quota. */
  readonly #limits = new Map<string, Map<string, readonly Limit[]>>();
  readonly #stale = new Set<string>();
  #timer: Timer | undefined;
  #cancel = () => {};

  constructor(engine: Omit<Engine, 'quotas'>) {
    this.#engine = engine;
  }

  async start(): Promise<void> {
    this.#stored.clear();
    const revision = await forEachEntry(this.#engine.store, '/registry/', (entry) =>
      this.#see({ revision: entry.revision, key: entry.key, entry, previous: undefined }),
    );
    const watch = this.#engine.store.watch({
      prefix: '/registry/',
      afterRevision: revision,
      onEvents: (events) => {
        for (const event of events) this.#see(event);
      },
      onEnd: (error) => {
        if (error instanceof CompactedError) void this.start();
      },
    });
    this.#cancel = () => watch.cancel();
  }

  async stop(): Promise<void> {
    this.#cancel();
    this.#timer?.cancel();
  }

  async whenIdle(): Promise<void> {
    await this.#writeStatus();
  }

  /** Throws StatusError Forbidden if the namespace has no room for it. Called back when the write is done or given up. */
  reserve(call: Call, name: string, added: Added): () => void {
    const { namespace, served } = call;
    const limits = this.#limits.get(namespace);
    if (limits === undefined || call.user === systemUser || added.count + Math.max(0, added.bytes) === 0)
      return nothing;
    const resource = resourceOf(served.kind.storedAs ?? served.kind);
    for (const [quota, list] of limits) {
      const exceeded = list.filter((limit) => this.#isExceeded(namespace, resource, limit, added));
      if (exceeded.length > 0) throw this.#refusal(call, name, { quota, exceeded, added });
    }
    this.#reserved.add(namespace, resource, added);
    return () => this.#reserved.add(namespace, resource, { count: -added.count, bytes: -added.bytes });
  }

  #isExceeded(namespace: string, resource: string, limit: Limit, added: Added): boolean {
    const more = limit.resource === '' ? added.bytes : limit.resource === resource ? added.count : 0;
    return more > 0 && this.#used(namespace, limit) + more > limit.hard;
  }

  #used(namespace: string, { resource }: Limit, ledgers = [this.#stored, this.#reserved]): number {
    let used = 0;
    for (const ledger of ledgers) {
      const usage = ledger.usage(namespace);
      used += resource === '' ? (usage?.bytes ?? 0) : (usage?.count(resource) ?? 0);
    }
    return used;
  }

  #refusal(
    { served, namespace }: Call,
    name: string,
    { quota, exceeded, added }: { quota: string; exceeded: readonly Limit[]; added: Added },
  ): StatusError {
    const list = (value: (limit: Limit) => number) => exceeded.map((each) => `${each.name}=${value(each)}`).join(',');
    const requested = list(({ resource }) => (resource === '' ? added.bytes : added.count));
    const used = list((limit) => this.#used(namespace, limit));
    const why = `exceeded quota: ${quota}, requested: ${requested}, used: ${used}, limited: ${list(({ hard }) => hard)}`;
    const message = `${served.resource} ${JSON.stringify(name)} is forbidden: ${why}`;
    return new StatusError('Forbidden', message, { details: detailsOf(served, name) });
  }

  #see(event: StoreEvent): void {
    if (event.key.startsWith(quotaPrefix)) this.#seeQuota(event);
    const namespace = this.#stored.apply(event);
    if (namespace !== undefined && this.#limits.has(namespace)) this.#markStale(namespace);
  }

  #seeQuota({ key, entry }: StoreEvent): void {
    const { namespace, name } = parsePlace(quotaPrefix, key);
    const quotas = this.#limits.get(namespace) ?? new Map<string, readonly Limit[]>();
    if (entry === undefined) quotas.delete(name);
    else quotas.set(name, limitsOf(JSON.parse(textOf(entry.value)) as ResourceQuota));
    if (quotas.size > 0) this.#limits.set(namespace, quotas);
    else this.#limits.delete(namespace);
  }

  #markStale(namespace: string): void {
    this.#stale.add(namespace);
    this.#timer ??= this.#engine.world.timers.after(statusDelayMs, () => void this.#writeStatus());
  }

  async #writeStatus(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    for (const namespace of [...this.#stale]) {
      this.#stale.delete(namespace);
      for (const name of this.#limits.get(namespace)?.keys() ?? []) await this.#writeStatusOf(namespace, name);
    }
  }

  async #writeStatusOf(namespace: string, name: string): Promise<void> {
    const served = this.#engine.registry.findPlural('', resourceQuotaType.plural);
    if (served === undefined) return;
    const engine = { ...this.#engine, quotas: this };
    try {
      await modify(engine, systemCall(engine, { served, namespace, name }), {
        part: 'status',
        next: (current) => ({ ...current, status: this.#statusOf(namespace, current as ResourceQuota) }),
      });
    } catch (error) {
      if (error instanceof StatusError && error.reason === 'NotFound') return;
      this.#engine.log.warn('the status of a quota could not be written', { namespace, name, error: errorText(error) });
    }
  }

  #statusOf(namespace: string, quota: ResourceQuota): ResourceQuota['status'] {
    const used = limitsOf(quota).map((limit) => [
      limit.name,
      formatUsed(limit, this.#used(namespace, limit, [this.#stored])),
    ]);
    return { hard: { ...quota.spec?.hard }, used: Object.fromEntries(used) };
  }
}

function nothing(): void {}

/** Bytes in whole KiB: a heartbeat that is a few bytes longer is not worth another write. */
function formatUsed({ resource }: Limit, used: number): string {
  return resource === '' ? `${Math.ceil(used / 1024)}Ki` : String(used);
}

/** The enforced limits: numbers of objects, and bytes. */
function limitsOf({ spec }: ResourceQuota): Limit[] {
  if (isScoped(spec)) return [];
  return Object.entries(spec?.hard ?? {}).flatMap(([name, text]) => {
    const resource = resourceNamed(name);
    const hard = parseWholeQuantity(text);
    return resource === undefined || hard === undefined ? [] : [{ name, resource, hard }];
  });
}

// Publishes what this cluster exports: for each valid ServiceExport one ServiceShard and its slices in this member's
// namespace at the broker; for everything else nothing, whatever an earlier run left there.

import { inParallel } from '../../base/in-parallel.ts';
import { errorText } from '../../base/log.ts';
import type { WorkResult } from '../../base/queue.ts';
import { deleteIfPresent } from '../../kube/client/absent.ts';
import { apply, replaceWith } from '../../kube/client/apply.ts';
import { isConflict, isNotFound, isQuotaExceeded, isQuotaUncounted } from '../../kube/objects/api-error.ts';
import { boundedName } from '../../kube/objects/bounded-name.ts';
import { conditionOf } from '../../kube/objects/conditions.ts';
import type { EndpointSlice } from '../../kube/objects/endpoint-slice.ts';
import type { Service } from '../../kube/objects/service.ts';
import type { AgentContext } from '../copies/context.ts';
import { importOf, ownService, slicesByService } from '../copies/home-copies.ts';
import type { Publications } from '../copies/publications.ts';
import { endpointShardType } from '../kinds/endpoint-shard.ts';
import type { ServiceExport } from '../kinds/service-export.ts';
import { type ServiceShard, serviceShardType } from '../kinds/service-shard.ts';
import { byService, type Member } from '../members/follower.ts';
import { judgeService, type Publication } from '../rules/export-conditions.ts';
import { readExportRequest, unexportable } from '../rules/export-request.ts';
import { exportRefusal, mayExport } from '../rules/may-export.ts';
import { parseServiceKey, recordName } from '../rules/names.ts';
import { createSlicePlanner, type PublishedSlice, planSlices, type SlicePlan } from '../rules/plan-export-slices.ts';
import { plainShard, plainSlice } from '../rules/sealing/plain-record.ts';
import { localAddresses } from '../rules/shard-addresses.ts';
import { planShard, publishedRecord, shardAddresses } from '../rules/shard-record.ts';
import { bringSlice } from './bring-slice.ts';
import type { PublishingTurns } from './publishing-turns.ts';
import type { SealedExports, SealedFor } from './sealing/sealed-exports.ts';
import { traceExport } from './traces.ts';

/** Writes for one service to one home. */
const writes = { atOnceMax: 8 };

interface ExportFacts {
  readonly self: Member;
  readonly service: Service;
  readonly serviceExport: ServiceExport;
}

interface TracedPlan extends SlicePlan {
  readonly traceparent: string | undefined;
}

export interface ExportControllerOptions {
  readonly context: AgentContext;
  readonly publications: Publications;
  readonly turns: PublishingTurns;
  /** Without it an export that is to be sealed is not published. */
  readonly sealing: SealedExports | undefined;
}

export class ExportController {
  readonly #context: ExportControllerOptions['context'];
  readonly #publications: ExportControllerOptions['publications'];
  readonly #turns: ExportControllerOptions['turns'];
  readonly #sealing: ExportControllerOptions['sealing'];
  /** A copy from the broker that was found to be as wanted, and what was wanted then. */
  readonly #inSync = new WeakMap<EndpointSlice, PublishedSlice>();
  readonly #planSource = createSlicePlanner();

  constructor(options: ExportControllerOptions) {
    this.#context = options.context;
    this.#publications = options.publications;
    this.#turns = options.turns;
    this.#sealing = options.sealing;
  }

  async reconcile(key: string): Promise<WorkResult | undefined> {
    const { membership } = this.#context;
    const self = this.#context.members.get(membership.clusterId);
    if (self === undefined) {
      this.#publications.set(key, {
        kind: 'pending',
        message: `cluster ${membership.clusterId} is not a member of the clusterset`,
      });
      return undefined;
    }
    const serviceExport = this.#exportOf(key);
    const service = ownService(this.#context.copies, key);
    if (serviceExport === undefined || service === undefined || judgeService(service, key).kind === 'invalid') {
      await this.#withdraw(key, self);
      this.#publications.set(
        key,
        serviceExport === undefined ? undefined : { kind: 'pending', message: 'nothing to publish' },
      );
      return undefined;
    }
    const obstacle = this.#obstacleTo(key, self, service);
    if (obstacle !== undefined) {
      await this.#withdraw(key, self);
      this.#publications.set(key, obstacle);
      return undefined;
    }
    const message = readExportRequest(serviceExport).isSealed ? this.#sealingObstacle() : undefined;
    if (message === undefined) return this.#publish(key, { self, service, serviceExport });
    // Never in the open instead. What is sealed there already is no wider than was asked.
    await this.#withdrawOpen(key, self);
    this.#publications.set(key, { kind: 'failed', message });
    return { requeueAfterMs: sealingRetryMs };
  }

  #sealingObstacle(): string | undefined {
    return this.#sealing === undefined ? 'this agent cannot seal exports' : this.#sealing.obstacle;
  }

  #obstacleTo(key: string, self: Member, service: Service): Publication | undefined {
    const ref = parseServiceKey(key);
    if (!mayExport(self.cluster.spec, ref))
      return { kind: 'refused', message: exportRefusal(this.#context.membership.clusterId, ref) };
    const problem = unexportable(service, key);
    return problem === undefined ? undefined : { kind: 'failed', message: problem };
  }

  #exportOf(key: string): ServiceExport | undefined {
    const found = this.#context.copies.exports.get(key);
    return found?.metadata.deletionTimestamp === undefined ? found : undefined;
  }

  async #publish(key: string, facts: ExportFacts): Promise<WorkResult | undefined> {
    const request = {
      service: facts.service,
      sources: this.#context.copies.slices.byIndex(slicesByService, key),
      mode: this.#context.policy().endpoints,
      rules: this.#context.ownAddresses().rules,
      dns: { cluster: this.#context.membership.clusterId, zone: this.#context.policy().zone },
    };
    const plan = planSlices(request, this.#planSource);
    const { notes, exportTo, isSealed } = readExportRequest(facts.serviceExport);
    let sealedFor: SealedFor | undefined;
    try {
      // Until it is known whether cluster IPs are routed here, none is published.
      if (isSealed && this.#context.routesServices() === undefined) return { requeueAfterMs: unknownRoutesMs };
      if (isSealed) sealedFor = await this.#publishSealed(key, facts, plan);
      else {
        const waitMs = await this.#publishOpen(key, facts, plan);
        if (waitMs > 0) return { requeueAfterMs: waitMs };
      }
    } catch (error) {
      // Our copy was behind: the next attempt plans from a fresh one.
      if (isConflict(error) || (isNotFound(error) && this.#hasRecords(key, facts.self))) throw error;
      this.#publications.set(key, failureOf(error));
      // No failure of ours: soon over, and not to be waited for longer and longer.
      if (isQuotaUncounted(error)) return { requeueAfterMs: quotaCountedMs };
      throw error;
    }
    const { notes: leftOut } = shardAddresses(facts.service, this.#context.ownAddresses().rules);
    const all = [...this.#context.ownAddresses().notes, ...notes, ...plan.notes, ...leftOut];
    const { readyCount, refused } = plan;
    this.#publications.set(key, { kind: 'published', notes: all, exportTo, sealedFor, readyCount, refused });
    return undefined;
  }

  #traceOf(key: string, { serviceExport }: ExportFacts) {
    return traceExport(this.#context, parseServiceKey(key), serviceExport);
  }

  /** Returns how long it is to wait; 0 if it is written. */
  async #publishOpen(key: string, facts: ExportFacts, plan: SlicePlan): Promise<number> {
    // Endpoints first: an import that appears has something behind it.
    const trace = this.#ownShard(key, facts.self) === undefined ? this.#traceOf(key, facts) : undefined;
    await this.#publishSlices(key, facts.self, plan.slices);
    const traceparent = trace?.endpointsWritten();
    const waitMs = await this.#publishShard(key, facts, { ...plan, traceparent });
    if (waitMs > 0) return waitMs;
    trace?.recordWritten();
    await this.#sealing?.withdraw(key, facts.self);
    return 0;
  }

  async #publishSealed(key: string, facts: ExportFacts, plan: SlicePlan): Promise<SealedFor | undefined> {
    const { exportTo } = readExportRequest(facts.serviceExport);
    const place = { service: parseServiceKey(key), namespace: this.#context.membership.namespace };
    const slices = plan.slices.map((slice) => plainSlice(publishedRecord(slice, place)));
    const records = [...slices, plainShard(this.#shardFor(key, facts, { ...plan, traceparent: undefined }))];
    const sealedFor = await this.#sealing?.publish({ key, self: facts.self, exportTo, records });
    await this.#withdrawOpen(key, facts.self);
    return sealedFor;
  }

  async #publishSlices(key: string, { open: { endpoints } }: Member, slices: readonly PublishedSlice[]): Promise<void> {
    const there = endpoints.byIndex(byService, key).filter(({ metadata }) => !endpoints.isLost(metadata.name));
    const present = new Map(there.map((slice) => [slice.metadata.name, slice]));
    const names = new Set(slices.map(({ name }) => boundedName(name)));
    await inParallel(slices, writes, (slice) => this.#publishSlice(key, present.get(boundedName(slice.name)), slice));
    const leftovers = present.values().filter(({ metadata }) => !names.has(metadata.name));
    await inParallel(leftovers, writes, (slice) =>
      deleteIfPresent(this.#context.broker, endpointShardType, slice.metadata),
    );
  }

  async #publishSlice(key: string, present: EndpointSlice | undefined, slice: PublishedSlice): Promise<void> {
    if (present !== undefined && this.#inSync.get(present) === slice) return;
    const wanted = publishedRecord(slice, {
      service: parseServiceKey(key),
      namespace: this.#context.membership.namespace,
    });
    const wasInSync = await bringSlice({ client: this.#context.broker, type: endpointShardType, present, wanted });
    if (present !== undefined && wasInSync) this.#inSync.set(present, slice);
  }

  /** Returns how long it is to wait; 0 if it is written. */
  async #publishShard(key: string, facts: ExportFacts, plan: TracedPlan): Promise<number> {
    this.#turns.keep(key);
    const present = this.#ownShard(key, facts.self);
    const waitMs = present === undefined ? await this.#turns.waitMs(key) : 0;
    if (waitMs > 0) return waitMs;
    // Until it is known whether cluster IPs are routed here, none is published.
    if (this.#context.routesServices() === undefined) return unknownRoutesMs;
    const wanted = this.#shardFor(key, facts, plan);
    await apply<ServiceShard>({
      client: this.#context.broker,
      type: serviceShardType,
      present,
      change: replaceWith(wanted),
    });
    return 0;
  }

  #shardFor(key: string, facts: ExportFacts, plan: TracedPlan): ServiceShard {
    return planShard({
      service: facts.service,
      serviceExport: facts.serviceExport,
      readyCount: plan.readyCount,
      endpointShards: plan.slices.length,
      clusterSetIps: importOf(this.#context.copies, key)?.spec.ips ?? [],
      namespace: this.#context.membership.namespace,
      rules: this.#context.ownAddresses().rules,
      localIps: this.#localIpsOf(key, facts.service, plan),
      traceparent: plan.traceparent,
    });
  }

  /** Undefined where cluster IPs are routed: by a Kubernetes, or by whoever has the set publish them. */
  #localIpsOf(key: string, service: Service, plan: SlicePlan): string[] | undefined {
    const { endpoints } = this.#context.policy();
    if (endpoints === 'ClusterIP' || this.#context.routesServices() !== false) return undefined;
    const imported = importOf(this.#context.copies, key);
    const isCarried = conditionOf(imported?.status?.conditions, 'Ready')?.status === 'True';
    return localAddresses({
      service,
      carriedIps: isCarried ? (imported?.spec.ips ?? []) : [],
      addresses: shardAddresses(service, this.#context.ownAddresses().rules),
      slices: plan.slices,
    });
  }

  async #withdraw(key: string, self: Member): Promise<void> {
    await this.#withdrawOpen(key, self);
    await this.#sealing?.withdraw(key, self);
  }

  // The shard first: without it the slices are not read.
  async #withdrawOpen(key: string, self: Member): Promise<void> {
    const { broker } = this.#context;
    await this.#turns.forget(key);
    const shard = this.#ownShard(key, self);
    if (shard !== undefined) await deleteIfPresent(broker, serviceShardType, shard.metadata);
    for (const slice of self.open.endpoints.byIndex(byService, key))
      await deleteIfPresent(broker, endpointShardType, slice.metadata);
  }

  #hasRecords(key: string, self: Member): boolean {
    return self.endpoints.byIndex(byService, key).length > 0 || self.shards.get(shardName(key)) !== undefined;
  }

  #ownShard(key: string, self: Member): ServiceShard | undefined {
    const name = shardName(key);
    return self.open.shards.isLost(name) ? undefined : self.open.shards.get(name);
  }
}

function shardName(key: string): string {
  return recordName(parseServiceKey(key));
}

const sealingRetryMs = 1000;
const quotaCountedMs = 2000;
const unknownRoutesMs = 200;

function failureOf(error: unknown): Publication {
  if (isQuotaUncounted(error))
    return { kind: 'pending', message: 'the broker has not counted the quota of this cluster yet' };
  const message = `not written to the broker: ${errorText(error)}`;
  if (!isQuotaExceeded(error)) return { kind: 'failed', message };
  const what = 'export less, or ask the admin of the clusterset for a larger memberQuota';
  return { kind: 'over-quota', message: `${message}; ${what}` };
}

// Publishes what this cluster exports: for each valid ServiceExport one ServiceShard and its slices in this member's
// namespace at the broker; for everything else nothing, whatever an earlier run left there.

import { inParallel } from '../../base/in-parallel.ts';
import { errorText } from '../../base/log.ts';
import type { WorkResult } from '../../base/queue.ts';
import { deleteIfPresent } from '../../kube/client/absent.ts';
import { apply, replaceWith } from '../../kube/client/apply.ts';
import { boundedName } from '../../kube/objects/bounded-name.ts';
import { type EndpointSlice, endpointSliceType } from '../../kube/objects/endpoint-slice.ts';
import type { Service } from '../../kube/objects/service.ts';
import type { AgentContext } from '../copies/context.ts';
import { slicesByService } from '../copies/home-copies.ts';
import { byService, type Member } from '../copies/members.ts';
import type { ServiceExport } from '../kinds/service-export.ts';
import { type ServiceShard, serviceShardType } from '../kinds/service-shard.ts';
import { judgeService, type Publication } from '../rules/export-conditions.ts';
import { readExportRequest, unexportable } from '../rules/export-request.ts';
import { parseServiceKey, recordName } from '../rules/names.ts';
import { createSlicePlanner, type PublishedSlice, planSlices, type SlicePlan } from '../rules/plan-export-slices.ts';
import { planShard, publishedRecord } from '../rules/shard-record.ts';
import { bringSlice } from './bring-slice.ts';

/** Of one service, to one home. */
const writes = { atOnceMax: 8 };
/** Clocks further apart than this are worth a word. */
const skewMsMax = 5 * 60_000;

export interface ExportController {
  reconcile(key: string): Promise<WorkResult | undefined>;
  /** How far publishing the export has come; undefined if it has not been looked at. */
  publication(key: string): Publication | undefined;
}

export interface ExportControllerOptions {
  readonly context: AgentContext;
  /** Told when what `publication` says of a key has changed. */
  readonly onPublication: (key: string) => void;
}

export function createExportController({ context, onPublication }: ExportControllerOptions): ExportController {
  const publications = new Map<string, Publication>();
  /** A copy from the broker that was found to be as wanted, and what was wanted then. */
  const inSync = new WeakMap<EndpointSlice, PublishedSlice>();
  const planSource = createSlicePlanner();
  const { broker, copies, membership } = context;

  async function reconcile(key: string): Promise<WorkResult | undefined> {
    const self = context.members.get(membership.clusterId);
    if (self === undefined) {
      setPublication(key, {
        kind: 'pending',
        message: `cluster ${membership.clusterId} is not a member of the clusterset`,
      });
      return undefined;
    }
    const serviceExport = exportOf(key);
    const service = copies.services.get(key);
    if (serviceExport === undefined || service === undefined || judgeService(service, key).kind === 'invalid') {
      await withdraw(key, self);
      setPublication(key, serviceExport === undefined ? undefined : { kind: 'pending', message: 'nothing to publish' });
      return undefined;
    }
    const problem = unexportable(service, key);
    if (problem === undefined) await publish(key, { self, service, serviceExport });
    else {
      await withdraw(key, self);
      setPublication(key, { kind: 'failed', message: problem });
    }
    return undefined;
  }

  function exportOf(key: string): ServiceExport | undefined {
    const found = copies.exports.get(key);
    return found?.metadata.deletionTimestamp === undefined ? found : undefined;
  }

  async function publish(key: string, facts: { self: Member; service: Service; serviceExport: ServiceExport }) {
    const request = {
      service: facts.service,
      sources: copies.slices.byIndex(slicesByService, key),
      mode: context.policy().endpoints,
      rules: context.publishing().rules,
      dns: { cluster: membership.clusterId, zone: context.policy().zone },
    };
    const plan = planSlices(request, planSource);
    try {
      // Endpoints first: an import that appears has something behind it.
      await publishSlices(key, facts.self, plan.slices);
      await publishShard(key, facts, plan);
    } catch (error) {
      setPublication(key, { kind: 'failed', message: `not written to the broker: ${errorText(error)}` });
      throw error;
    }
    const { notes } = readExportRequest(facts.serviceExport);
    setPublication(key, { kind: 'published', notes: [...context.publishing().notes, ...notes, ...plan.notes] });
  }

  async function publishSlices(key: string, self: Member, slices: readonly PublishedSlice[]): Promise<void> {
    const present = new Map(self.slices.byIndex(byService, key).map((slice) => [slice.metadata.name, slice]));
    const names = new Set(slices.map(({ name }) => boundedName(name)));
    await inParallel(slices, writes, (slice) => publishSlice(key, present.get(boundedName(slice.name)), slice));
    const leftovers = present.values().filter(({ metadata }) => !names.has(metadata.name));
    await inParallel(leftovers, writes, (slice) => deleteIfPresent(broker, endpointSliceType, slice.metadata));
  }

  async function publishSlice(key: string, present: EndpointSlice | undefined, slice: PublishedSlice): Promise<void> {
    if (present !== undefined && inSync.get(present) === slice) return;
    const wanted = publishedRecord(slice, parseServiceKey(key), membership.namespace);
    const wasInSync = await bringSlice(broker, present, wanted);
    if (present !== undefined && wasInSync) inSync.set(present, slice);
  }

  async function publishShard(
    key: string,
    facts: { self: Member; service: Service; serviceExport: ServiceExport },
    plan: SlicePlan,
  ): Promise<void> {
    const wanted = planShard({
      service: facts.service,
      serviceExport: facts.serviceExport,
      readyCount: plan.readyCount,
      clusterSetIps: copies.imports.get(key)?.spec.ips ?? [],
      namespace: membership.namespace,
      translations: context.publishing().rules.translations,
    });
    const present = ownShard(key, facts.self);
    const shard = { client: broker, type: serviceShardType, present, change: replaceWith(wanted) };
    const { object: written } = await apply<ServiceShard>(shard);
    if (present === undefined) await tellSkew(facts.serviceExport, written);
  }

  // Exports are ranked by the times that clusters write. Ours is compared with the broker's whenever it stamps a shard.
  async function tellSkew(serviceExport: ServiceExport, { metadata }: ServiceShard): Promise<void> {
    const skewMs = context.world.clock.wallMs() - Date.parse(metadata.creationTimestamp ?? '');
    const aheadMs =
      Date.parse(serviceExport.metadata.creationTimestamp ?? '') - Date.parse(metadata.creationTimestamp ?? '');
    const worstMs = Math.abs(skewMs) > Math.abs(aheadMs) ? skewMs : Math.max(aheadMs, 0);
    if (Number.isNaN(worstMs) || Math.abs(worstMs) < skewMsMax) return;
    const minutes = Math.round(Math.abs(worstMs) / 60_000);
    const message = `clocks of this cluster are ${minutes} minutes ${worstMs > 0 ? 'ahead of' : 'behind'} the broker's; where exports disagree the oldest wins by these clocks, so set them right`;
    await context.events.record({ about: serviceExport, type: 'Warning', reason: 'ClockSkew', message });
  }

  // The shard first: without it nobody looks at the slices.
  async function withdraw(key: string, self: Member): Promise<void> {
    const shard = ownShard(key, self);
    if (shard !== undefined) await deleteIfPresent(broker, serviceShardType, shard.metadata);
    for (const slice of self.slices.byIndex(byService, key))
      await deleteIfPresent(broker, endpointSliceType, slice.metadata);
  }

  function ownShard(key: string, self: Member): ServiceShard | undefined {
    return self.shards.get(`${membership.namespace}/${recordName(parseServiceKey(key))}`);
  }

  function setPublication(key: string, publication: Publication | undefined): void {
    const before = publications.get(key);
    if (JSON.stringify(before) === JSON.stringify(publication)) return;
    if (publication === undefined) publications.delete(key);
    else publications.set(key, publication);
    onPublication(key);
  }

  return { reconcile, publication: (key) => publications.get(key) };
}

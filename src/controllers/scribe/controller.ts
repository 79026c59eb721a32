// Keeps the merged view of seed 002 on the broker: one ServiceImport per service in the clusterset's namespace, written by
// one scribe, the oldest exporter whose lease lives. People and older tools read it; nothing of ours derives from it. Only
// upgraded clusters are in it: to be named there is how a cluster is known to be one (seed 002, Migration).

import type { WorkResult } from '../../base/queue.ts';
import { isSameJson } from '../../base/same-json.ts';
import { isConflict, isNotFound } from '../../client/api-error.ts';
import type { Informer } from '../../client/informer.ts';
import { type Merge, mergeOutcome } from '../../model/merge.ts';
import { parseServiceKey, recordName } from '../../model/names-clusterset.ts';
import { byPrecedence } from '../../model/precedence.ts';
import { type ServiceImport, serviceImportType } from '../../model/service-import.ts';
import type { AgentContext } from '../context.ts';
import { ensure } from '../ensure.ts';
import { isOurImport, planImport } from '../import/plan-import.ts';
import { type CountedRecord, countedRecords } from '../standings.ts';

/** When a member's records have not all been listed yet, the key is looked at again after this time. */
const unsyncedRetryMs = 1_000;

export function createScribeController(context: AgentContext, views: Informer<ServiceImport>) {
  const { broker, membership } = context;

  async function reconcile(key: string): Promise<WorkResult | undefined> {
    const service = parseServiceKey(key);
    if (!context.members.hasSynced) return { requeueAfterMs: unsyncedRetryMs };
    const records = countedRecords(context, service, { withLegacy: false });
    if (scribeOf(records) !== membership.clusterId) return undefined;
    const name = recordName(service);
    const present = views.get(`${membership.clusterset}/${name}`);
    const merge = mergeOutcome({ shards: records.map(({ shard }) => shard), ports: context.policy().ports });
    if (merge === undefined) {
      if (present !== undefined && isOurImport(present)) await remove(present);
      return undefined;
    }
    await write({ service: { ...service, name }, merge, present });
    return undefined;
  }

  // Nobody exports it: the first member by id that lives clears the view away.
  function scribeOf(records: readonly CountedRecord[]): string | undefined {
    const alive = records.filter(({ cluster }) => context.verdict(cluster) === 'alive').map(({ shard }) => shard);
    const oldest = alive.sort(byPrecedence)[0];
    if (oldest !== undefined) return oldest.cluster;
    if (records.length > 0) return undefined;
    return context.members.all().find(({ id }) => context.verdict(id) === 'alive')?.id;
  }

  async function write(view: { service: { name: string }; merge: Merge; present: ServiceImport | undefined }) {
    const service = { namespace: membership.clusterset, name: view.service.name };
    const wanted = planImport({ service, merge: view.merge, ips: [] });
    const written = await ensure({ client: broker, type: serviceImportType, present: view.present, wanted });
    const clusters = view.merge.clusters.map((cluster) => ({ cluster }));
    if (isSameJson(written.status?.clusters, clusters)) return;
    await broker.updateStatus(serviceImportType, { ...written, status: { ...written.status, clusters } });
  }

  async function remove(present: ServiceImport): Promise<void> {
    const { name, namespace, resourceVersion } = present.metadata;
    try {
      await broker.delete(serviceImportType, { name, namespace }, { preconditions: { resourceVersion } });
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  }

  return { reconcile };
}

// Keeps the merged view of seed 002 on the broker: one ServiceImport per service in the clusterset's namespace, written by
// one scribe, the oldest exporter whose lease lives. People and older tools read it; nothing of ours derives from it. Only
// upgraded clusters are in it: to be named there is how a cluster is known to be one (seed 002, Migration).

import { isSameJson } from '../../base/json.ts';
import type { WorkResult } from '../../base/queue.ts';
import { deleteIfPresent } from '../../kube/client/absent.ts';
import { apply, isAsWanted, replaceWith } from '../../kube/client/apply.ts';
import type { Informer } from '../../kube/controller/informer.ts';
import { createPutBacks } from '../../kube/controller/put-backs.ts';
import { isConflict } from '../../kube/objects/api-error.ts';
import type { AgentContext } from '../copies/context.ts';
import { type CountedRecord, countedRecords } from '../copies/standings.ts';
import { type ServiceImport, serviceImportType } from '../kinds/service-import.ts';
import { mergeOutcome } from '../rules/merge/merge.ts';
import type { Merge } from '../rules/merge/merged.ts';
import { byPrecedence } from '../rules/merge/shard.ts';
import { parseServiceKey, recordName } from '../rules/names.ts';
import { isOurImport, planImport } from '../rules/plan-import.ts';

/** When a member's records have not all been listed yet, the key is looked at again after this time. */
const unsyncedRetryMs = 1_000;

export function createScribeController(context: AgentContext, views: Informer<ServiceImport>) {
  const { broker, membership, world } = context;
  // Two may take themselves for the scribe: one whose lease has run out for others, or whose copies are behind.
  const putBacks = createPutBacks(world.clock);

  async function reconcile(key: string): Promise<WorkResult | undefined> {
    const service = parseServiceKey(key);
    const name = recordName(service);
    const present = views.get(`${membership.clusterset}/${name}`);
    if (mustWait(present)) return { requeueAfterMs: unsyncedRetryMs };
    const records = countedRecords(context, service, { withLegacy: false });
    if (scribeOf(records) !== membership.clusterId) return undefined;
    const merge = mergeOutcome({ shards: records.map(({ shard }) => shard), ports: context.policy().ports });
    const wanted = merge && viewOf(name, merge);
    if (isInOrder(present, wanted)) return undefined;
    const waitMs = putBacks.waitMs(key, wanted);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    if (wanted !== undefined) await write(present, wanted);
    else if (present !== undefined) await remove(present);
    putBacks.wrote(key, wanted);
    return undefined;
  }

  // A member that cannot be read may be the one that this view is made of. It holds up no view that it is not part of.
  function mustWait(present: ServiceImport | undefined): boolean {
    const unsynced = context.members.unsynced();
    if (!context.members.clusters.hasSynced) return true;
    return present?.status?.clusters?.some(({ cluster }) => unsynced.includes(cluster)) ?? false;
  }

  function viewOf(name: string, merge: Merge): ServiceImport {
    const view = planImport({ service: { namespace: membership.clusterset, name }, merge, ips: [] });
    return { ...view, status: { clusters: merge.clusters.map((cluster) => ({ cluster })) } };
  }

  function isInOrder(present: ServiceImport | undefined, wanted: ServiceImport | undefined): boolean {
    if (wanted === undefined) return present === undefined || !isOurImport(present);
    return present !== undefined && isAsWanted(present, wanted) && hasClusters(present, wanted);
  }

  // Nobody exports it: the first member by id that lives clears the view away.
  function scribeOf(records: readonly CountedRecord[]): string | undefined {
    const alive = records.filter(({ cluster }) => context.verdict(cluster) === 'alive').map(({ shard }) => shard);
    const oldest = alive.sort(byPrecedence)[0];
    if (oldest !== undefined) return oldest.cluster;
    if (records.length > 0) return undefined;
    const unsynced = context.members.unsynced();
    return context.members.all().find(({ id }) => context.verdict(id) === 'alive' && !unsynced.includes(id))?.id;
  }

  async function write(present: ServiceImport | undefined, wanted: ServiceImport): Promise<void> {
    const { object: written } = await apply({
      client: broker,
      type: serviceImportType,
      present,
      change: replaceWith(wanted),
    });
    if (hasClusters(written, wanted)) return;
    await broker.updateStatus(serviceImportType, { ...written, status: { ...written.status, ...wanted.status } });
  }

  async function remove(present: ServiceImport): Promise<void> {
    const { name, namespace, resourceVersion } = present.metadata;
    try {
      await deleteIfPresent(broker, serviceImportType, { name, namespace }, { resourceVersion });
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }

  return { reconcile };
}

function hasClusters(view: ServiceImport, wanted: ServiceImport): boolean {
  return isSameJson(view.status?.clusters, wanted.status?.clusters);
}

// Keeps publishing this cluster's exports in the older form until every other cluster has been upgraded, then removes
// them; and clears away the copies that an older agent left in this home of clusters that are upgraded.

import type { WorkResult } from '../../base/queue.ts';
import { deleteIfPresent } from '../../kube/client/absent.ts';
import { apply, replaceWith } from '../../kube/client/apply.ts';
import type { AgentContext } from '../copies/context.ts';
import { legacyImports } from '../copies/home-copies.ts';
import { type LegacyRecords, legacyByService } from '../copies/legacy-records.ts';
import { isSealed } from '../kinds/service-export.ts';
import { serviceImportType } from '../kinds/service-import.ts';
import { isUpgraded, shardOf } from '../members/follower.ts';
import { judgeService } from '../rules/export-conditions.ts';
import { legacyOrigin, planLegacyImport } from '../rules/legacy-import.ts';
import { parseServiceKey } from '../rules/names.ts';

/** How long both forms are published side by side. */
const overlapMs = 15_000;

export interface LegacyController {
  reconcile(key: string): Promise<WorkResult | undefined>;
}

export function createLegacyController(context: AgentContext, legacy: LegacyRecords): LegacyController {
  const { broker, home, copies, members, membership } = context;
  /** Since when our shard of a service has been seen at the broker. */
  const publishedSince = new Map<string, number>();

  async function reconcile(key: string): Promise<WorkResult | undefined> {
    const { namespace, imports } = legacy;
    if (namespace === undefined || imports === undefined || !legacy.hasSynced || !members.hasSynced) return undefined;
    const service = copies.services.get(key);
    const serviceExport = copies.exports.get(key);
    // The older form cannot be sealed.
    const isExported =
      serviceExport !== undefined &&
      !isSealed(serviceExport) &&
      service !== undefined &&
      judgeService(service, key).kind === 'valid';
    const own = imports
      .byIndex(legacyByService, key)
      .find((object) => legacyOrigin(object)?.cluster === membership.clusterId);
    if (isExported && !legacy.isEverybodyUpgraded()) {
      const wanted = planLegacyImport(service, membership.clusterId, namespace);
      await apply({ client: broker, type: serviceImportType, present: own, change: replaceWith(wanted) });
    } else if (own !== undefined) {
      const waitMs = isExported ? untilSeenMs(key) : 0;
      if (waitMs > 0) return { requeueAfterMs: waitMs };
      await deleteIfPresent(broker, serviceImportType, own.metadata);
    }
    await clearLocalCopies(key);
    return undefined;
  }

  /** The older form goes only after all members have had time to see the new one, which travels on other ways. */
  function untilSeenMs(key: string): number {
    const self = members.get(membership.clusterId);
    if (self === undefined || shardOf(self, parseServiceKey(key)) === undefined) return overlapMs;
    const nowMs = context.world.clock.monotonicMs();
    const sinceMs = publishedSince.get(key) ?? nowMs;
    publishedSince.set(key, sinceMs);
    return sinceMs + overlapMs - nowMs;
  }

  /** The imports of an older agent lie in its own namespace, under their older names. */
  async function clearLocalCopies(key: string): Promise<void> {
    const shared = new Set((legacy.imports?.byIndex(legacyByService, key) ?? []).map(({ metadata }) => metadata.uid));
    for (const object of copies.imports.byIndex(legacyImports, key)) {
      // Where this home is the broker too, these belong to all members.
      if (shared.has(object.metadata.uid)) continue;
      const cluster = legacyOrigin(object)?.cluster ?? '';
      const isStale = cluster === membership.clusterId || isUpgraded(members.get(cluster));
      if (isStale) await deleteIfPresent(home, serviceImportType, object.metadata);
    }
  }

  return { reconcile };
}

// Writes into each FederatedService what became of it in every cluster. One member writes, the first by id that
// lives; people read it, nothing of ours derives from it. It is computed from the objects in the members' own
// namespaces.

import { isSameJson } from '../../base/json.ts';
import type { WorkResult } from '../../base/queue.ts';
import type { Informer } from '../../kube/controller/informer.ts';
import { createPutBacks } from '../../kube/controller/put-backs.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import { formatTime, withConditions } from '../../kube/objects/conditions.ts';
import type { AgentContext } from '../copies/context.ts';
import { type FederatedService, federatedServiceType } from '../kinds/federated-service.ts';
import type { Member } from '../members/follower.ts';
import { exportRefusal, mayExport } from '../rules/may-export.ts';
import { parseServiceKey, recordName } from '../rules/names.ts';
import {
  type MemberPlacement,
  parseProblems,
  placedClusters,
  placementCondition,
  placementsAnnotation,
} from '../rules/placement.ts';

/** While heartbeats are not listed, the key is looked at again after this time. */
const unlistedRetryMs = 1_000;

export function createPlacementStatusController(context: AgentContext, federated: Informer<FederatedService>) {
  const { broker, members, membership, world } = context;
  const putBacks = createPutBacks(world.clock);

  async function reconcile(key: string): Promise<WorkResult | undefined> {
    const name = recordName(parseServiceKey(key));
    const present = federated.get(`${membership.clusterset}/${name}`);
    if (present === undefined || present.metadata.deletionTimestamp !== undefined) return undefined;
    const all = members.all();
    if (all.find(({ id }) => context.verdict(id) === 'alive')?.id !== membership.clusterId) return undefined;
    // The reports are in the heartbeats, which the first members watch.
    if (!members.areHeartbeatsWatched) return { requeueAfterMs: unlistedRetryMs };
    const placements = all.map((member) => placementOf(member, key, name));
    const clusters = placedClusters(present, placements);
    const stamp = { now: formatTime(world.clock.wallMs()), observedGeneration: present.metadata.generation };
    const conditions = [...withConditions(present.status?.conditions, [placementCondition(clusters)], stamp)];
    const status = { ...present.status, clusters, conditions };
    if (isSameJson(status, present.status)) return undefined;
    const said = { clusters, generation: present.metadata.generation };
    const waitMs = putBacks.waitMs(key, said);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    await write({ ...present, status });
    putBacks.wrote(key, said);
    return undefined;
  }

  function placementOf(member: Member, key: string, name: string): MemberPlacement {
    const service = parseServiceKey(key);
    const reported = parseProblems(member.heartbeat()?.metadata.annotations?.[placementsAnnotation]).get(name);
    const refused = mayExport(member.cluster.spec, service)
      ? undefined
      : ({ state: 'Refused', message: exportRefusal(member.id, service) } as const);
    return {
      cluster: member.id,
      isAlive: context.verdict(member.id) === 'alive',
      // Everybody reads this status.
      hasShard: member.open.shards.get(recordName(service)) !== undefined,
      problem: reported ?? refused,
    };
  }

  async function write(object: FederatedService): Promise<void> {
    try {
      await broker.updateStatus(federatedServiceType, object);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  return { reconcile };
}

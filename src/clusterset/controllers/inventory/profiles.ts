// Keeps a ClusterProfile for each member at the broker, for tools that read the Cluster Inventory API. One member writes: the
// first living one of those that the ClusterSet names. Profiles of other cluster managers are left as they are, also where one
// has the name of a member; the condition Inventory of the ClusterSet says so.

import { isSameJson } from '../../../base/json.ts';
import { errorText } from '../../../base/log.ts';
import type { WorkResult } from '../../../base/queue.ts';
import { deleteIfPresent } from '../../../kube/client/absent.ts';
import { apply, type Change, mergeInto } from '../../../kube/client/apply.ts';
import { createPutBacks } from '../../../kube/controller/put-backs.ts';
import { ApiError, isConflict } from '../../../kube/objects/api-error.ts';
import { formatTime, type WantedCondition, withConditions } from '../../../kube/objects/conditions.ts';
import type { AgentContext } from '../../copies/context.ts';
import type { Cluster } from '../../kinds/cluster.ts';
import { type ClusterProfile, type ClusterProfileStatus, clusterProfileType } from '../../kinds/cluster-profile.ts';
import { type ClusterSet, clusterSetType } from '../../kinds/cluster-set.ts';
import type { Member } from '../../members/follower.ts';
import { readHeartbeat } from '../../members/read-heartbeat.ts';
import type { SharedCopy } from '../../members/shared-copy.ts';
import { type InventoryProblem, inventoryWanted } from '../../rules/inventory/inventory-condition.ts';
import { isProfileOf, plannedProfile, plannedProfileStatus, profileConditions } from '../../rules/inventory/profile.ts';

/** The key of the condition; no id of a cluster is empty. */
export const summaryKey = '';

/** Its life is looked at again after this time: heartbeats may not be watched here. */
const lookAgainMs = 60_000;
const unlistedRetryMs = 5_000;

export interface InventoryOptions {
  readonly context: AgentContext;
  readonly profiles: SharedCopy<ClusterProfile>;
  /** Works on that key once more. */
  readonly again: (key: string) => void;
}

export function createInventoryController({ context, profiles, again }: InventoryOptions) {
  const { broker, members, membership, world, log } = context;
  const { clusterset } = membership;
  const present = profiles.part(clusterset);
  const putBacks = createPutBacks(world.clock);
  /** What became of each member; undefined where its profile is as wanted. */
  const outcomes = new Map<string, InventoryProblem | undefined>();

  async function reconcile(id: string): Promise<WorkResult | undefined> {
    if (!isWriter()) {
      outcomes.clear();
      return undefined;
    }
    if (id === summaryKey) return summarize();
    // All are looked at when the list is there.
    if (!profiles.hasSynced) return undefined;
    const member = members.get(id);
    const profile = present.get(id);
    if (profile !== undefined && !isProfileOf(profile, clusterset)) {
      const whose = profile.spec?.clusterManager?.name ?? 'nobody';
      note(id, { reason: 'NameTaken', message: `its ClusterProfile belongs to cluster manager ${whose}` });
    } else if (member !== undefined) return keep(member, profile);
    else if (profile !== undefined) await remove(profile);
    if (member === undefined && outcomes.delete(id)) again(summaryKey);
    return undefined;
  }

  /** A refusal is noted for people, and tried again later and later by the queue. */
  async function keep(member: Member, profile: ClusterProfile | undefined): Promise<WorkResult | undefined> {
    try {
      const waitMs = await write(member, profile);
      note(member.id, undefined);
      return { requeueAfterMs: waitMs > 0 ? waitMs : lookAgainMs };
    } catch (error) {
      if (error instanceof ApiError && error.code < 500 && !isConflict(error))
        note(member.id, { reason: 'Refused', message: errorText(error) });
      throw error;
    }
  }

  /** How long it is left as others have changed it; 0 once it is as wanted. */
  async function write(member: Member, profile: ClusterProfile | undefined): Promise<number> {
    const { id, cluster } = member;
    const wanted = plannedProfile(clusterset, cluster);
    const conditions = profileConditions({ verdict: context.verdict(id), heartbeat: await heartbeatOf(member) });
    const change: Change<ClusterProfile> = (there) =>
      there !== undefined && !isProfileOf(there, clusterset) ? there : mergeInto(wanted)(there);
    const isWhole = profile !== undefined && isSameJson(change(profile), profile);
    if (isWhole && isSameJson(statusOf(profile, cluster, conditions), profile.status)) return 0;
    const planned = { ...wanted, status: plannedProfileStatus(cluster), conditions };
    const waitMs = putBacks.waitMs(id, planned);
    if (waitMs > 0) return waitMs;
    const { object } = await apply({ client: broker, type: clusterProfileType, present: profile, change });
    // Of another manager since it was listed: the next event shows it.
    if (!isProfileOf(object, clusterset)) return unlistedRetryMs;
    const status = statusOf(object, cluster, conditions);
    if (!isSameJson(status, object.status)) await broker.updateStatus(clusterProfileType, { ...object, status });
    putBacks.wrote(id, planned);
    return 0;
  }

  function statusOf(
    { metadata, status }: ClusterProfile,
    cluster: Cluster,
    conditions: readonly WantedCondition[],
  ): ClusterProfileStatus {
    const stamp = { now: formatTime(world.clock.wallMs()), observedGeneration: metadata.generation };
    const stamped = withConditions(status?.conditions ?? undefined, conditions, stamp);
    return { ...plannedProfileStatus(cluster), conditions: [...stamped] };
  }

  async function heartbeatOf(member: Member) {
    if (members.areHeartbeatsWatched) return member.heartbeat();
    return readHeartbeat(broker, member.cluster.spec.namespace);
  }

  async function remove({ metadata }: ClusterProfile): Promise<void> {
    if (await deleteIfPresent(broker, clusterProfileType, metadata))
      log.info('removed the ClusterProfile of a cluster that is no member any more', { member: metadata.name });
  }

  function note(id: string, problem: InventoryProblem | undefined): void {
    const isSame = outcomes.has(id) && outcomes.get(id)?.message === problem?.message;
    outcomes.set(id, problem);
    if (isSame) return;
    if (problem !== undefined) log.warn('a member has no ClusterProfile of ours', { member: id, why: problem.message });
    again(summaryKey);
  }

  async function summarize(): Promise<WorkResult | undefined> {
    const unread = profiles.hasSynced ? undefined : profiles.problem;
    const later = profiles.hasSynced ? undefined : { requeueAfterMs: unlistedRetryMs };
    const ids = members.all().map(({ id }) => id);
    // Nothing is said before each member was worked on.
    if (unread === undefined && (later !== undefined || !ids.every((id) => outcomes.has(id)))) return later;
    const ref = { namespace: clusterset, name: clusterset };
    const { metadata, status } = await broker.get<ClusterSet>(clusterSetType, ref);
    const stamp = { now: formatTime(world.clock.wallMs()), observedGeneration: metadata.generation };
    const conditions = withConditions(status?.conditions, [inventoryWanted({ outcomes, unread })], stamp);
    if (conditions === status?.conditions) return later;
    const body = { metadata: { resourceVersion: metadata.resourceVersion }, status: { conditions } };
    await broker.patch(clusterSetType, ref, { kind: 'merge', body }, { subresource: 'status' });
    return later;
  }

  /** Of the named the first that lives. */
  function isWriter(): boolean {
    const isLiving = (id: string) => members.get(id) !== undefined && context.verdict(id) === 'alive';
    return context.policy().inventoryWriters.find(isLiving) === membership.clusterId;
  }

  return { reconcile };
}

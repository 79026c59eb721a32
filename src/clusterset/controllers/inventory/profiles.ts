// Keeps a ClusterProfile for each member at the broker, for tools that read the Cluster Inventory API. One member writes: the
// first living one of those that the ClusterSet names. Profiles of other cluster managers are left as they are, also where one
// has the name of a member; the condition Inventory of the ClusterSet says so.

import { isSameJson } from '../../../base/json.ts';
import { errorText } from '../../../base/log.ts';
import type { WorkResult } from '../../../base/queue.ts';
import { deleteIfPresent } from '../../../kube/client/absent.ts';
import { apply, type Change, mergeInto } from '../../../kube/client/apply.ts';
import { createPutBacks, type PutBacks } from '../../../kube/controller/put-backs.ts';
import { ApiError, isConflict } from '../../../kube/objects/api-error.ts';
import { formatTime, type WantedCondition, withConditions } from '../../../kube/objects/conditions.ts';
import type { AgentContext } from '../../copies/context.ts';
import type { Cluster } from '../../kinds/cluster.ts';
import { type ClusterProfile, type ClusterProfileStatus, clusterProfileType } from '../../kinds/cluster-profile.ts';
import { type ClusterSet, clusterSetType } from '../../kinds/cluster-set.ts';
import type { Member } from '../../members/follower.ts';
import { readHeartbeat } from '../../members/read-heartbeat.ts';
import type { RecordPart, SharedCopy } from '../../members/shared-copy.ts';
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

export class InventoryController {
  readonly #context: InventoryOptions['context'];
  readonly #profiles: InventoryOptions['profiles'];
  readonly #again: InventoryOptions['again'];
  readonly #present: RecordPart<ClusterProfile>;
  readonly #putBacks: PutBacks;
  /** What became of each member; undefined where its profile is as wanted. */
  readonly #outcomes = new Map<string, InventoryProblem | undefined>();

  constructor({ context, profiles, again }: InventoryOptions) {
    this.#context = context;
    this.#profiles = profiles;
    this.#again = again;
    this.#present = this.#profiles.part(this.#context.membership.clusterset);
    this.#putBacks = createPutBacks(this.#context.world.clock);
  }

  async reconcile(id: string): Promise<WorkResult | undefined> {
    if (!this.#isWriter()) {
      this.#outcomes.clear();
      return undefined;
    }
    if (id === summaryKey) return this.#summarize();
    // All are looked at when the list is there.
    if (!this.#profiles.hasSynced) return undefined;
    const member = this.#context.members.get(id);
    const profile = this.#present.get(id);
    if (profile !== undefined && !isProfileOf(profile, this.#context.membership.clusterset)) {
      const whose = profile.spec?.clusterManager?.name ?? 'nobody';
      this.#note(id, { reason: 'NameTaken', message: `its ClusterProfile belongs to cluster manager ${whose}` });
    } else if (member !== undefined) return this.#keep(member, profile);
    else if (profile !== undefined) await this.#remove(profile);
    if (member === undefined && this.#outcomes.delete(id)) this.#again(summaryKey);
    return undefined;
  }

  /** A refusal is noted for people, and tried again later and later by the queue. */
  async #keep(member: Member, profile: ClusterProfile | undefined): Promise<WorkResult | undefined> {
    try {
      const waitMs = await this.#write(member, profile);
      this.#note(member.id, undefined);
      return { requeueAfterMs: waitMs > 0 ? waitMs : lookAgainMs };
    } catch (error) {
      if (error instanceof ApiError && error.code < 500 && !isConflict(error))
        this.#note(member.id, { reason: 'Refused', message: errorText(error) });
      throw error;
    }
  }

  /** How long it is left as others have changed it; 0 once it is as wanted. */
  async #write(member: Member, profile: ClusterProfile | undefined): Promise<number> {
    const { clusterset } = this.#context.membership;
    const { broker } = this.#context;
    const { id, cluster } = member;
    const wanted = plannedProfile(clusterset, cluster);
    const conditions = profileConditions({
      verdict: this.#context.verdict(id),
      heartbeat: await this.#heartbeatOf(member),
    });
    const change: Change<ClusterProfile> = (there) =>
      there !== undefined && !isProfileOf(there, clusterset) ? there : mergeInto(wanted)(there);
    const isWhole = profile !== undefined && isSameJson(change(profile), profile);
    if (isWhole && isSameJson(this.#statusOf(profile, cluster, conditions), profile.status)) return 0;
    const planned = { ...wanted, status: plannedProfileStatus(cluster), conditions };
    const waitMs = this.#putBacks.waitMs(id, planned);
    if (waitMs > 0) return waitMs;
    const { object } = await apply({ client: broker, type: clusterProfileType, present: profile, change });
    // Of another manager since it was listed: the next event shows it.
    if (!isProfileOf(object, clusterset)) return unlistedRetryMs;
    const status = this.#statusOf(object, cluster, conditions);
    if (!isSameJson(status, object.status)) await broker.updateStatus(clusterProfileType, { ...object, status });
    this.#putBacks.wrote(id, planned);
    return 0;
  }

  #statusOf(
    { metadata, status }: ClusterProfile,
    cluster: Cluster,
    conditions: readonly WantedCondition[],
  ): ClusterProfileStatus {
    const stamp = { now: formatTime(this.#context.world.clock.wallMs()), observedGeneration: metadata.generation };
    const stamped = withConditions(status?.conditions ?? undefined, conditions, stamp);
    return { ...plannedProfileStatus(cluster), conditions: [...stamped] };
  }

  async #heartbeatOf(member: Member) {
    if (this.#context.members.areHeartbeatsWatched) return member.heartbeat();
    return readHeartbeat(this.#context.broker, member.cluster.spec.namespace);
  }

  async #remove({ metadata }: ClusterProfile): Promise<void> {
    if (await deleteIfPresent(this.#context.broker, clusterProfileType, metadata))
      this.#context.log.info('removed the ClusterProfile of a cluster that is no member any more', {
        member: metadata.name,
      });
  }

  #note(id: string, problem: InventoryProblem | undefined): void {
    const isSame = this.#outcomes.has(id) && this.#outcomes.get(id)?.message === problem?.message;
    this.#outcomes.set(id, problem);
    if (isSame) return;
    if (problem !== undefined)
      this.#context.log.warn('a member has no ClusterProfile of ours', { member: id, why: problem.message });
    this.#again(summaryKey);
  }

  async #summarize(): Promise<WorkResult | undefined> {
    const { clusterset } = this.#context.membership;
    const { broker } = this.#context;
    const unread = this.#profiles.hasSynced ? undefined : this.#profiles.problem;
    const later = this.#profiles.hasSynced ? undefined : { requeueAfterMs: unlistedRetryMs };
    const ids = this.#context.members.all().map(({ id }) => id);
    // Nothing is said before each member was worked on.
    if (unread === undefined && (later !== undefined || !ids.every((id) => this.#outcomes.has(id)))) return later;
    const ref = { namespace: clusterset, name: clusterset };
    const { metadata, status } = await broker.get<ClusterSet>(clusterSetType, ref);
    const stamp = { now: formatTime(this.#context.world.clock.wallMs()), observedGeneration: metadata.generation };
    const conditions = withConditions(
      status?.conditions,
      [inventoryWanted({ outcomes: this.#outcomes, unread })],
      stamp,
    );
    if (conditions === status?.conditions) return later;
    const body = { metadata: { resourceVersion: metadata.resourceVersion }, status: { conditions } };
    await broker.patch(clusterSetType, ref, { kind: 'merge', body }, { subresource: 'status' });
    return later;
  }

  /** The first living member of those that the ClusterSet names writes. */
  #isWriter(): boolean {
    const isLiving = (id: string) =>
      this.#context.members.get(id) !== undefined && this.#context.verdict(id) === 'alive';
    return this.#context.policy().inventoryWriters.find(isLiving) === this.#context.membership.clusterId;
  }
}

// Writes on each ServiceExport of this cluster what became of it: Valid, Ready and Conflict, and an Event when one of
// them changed. Runs the same merge as every importer, so that all exporters say the same.

import { isSameJson } from '../../base/json.ts';
import type { WorkResult } from '../../base/queue.ts';
import { isNotFound } from '../../kube/objects/api-error.ts';
import { conditionOf, formatTime, withConditions } from '../../kube/objects/conditions.ts';
import type { Condition } from '../../kube/objects/object.ts';
import type { AgentContext } from '../copies/context.ts';
import { countedRecords } from '../copies/counted-records.ts';
import { ownService } from '../copies/home-copies.ts';
import type { Publications } from '../copies/publications.ts';
import { type ServiceExport, serviceExportType } from '../kinds/service-export.ts';
import { exportConditions, judgeService, type Publication } from '../rules/export-conditions.ts';
import { inPrecedence, type MergeWithConflicts, mergeShards } from '../rules/merge/merge.ts';
import { parseServiceKey } from '../rules/names.ts';
import type { PublishingTurns } from './publishing-turns.ts';

export interface ConditionsOptions {
  readonly context: AgentContext;
  readonly publications: Pick<Publications, 'get'>;
  readonly turns: Pick<PublishingTurns, 'note'>;
}

export class ConditionsController {
  readonly #context: ConditionsOptions['context'];
  readonly #publications: ConditionsOptions['publications'];
  readonly #turns: ConditionsOptions['turns'];
  /** The cluster whose export decided, when a service was last reconciled. */
  readonly #deciders = new Map<string, string>();

  constructor({ context, publications, turns }: ConditionsOptions) {
    this.#context = context;
    this.#publications = publications;
    this.#turns = turns;
  }

  async reconcile(key: string): Promise<WorkResult | undefined> {
    const { copies, membership } = this.#context;
    const serviceExport = copies.exports.get(key);
    if (serviceExport === undefined || serviceExport.metadata.deletionTimestamp !== undefined) {
      this.#deciders.delete(key);
      return undefined;
    }
    // Not looked at since we started: whatever the conditions say is better than what we know.
    const published = this.#publications.get(key);
    if (published === undefined) return undefined;
    const merge = await this.#mergeOf(key, published);
    const wanted = exportConditions({
      cluster: membership.clusterId,
      validity: judgeService(ownService(copies, key), key),
      publication: published,
      brokerAwaySince: formatted(this.#context.brokerAwaySinceMs()),
      merge: merge?.clusters.concat(merge.excluded).includes(membership.clusterId) ? merge : undefined,
    });
    const present = serviceExport.status?.conditions;
    const stamp = {
      now: formatTime(this.#context.world.clock.wallMs()),
      observedGeneration: serviceExport.metadata.generation,
    };
    const conditions = withConditions(present, wanted, stamp);
    const clusters = this.#seenBy(published) ?? serviceExport.status?.clusters;
    const isSameClusters = isSameJson(clusters ?? [], serviceExport.status?.clusters ?? []);
    if (conditions !== present || !isSameClusters) await this.#write(serviceExport, conditions, clusters);
    await this.#tellDecider(serviceExport, key, merge);
    return undefined;
  }

  /** Only clusters that read a sealed export too: others cannot see what they would disagree with. */
  async #mergeOf(key: string, publication: Publication): Promise<MergeWithConflicts | undefined> {
    const records = countedRecords(this.#context, parseServiceKey(key), { withLegacy: true });
    const readers = publication.kind === 'published' ? publication.sealedFor?.readers : undefined;
    const isMutual = (cluster: string) =>
      readers === undefined || cluster === this.#context.membership.clusterId || readers.includes(cluster);
    const shards = records.filter(({ cluster }) => isMutual(cluster)).map(({ shard }) => shard);
    await this.#turns.note(
      key,
      inPrecedence(shards).map(({ cluster }) => cluster),
    );
    return mergeShards({ shards, ports: this.#context.policy().ports });
  }

  /** Members that may import it, where that is limited; empty where it is not, undefined while it is not published. */
  #seenBy(publication: Publication): { cluster: string }[] | undefined {
    if (publication.kind !== 'published') return undefined;
    const { exportTo = [], sealedFor } = publication;
    const isOther = (id: string) =>
      id !== this.#context.membership.clusterId && this.#context.members.get(id) !== undefined;
    return (sealedFor?.readers ?? exportTo.filter(isOther)).toSorted().map((cluster) => ({ cluster }));
  }

  async #write(
    serviceExport: ServiceExport,
    conditions: readonly Condition[],
    clusters: { cluster: string }[] | undefined,
  ): Promise<void> {
    const status = {
      ...serviceExport.status,
      conditions: [...conditions],
      clusters: clusters?.length ? clusters : undefined,
    };
    try {
      await this.#context.home.updateStatus(serviceExportType, { ...serviceExport, status });
    } catch (error) {
      if (isNotFound(error)) return;
      throw error;
    }
    for (const type of ['Valid', 'Ready', 'Conflict']) {
      await this.#tellChange(
        serviceExport,
        conditionOf(serviceExport.status?.conditions, type),
        conditionOf(conditions, type),
      );
    }
  }

  async #tellChange(about: ServiceExport, before: Condition | undefined, after: Condition | undefined): Promise<void> {
    if (after === undefined || isMatterOfBroker(before, after)) return;
    if (before?.status === after.status && before.reason === after.reason) {
      await this.#tellNotes(about, before.message, after);
      return;
    }
    // The first sight of something ordinary is not worth an Event; its opposite, and its return, are.
    const isOrdinary = after.reason === 'NoConflicts' || after.reason === 'Valid' || after.reason === 'Pending';
    if (before === undefined && isOrdinary) return;
    const isBad = after.type === 'Conflict' ? after.status === 'True' : after.status !== 'True';
    await this.#tellNotes(about, undefined, after);
    await this.#context.events.record({
      about,
      type: isBad && after.reason !== 'Pending' ? 'Warning' : 'Normal',
      reason: after.type === 'Conflict' ? (isBad ? 'Conflict' : 'ConflictResolved') : after.reason,
      message: after.message,
    });
  }

  // Exported, but not all that was asked for: the condition says so quietly.
  async #tellNotes(about: ServiceExport, said: string | undefined, after: Condition): Promise<void> {
    const hasNotes = after.type === 'Ready' && after.status === 'True' && after.message.includes('; ');
    if (!hasNotes || said === after.message) return;
    await this.#context.events.record({ about, type: 'Warning', reason: 'PartlyExported', message: after.message });
  }

  // The conflict messages said beforehand what would change if the winner left; this says that it has.
  async #tellDecider(about: ServiceExport, key: string, merge: MergeWithConflicts | undefined): Promise<void> {
    const before = this.#deciders.get(key);
    const after = merge?.decider.cluster;
    if (after === undefined) this.#deciders.delete(key);
    else this.#deciders.set(key, after);
    if (before === undefined || after === undefined || before === after) return;
    const message = `cluster ${after} now decides what cannot be combined; before it was ${before}`;
    await this.#context.events.record({ about, type: 'Normal', reason: 'DeciderChanged', message });
  }
}

function formatted(wallMs: number | undefined): string | undefined {
  return wallMs === undefined ? undefined : formatTime(wallMs);
}

/** The broker went away, or is back and nothing bad has come of it: that is no news of each single export. */
function isMatterOfBroker(before: Condition | undefined, after: Condition): boolean {
  if (after.status === 'Unknown') return true;
  const isGood = after.status === (after.type === 'Conflict' ? 'False' : 'True');
  return before?.status === 'Unknown' && (isGood || before.reason === after.reason);
}

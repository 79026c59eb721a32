// Keeps the merged view of seed 002 on the broker: one ServiceImport per service in the clusterset's namespace, and
// none without an export. One member writes it, the oldest exporter whose lease lives; a view that stays wrong is for
// the next. People and older tools read it; nothing of ours derives from it. Only upgraded clusters are in it: to be
// named there is how a cluster is known to be one (seed 002, Migration).

import { isSameJson } from '../../base/json.ts';
import type { WorkResult } from '../../base/queue.ts';
import { deleteIfPresent } from '../../kube/client/absent.ts';
import { apply, isAsWanted, replaceWith } from '../../kube/client/apply.ts';
import type { Informer } from '../../kube/controller/informer.ts';
import { createPutBacks, type PutBacks } from '../../kube/controller/put-backs.ts';
import { isConflict } from '../../kube/objects/api-error.ts';
import type { AgentContext } from '../copies/context.ts';
import { type CountedRecord, countedRecords } from '../copies/counted-records.ts';
import { type ServiceImport, serviceImportType } from '../kinds/service-import.ts';
import { legacyOrigin } from '../rules/legacy-import.ts';
import { mergeOutcome } from '../rules/merge/merge.ts';
import type { Merge } from '../rules/merge/merged.ts';
import { sortedByPrecedence } from '../rules/merge/shard.ts';
import { formatServiceKey, parseRecordName, parseServiceKey, recordName, type ServiceKey } from '../rules/names.ts';
import { planImport } from '../rules/plan-import.ts';

/** How many stand behind the writer, and how long each leaves it to those before it. */
const deputies = 3;
const deputyMs = 15_000;

export class MergedViewController {
  readonly #context: AgentContext;
  readonly #views: Informer<ServiceImport>;
  // Two may take themselves for the writer: one whose lease has run out for others, or whose copies are behind.
  readonly #putBacks: PutBacks;
  /** Since when a view that is another's to write has been wrong. */
  readonly #wrongSince = new Map<string, number>();

  constructor(context: AgentContext, views: Informer<ServiceImport>) {
    this.#context = context;
    this.#views = views;
    this.#putBacks = createPutBacks(this.#context.world.clock);
  }

  async reconcile(key: string): Promise<WorkResult | undefined> {
    const { membership } = this.#context;
    const { service, name } = subjectOf(key);
    const present = this.#views.get(`${membership.clusterset}/${name}`);
    const records = service === undefined ? [] : this.#openRecords(service);
    const rank = this.#writers(records).indexOf(membership.clusterId);
    if (rank < 0 || rank > deputies) {
      this.#wrongSince.delete(key);
      return undefined;
    }
    const merge = mergeOutcome({ shards: records.map(({ shard }) => shard), ports: this.#context.policy().ports });
    const wanted = merge && this.#viewOf(name, merge);
    if (this.#isInOrder(present, wanted)) {
      this.#wrongSince.delete(key);
      return undefined;
    }
    const waitMs = Math.max(this.#putBacks.waitMs(key, wanted), this.#turnMs(key, rank));
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    if (wanted !== undefined) await this.#write(present, wanted);
    else if (present !== undefined) await this.#remove(present);
    this.#putBacks.wrote(key, wanted);
    this.#wrongSince.delete(key);
    return undefined;
  }

  /** Everybody reads the view: what was sealed for this cluster is not in it. */
  #openRecords(service: ServiceKey): CountedRecord[] {
    const { sealed } = this.#context.members;
    const records = countedRecords(this.#context, service, { withLegacy: false });
    return records.filter(({ record }) => sealed?.originOf(record) === undefined);
  }

  /** How long it is left to those before us: they may be gone, or be the ones who spoil it. */
  #turnMs(key: string, rank: number): number {
    if (rank === 0) return 0;
    const nowMs = this.#context.world.clock.monotonicMs();
    const sinceMs = this.#wrongSince.get(key) ?? nowMs;
    this.#wrongSince.set(key, sinceMs);
    return Math.max(0, sinceMs + rank * deputyMs - nowMs);
  }

  #viewOf(name: string, merge: Merge): ServiceImport {
    const view = planImport({ service: { namespace: this.#context.membership.clusterset, name }, merge, ips: [] });
    return { ...view, status: { clusters: merge.clusters.map((cluster) => ({ cluster })) } };
  }

  #isInOrder(present: ServiceImport | undefined, wanted: ServiceImport | undefined): boolean {
    if (wanted === undefined) return present === undefined || this.#isOlderRecord(present);
    return present !== undefined && isAsWanted(present, wanted) && hasClusters(present, wanted);
  }

  /** Living exporters, oldest first. Entries that no cluster exports are removed by the first living members by id. */
  #writers(records: readonly CountedRecord[]): string[] {
    const isAlive = (cluster: string) => this.#context.verdict(cluster) === 'alive';
    const exporters = records.filter(({ cluster }) => isAlive(cluster)).map(({ shard }) => shard);
    if (records.length > 0) return sortedByPrecedence(exporters).map(({ cluster }) => cluster);
    const first: string[] = [];
    for (const { id } of this.#context.members.all()) {
      if (isAlive(id)) first.push(id);
      if (first.length > deputies) break;
    }
    return first;
  }

  /** Older agents may keep theirs in the same namespace. */
  #isOlderRecord(view: ServiceImport): boolean {
    return (
      this.#context.policy().legacyNamespace === this.#context.membership.clusterset && legacyOrigin(view) !== undefined
    );
  }

  async #write(present: ServiceImport | undefined, wanted: ServiceImport): Promise<void> {
    const { broker } = this.#context;
    const { object: written } = await apply({
      client: broker,
      type: serviceImportType,
      present,
      change: replaceWith(wanted),
    });
    if (hasClusters(written, wanted)) return;
    await broker.updateStatus(serviceImportType, { ...written, status: { ...written.status, ...wanted.status } });
  }

  async #remove(present: ServiceImport): Promise<void> {
    const { name, namespace, resourceVersion } = present.metadata;
    try {
      await deleteIfPresent(this.#context.broker, serviceImportType, { name, namespace }, { resourceVersion });
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
}

/** Key of a view whose name is that of no service. */
const nameless = '/';

/** The key of the service that a view is of, or one of its own. */
export function viewKey(view: ServiceImport): string {
  const service = parseRecordName(view.metadata.name);
  return service === undefined ? `${nameless}${view.metadata.name}` : formatServiceKey(service);
}

function subjectOf(key: string): { readonly service: ServiceKey | undefined; readonly name: string } {
  if (key.startsWith(nameless)) return { service: undefined, name: key.slice(nameless.length) };
  const service = parseServiceKey(key);
  return { service, name: recordName(service) };
}

function hasClusters(view: ServiceImport, wanted: ServiceImport): boolean {
  return isSameJson(view.status?.clusters, wanted.status?.clusters);
}

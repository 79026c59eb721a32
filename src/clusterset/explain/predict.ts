// Predicts what agents will make of a clusterset, from what lies in its homes: the shards and slices each member publishes, the
// import in each cluster, the conditions on each export. Pure: the agents use the same rules; planning, explaining
// and checking simulations use this.

import type { WantedCondition } from '../../kube/objects/conditions.ts';
import { type EndpointSlice, serviceNameLabel, sourceClusterLabel } from '../../kube/objects/endpoint-slice.ts';
import type { Service } from '../../kube/objects/service.ts';
import type { ClusterSpec } from '../kinds/cluster.ts';
import { isSealed, type ServiceExport } from '../kinds/service-export.ts';
import type { ServiceImport } from '../kinds/service-import.ts';
import { isExportedTo, type ServiceShard } from '../kinds/service-shard.ts';
import { type ClusterAddresses, readAddressRules, readOwnAddresses } from '../rules/address-translation.ts';
import { exportConditions, judgeService, type Publication } from '../rules/export-conditions.ts';
import { readExportRequest, unexportable } from '../rules/export-request.ts';
import type { LeaseVerdict } from '../rules/leases/lease-monitor.ts';
import { type MemberStatus, memberStatus } from '../rules/leases/staleness.ts';
import { exportRefusal, mayExport } from '../rules/may-export.ts';
import { type MergeWithConflicts, mergeShards } from '../rules/merge/merge.ts';
import { parseServiceKey } from '../rules/names.ts';
import { planSlices, type SlicePlan } from '../rules/plan-export-slices.ts';
import { planSpec } from '../rules/plan-import.ts';
import type { SetPolicy } from '../rules/set-policy.ts';
import { planShard, readShard, recordProblem, shardAddresses } from '../rules/shard-record.ts';

/** Contents of one cluster's home, by `namespace/name`. */
export interface ClusterFacts {
  readonly id: string;
  readonly verdict: LeaseVerdict;
  readonly namespaces: ReadonlySet<string>;
  readonly services: ReadonlyMap<string, Service>;
  readonly exports: ReadonlyMap<string, ServiceExport>;
  readonly slices: readonly EndpointSlice[];
  /** The set admin's settings for its addresses. */
  readonly addresses?: ClusterAddresses;
  /** The namespaces it may export; all if absent. */
  readonly mayExport?: ClusterSpec['mayExport'];
  /** The set's admin takes it out of new connections. */
  readonly isDraining?: boolean;
  /** When the broker stored its records, by service; what is not here is stored when it is exported. */
  readonly storedAt?: ReadonlyMap<string, string>;
  /** Its records from before it fell silent: they count instead of the present contents of its home. */
  readonly left?: ReadonlyMap<string, ServiceShard>;
}

interface CountedShard {
  readonly cluster: string;
  readonly record: ServiceShard;
  readonly status: MemberStatus;
}

export interface Prediction {
  /** Keys of all services that are exported, or wish to be. */
  readonly keys: readonly string[];
  shard(cluster: string, key: string): ServiceShard | undefined;
  slicePlan(cluster: string, key: string): SlicePlan | undefined;
  /** Those that take part in the merge; with a reader, those that it may import from. */
  counted(key: string, reader?: string): readonly CountedShard[];
  merge(key: string, reader?: string): MergeWithConflicts | undefined;
  /** Spec of the import in that cluster, without addresses; undefined if there is none. */
  importSpec(cluster: string, key: string): ServiceImport['spec'] | undefined;
  /** Undefined if the cluster has no such export. */
  conditions(cluster: string, key: string): WantedCondition[] | undefined;
}

export function predict(clusters: readonly ClusterFacts[], policy: SetPolicy): Prediction {
  const published = new Map(clusters.map((facts) => [facts.id, publishedBy(facts, policy)]));
  const keys = new Set(clusters.flatMap(({ exports, left }) => [...exports.keys(), ...(left?.keys() ?? [])]));
  const factsOf = (cluster: string) => clusters.find(({ id }) => id === cluster);

  const prediction: Prediction = {
    keys: [...keys].sort(),
    shard: (cluster, key) => published.get(cluster)?.get(key)?.shard,
    slicePlan: (cluster, key) => published.get(cluster)?.get(key)?.plan,
    counted: (key, reader) =>
      clusters.flatMap(({ id, verdict, mayExport: patterns, isDraining = false }) => {
        const record = prediction.shard(id, key);
        if (record === undefined || recordProblem(record) !== undefined) return [];
        if (!mayExport({ mayExport: patterns }, parseServiceKey(key))) return [];
        if (reader !== undefined && !isExportedTo(record, { exporter: id, reader })) return [];
        const now = memberStatus(verdict, record.spec.onStale ?? policy.staleness);
        const drained = { ...now, isDraining: isDraining || record.spec.draining === true };
        return now.isCounted ? [{ cluster: id, record, status: drained }] : [];
      }),
    merge: (key, reader) => {
      const shards = prediction.counted(key, reader).map(({ cluster, record }) => readShard(record, cluster));
      return mergeShards({ shards, ports: policy.ports });
    },
    importSpec: (cluster, key) => {
      if (!factsOf(cluster)?.namespaces.has(parseServiceKey(key).namespace)) return undefined;
      const merge = prediction.merge(key, cluster);
      return merge && planSpec(merge, []);
    },
    conditions: (cluster, key) => {
      const facts = factsOf(cluster);
      if (facts?.exports.has(key) !== true) return undefined;
      const service = facts.services.get(key);
      const problem = service && unexportable(service, key);
      const { notes = [], plan, shard } = published.get(cluster)?.get(key) ?? {};
      const exportTo = shard?.spec.exportTo;
      const ref = parseServiceKey(key);
      const publication: Publication = !mayExport(facts, ref)
        ? { kind: 'refused', message: exportRefusal(cluster, ref) }
        : problem === undefined
          ? { kind: 'published', notes, exportTo, readyCount: plan?.readyCount ?? 0, refused: plan?.refused ?? [] }
          : { kind: 'failed', message: problem };
      const merge = prediction.merge(key);
      const isPart = merge?.clusters.concat(merge.excluded).includes(cluster);
      return exportConditions({
        cluster,
        validity: judgeService(service, key),
        publication,
        merge: isPart ? merge : undefined,
      });
    },
  };
  return prediction;
}

interface Published {
  readonly shard: ServiceShard;
  readonly plan?: SlicePlan;
  /** The parts left out, and why. */
  readonly notes?: readonly string[];
}

function publishedBy(facts: ClusterFacts, policy: SetPolicy): Map<string, Published> {
  const published = new Map<string, Published>();
  if (facts.left !== undefined) {
    for (const [key, shard] of facts.left) published.set(key, { shard });
    return published;
  }
  const allowed = readAddressRules(policy.virtualRanges, facts.addresses?.allowedRanges);
  const { rules, notes } = readOwnAddresses(allowed, facts.addresses);
  const dns = { cluster: facts.id, zone: policy.zone };
  const behind = Map.groupBy(facts.slices, serviceBehind);
  for (const [key, serviceExport] of facts.exports) {
    // What is sealed changes nothing for those who do not see it.
    if (isSealed(serviceExport)) continue;
    const service = facts.services.get(key);
    if (service === undefined || judgeService(service, key).kind === 'invalid') continue;
    if (unexportable(service, key) !== undefined || !mayExport(facts, parseServiceKey(key))) continue;
    const sources = behind.get(key) ?? [];
    const plan = planSlices({ service, sources, mode: policy.endpoints, rules, dns });
    const shard = planShard({
      service,
      serviceExport,
      readyCount: plan.readyCount,
      clusterSetIps: [],
      namespace: '',
      rules,
    });
    const creationTimestamp = facts.storedAt?.get(key) ?? shard.spec.exportedAt;
    const refused = shardAddresses(service, rules).notes;
    published.set(key, {
      shard: { ...shard, metadata: { ...shard.metadata, creationTimestamp } },
      plan,
      notes: [...notes, ...readExportRequest(serviceExport).notes, ...plan.notes, ...refused],
    });
  }
  return published;
}

/** Key of the service whose own endpoints these are; undefined for those of an import. */
function serviceBehind({ metadata: { labels, namespace } }: EndpointSlice): string | undefined {
  return labels?.[sourceClusterLabel] === undefined ? `${namespace}/${labels?.[serviceNameLabel]}` : undefined;
}

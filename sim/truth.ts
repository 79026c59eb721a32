// What every cluster of a clusterset should hold once it has calmed down, worked out from the homes alone: which shards
// and slices each member publishes, and which imports follow from them. Knows nothing of agents.

import { planSlices } from '../src/controllers/export/plan-slices.ts';
import { publishedRecord, publishedServiceKey } from '../src/controllers/published-slice.ts';
import { readSetPolicy, type SetPolicy } from '../src/controllers/set-policy.ts';
import { planShard, readShard } from '../src/controllers/shard-record.ts';
import type { ClusterSetSpec } from '../src/model/cluster-set.ts';
import { type EndpointSlice, endpointSliceType, serviceNameLabel } from '../src/model/endpoint-slice.ts';
import { judgeService } from '../src/model/export-conditions.ts';
import { type MergeWithConflicts, mergeShards } from '../src/model/merge.ts';
import { formatServiceKey, parseRecordName, parseServiceKey } from '../src/model/names-clusterset.ts';
import { type Namespace, namespaceType } from '../src/model/namespace.ts';
import { type Service, serviceType } from '../src/model/service.ts';
import { type ServiceExport, serviceExportType } from '../src/model/service-export.ts';
import { isExportedTo, type ServiceShard, serviceShardType } from '../src/model/service-shard.ts';
import { type Standing, standing } from '../src/model/staleness.ts';
import { memberNamespace, type SimClusterSet } from './clusterset.ts';

export interface MemberTruth {
  readonly id: string;
  readonly isAlive: boolean;
  readonly namespaces: ReadonlySet<string>;
  readonly exports: ReadonlyMap<string, ServiceExport>;
  readonly services: ReadonlyMap<string, Service>;
  readonly shards: ReadonlyMap<string, ServiceShard>;
  readonly slices: ReadonlyMap<string, readonly EndpointSlice[]>;
}

export interface Truth {
  readonly policy: SetPolicy;
  readonly members: readonly MemberTruth[];
  readonly keys: readonly string[];
}

export interface CountedShard {
  readonly member: MemberTruth;
  readonly record: ServiceShard;
  readonly standing: Standing;
}

export async function readTruth(set: SimClusterSet, spec: ClusterSetSpec): Promise<Truth> {
  const policy = readSetPolicy({ apiVersion: '', kind: '', metadata: { name: '' }, spec });
  const members: MemberTruth[] = [];
  for (const id of [...set.homes.keys()].sort()) {
    members.push(set.isAgentRunning(id) ? await liveMember(set, id, policy) : await deadMember(set, id));
  }
  const keys = new Set(members.flatMap(({ shards, exports }) => [...shards.keys(), ...exports.keys()]));
  return { policy, members, keys: [...keys].sort() };
}

export function countedShards(truth: Truth, key: string, reader?: string): CountedShard[] {
  return truth.members.flatMap((member) => {
    const record = member.shards.get(key);
    if (record === undefined) return [];
    if (reader !== undefined && !isExportedTo(record, { exporter: member.id, reader })) return [];
    const now = standing(member.isAlive ? 'alive' : 'stale', record.spec.onStale ?? truth.policy.staleness);
    return now.isCounted ? [{ member, record, standing: now }] : [];
  });
}

export function mergeOf(truth: Truth, key: string, reader?: string): MergeWithConflicts | undefined {
  const shards = countedShards(truth, key, reader).map(({ member, record }) => readShard(record, member.id));
  return mergeShards({ shards, ports: truth.policy.ports });
}

async function homeFacts(set: SimClusterSet, id: string) {
  const { admin } = set.home(id);
  const namespaces = (await admin.list<Namespace>(namespaceType)).items;
  const services = (await admin.list<Service>(serviceType)).items;
  const exports = (await admin.list<ServiceExport>(serviceExportType)).items;
  return {
    namespaces: new Set(namespaces.map(({ metadata }) => metadata.name)),
    services: new Map(services.map((service) => [keyOf(service), service])),
    exports: new Map(exports.map((serviceExport) => [keyOf(serviceExport), serviceExport])),
  };
}

async function liveMember(set: SimClusterSet, id: string, policy: SetPolicy): Promise<MemberTruth> {
  const facts = await homeFacts(set, id);
  const sources = (await set.home(id).admin.list<EndpointSlice>(endpointSliceType)).items;
  const shards = new Map<string, ServiceShard>();
  const slices = new Map<string, EndpointSlice[]>();
  const namespace = memberNamespace(id);
  for (const [key, serviceExport] of facts.exports) {
    const service = facts.services.get(key);
    if (service === undefined || judgeService(service, key).kind === 'invalid') continue;
    const own = sources.filter(
      ({ metadata }) => `${metadata.namespace}/${metadata.labels?.[serviceNameLabel]}` === key,
    );
    const rules = { virtualRanges: policy.virtualRanges, allowedRanges: [] };
    const plan = planSlices({ service, sources: own, mode: policy.endpoints, rules });
    shards.set(key, planShard({ service, serviceExport, readyCount: plan.readyCount, clusterSetIps: [], namespace }));
    slices.set(
      key,
      plan.slices.map((slice) => publishedRecord(slice, parseServiceKey(key), namespace)),
    );
  }
  return { id, isAlive: true, ...facts, shards, slices };
}

/** What a dead member left at the broker is what the others have of it. */
async function deadMember(set: SimClusterSet, id: string): Promise<MemberTruth> {
  const facts = await homeFacts(set, id);
  const namespace = memberNamespace(id);
  const shards = new Map<string, ServiceShard>();
  for (const shard of (await set.broker.admin.list<ServiceShard>(serviceShardType, { namespace })).items) {
    shards.set(formatServiceKey(parseRecordName(shard.metadata.name)!), shard);
  }
  const slices = new Map<string, EndpointSlice[]>();
  for (const slice of (await set.broker.admin.list<EndpointSlice>(endpointSliceType, { namespace })).items) {
    const key = publishedServiceKey(slice)!;
    slices.set(key, [...(slices.get(key) ?? []), slice]);
  }
  return { id, isAlive: false, ...facts, shards, slices };
}

function keyOf(object: { metadata: { namespace?: string; name: string } }): string {
  return `${object.metadata.namespace}/${object.metadata.name}`;
}

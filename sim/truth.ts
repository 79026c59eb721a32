// The wanted state of every cluster once a clusterset has calmed down: the contents of the homes, and the
// consequences. Knows nothing of agents.

import { type ClusterFacts, type Prediction, predict } from '../src/clusterset/explain/predict.ts';
import { type Cluster, clusterType } from '../src/clusterset/kinds/cluster.ts';
import type { ClusterSetIpPolicy, ClusterSetSpec } from '../src/clusterset/kinds/cluster-set.ts';
import { endpointShardType } from '../src/clusterset/kinds/endpoint-shard.ts';
import { type ServiceExport, serviceExportType } from '../src/clusterset/kinds/service-export.ts';
import { type ServiceShard, serviceShardType } from '../src/clusterset/kinds/service-shard.ts';
import { formatServiceKey, parseRecordName, parseServiceKey } from '../src/clusterset/rules/names.ts';
import { readSetPolicy, type SetPolicy } from '../src/clusterset/rules/set-policy.ts';
import { publishedRecord, publishedServiceKey } from '../src/clusterset/rules/shard-record.ts';
import { type EndpointSlice, endpointSliceType } from '../src/kube/objects/endpoint-slice.ts';
import { namespaceType } from '../src/kube/objects/namespace.ts';
import { type KubernetesObject, keyOf, type ResourceType } from '../src/kube/objects/object.ts';
import { type Service, serviceType } from '../src/kube/objects/service.ts';
import { memberNamespace, type SimClusterSet, type SimHome, setName } from './clusterset.ts';

export interface MemberTruth extends ClusterFacts {
  readonly isAlive: boolean;
  /** Where the addresses of its imports come from. */
  readonly ipSource: ClusterSetIpPolicy;
  /** Slices it has at the broker, if its agent lives; those it left there, if not. */
  readonly published: ReadonlyMap<string, readonly EndpointSlice[]>;
}

export interface Truth extends Prediction {
  readonly policy: SetPolicy;
  readonly members: readonly MemberTruth[];
}

export async function readTruth(set: SimClusterSet, spec: ClusterSetSpec): Promise<Truth> {
  const policy = readSetPolicy({ apiVersion: '', kind: '', metadata: { name: '' }, spec });
  const facts: Facts[] = [];
  for (const id of [...set.homes.keys()].sort()) facts.push(await factsOf(set, policy, id));
  const prediction = predict(facts, policy);
  const members: MemberTruth[] = [];
  for (const one of facts)
    members.push({ ...one, published: one.isAlive ? planned(prediction, one.id) : await leftSlices(set, one.id) });
  return { ...prediction, policy, members };
}

type Facts = Omit<MemberTruth, 'published'>;

async function factsOf(set: SimClusterSet, policy: SetPolicy, id: string): Promise<Facts> {
  const home = set.home(id);
  const { spec } = await set.broker.admin.get<Cluster>(clusterType, { namespace: setName, name: id });
  const isAlive = set.isAgentRunning(id);
  return {
    id,
    isAlive,
    verdict: isAlive ? 'alive' : 'stale',
    ipSource: policy.clusterSetIps === 'none' ? 'none' : (spec.clusterSetIP ?? policy.clusterSetIps),
    mayExport: spec.mayExport,
    isDraining: spec.draining === true,
    namespaces: new Set((await listOf(home, namespaceType)).keys()),
    services: await listOf<Service>(home, serviceType),
    exports: await listOf<ServiceExport>(home, serviceExportType),
    slices: [...(await listOf<EndpointSlice>(home, endpointSliceType)).values()],
    storedAt: new Map(
      [...(await leftShards(set, id))].map(([key, { metadata }]) => [key, metadata.creationTimestamp!]),
    ),
    ...(isAlive ? {} : { left: await leftShards(set, id) }),
  };
}

async function listOf<T extends KubernetesObject>(home: SimHome, type: ResourceType): Promise<Map<string, T>> {
  const { items } = await home.admin.list<T>(type);
  return new Map(items.map((item) => [keyOf(item), item]));
}

function planned(prediction: Prediction, id: string): Map<string, EndpointSlice[]> {
  const slices = new Map<string, EndpointSlice[]>();
  for (const key of prediction.keys) {
    const plan = prediction.slicePlan(id, key);
    if (plan === undefined) continue;
    slices.set(
      key,
      plan.slices.map((slice) =>
        publishedRecord(slice, { service: parseServiceKey(key), namespace: memberNamespace(id) }),
      ),
    );
  }
  return slices;
}

async function leftShards(set: SimClusterSet, id: string): Promise<Map<string, ServiceShard>> {
  const { items } = await set.broker.admin.list<ServiceShard>(serviceShardType, { namespace: memberNamespace(id) });
  return new Map(items.map((shard) => [formatServiceKey(parseRecordName(shard.metadata.name)!), shard]));
}

async function leftSlices(set: SimClusterSet, id: string): Promise<Map<string, EndpointSlice[]>> {
  const { items } = await set.broker.admin.list<EndpointSlice>(endpointShardType, { namespace: memberNamespace(id) });
  return Map.groupBy(items, (slice) => publishedServiceKey(slice)!);
}

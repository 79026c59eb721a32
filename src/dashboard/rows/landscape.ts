// All homes of one bearer together, and the clusterset as they show it: the state that preview, explain and doctor work
// on, made of copies instead of requests. Pure but for the copies it reads.

import { olderMembers } from '../../clusterset/explain/older-members.ts';
import type { MemberState, SetState } from '../../clusterset/explain/set-state.ts';
import type { ClusterSet } from '../../clusterset/kinds/cluster-set.ts';
import type { ServiceShard } from '../../clusterset/kinds/service-shard.ts';
import { readMemberRecord } from '../../clusterset/membership/member-record.ts';
import { verdictsName } from '../../clusterset/membership/membership.ts';
import { memberLeaseName, memberRecordName } from '../../clusterset/rules/broker-layout.ts';
import { refusal } from '../../clusterset/rules/endpoint-address.ts';
import { type LeaseMemory, parseLeaseMemory } from '../../clusterset/rules/leases/lease-memory.ts';
import { type PairReach, pairsFrom } from '../../clusterset/rules/networks/pairs.ts';
import { networksOf } from '../../clusterset/rules/networks/reach.ts';
import { readSetPolicy, type SetPolicy } from '../../clusterset/rules/set-policy.ts';
import { systemNamespace } from '../../kube/objects/ours.ts';
import { partState } from '../../kube/objects/part-lease.ts';
import { gatewayChecks } from '../../kube/objects/reports/gateway-checks.ts';
import { unreachedIn } from '../../kube/objects/reports/unreached.ts';
import type { HomeWatch } from '../homes/home-watch.ts';
import { byService, keyOfRecord } from '../homes/kinds.ts';

export interface Landscape {
  readonly homes: readonly HomeWatch[];
  readonly nowMs: number;
}

/** The first broker whose clusters the bearer may see. */
export function brokerOf({ homes }: Landscape): HomeWatch | undefined {
  return homes.find(({ broker, set }) => set !== undefined && broker?.clusters.state().kind === 'live');
}

/** The home of a cluster, by the cluster's id or, of a home that is no member, by its name. */
export function homeOf({ homes }: Landscape, cluster: string): HomeWatch | undefined {
  return homes.find((one) => one.member !== undefined && idOf(one) === cluster);
}

export function idOf({ clusterId, home }: HomeWatch): string {
  return clusterId === '' ? home.name : clusterId;
}

export interface SetRequest {
  /** The wanted services; none if empty, all if absent. */
  readonly keys?: readonly string[];
  /** The cluster whose agent's verdicts on the others count; any other cluster if absent. */
  readonly viewpoint?: HomeWatch;
}

/** The set and its members without their records: the same for all services, so it is made once for many. */
export interface SetAtBroker {
  readonly broker: HomeWatch;
  readonly set: ClusterSet;
  readonly policy: SetPolicy;
  readonly members: readonly Omit<MemberState, 'shards'>[];
}

/** Undefined without a broker that the bearer may see. */
export function setAtBroker(landscape: Landscape, viewpoint?: HomeWatch): SetAtBroker | undefined {
  const watch = brokerOf(landscape);
  if (watch?.broker === undefined || watch.set === undefined) return undefined;
  const { clusters, heartbeats, records } = watch.broker;
  const namespace = watch.set.metadata.name;
  const judges = viewpoint === undefined ? landscape.homes.filter((one) => one.isCurrent()) : [viewpoint];
  const verdicts = judges.map((one) => ({ id: idOf(one), of: verdictsOf(one) }));
  const members = clusters
    .values()
    .filter((one) => one.metadata.namespace === namespace)
    .map((cluster) => {
      const id = cluster.metadata.name;
      const own = cluster.spec.namespace;
      const record = records.get(`${own}/${memberRecordName}`);
      const memory = memoryOf(id, viewpoint === undefined ? verdicts.filter((one) => one.id !== id) : verdicts);
      return {
        id,
        cluster,
        record: record && readMemberRecord(record),
        lease: heartbeats.get(`${own}/${memberLeaseName}`),
        // It is followed, so the copy is as of now.
        leaseReadMs: landscape.nowMs,
        memory,
        verdict: memory?.verdict ?? ('alive' as const),
      };
    })
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  return { broker: watch, set: watch.set, policy: readSetPolicy(watch.set), members };
}

export function setStateOf(landscape: Landscape, { keys, viewpoint }: SetRequest): SetState | undefined {
  const source = setAtBroker(landscape, viewpoint);
  return source && stateOn(source, keys);
}

/** With the records of these services; of all of them if absent. */
export function stateOn({ broker, set, policy, members }: SetAtBroker, keys?: readonly string[]): SetState {
  const shards = shardsByNamespace(broker, keys);
  const whole = members.map((one) => ({ ...one, shards: shards.get(one.cluster.spec.namespace) ?? new Map() }));
  return { set, policy, members: whole, older: new Map() };
}

function shardsByNamespace({ broker }: HomeWatch, keys: readonly string[] | undefined) {
  const found = keys?.flatMap((key) => broker!.shards.byIndex(byService, key)) ?? broker!.shards.values();
  const shards = new Map<string, Map<string, ServiceShard>>();
  for (const shard of found) {
    const { namespace = '', name } = shard.metadata;
    const of = shards.get(namespace) ?? new Map<string, ServiceShard>();
    for (const key of keyOfRecord(name)) of.set(key, shard);
    shards.set(namespace, of);
  }
  return shards;
}

/** A cluster that is cut off cannot judge the others, and nobody judges itself: one that says stale is enough. */
function memoryOf(
  id: string,
  judges: readonly { readonly of: ReadonlyMap<string, LeaseMemory> }[],
): LeaseMemory | undefined {
  const memories = judges.flatMap(({ of }) => of.get(id) ?? []);
  return memories.find(({ verdict }) => verdict === 'stale') ?? memories[0];
}

/** How this cluster reaches the others; none where all share one network. */
export function pairsOf(watch: HomeWatch, state: SetState, nowMs: number): PairReach[] {
  const leases = watch.member?.leases.values() ?? [];
  const { virtualRanges } = state.policy;
  return pairsFrom({
    self: idOf(watch),
    clusters: state.members.map(({ id }) => id),
    networks: networksOf({
      ...{ members: state.members.map(({ cluster }) => cluster), self: idOf(watch), ports: new Map() },
      refusal: (address, allowedRanges) => refusal(address, { virtualRanges, allowedRanges }),
    }),
    gatewayChecks: gatewayChecks(leases, nowMs),
    unreachedFrom: unreachedIn(leases.filter((lease) => partState(lease, nowMs).kind === 'reported')),
    older: olderMembers(state),
  });
}

/** By cluster id. */
export function verdictsOf({ member }: HomeWatch): ReadonlyMap<string, LeaseMemory> {
  const data = member?.verdicts.get(`${systemNamespace}/${verdictsName}`)?.data ?? {};
  return new Map(
    Object.entries(data).flatMap(([id, text]) => {
      const memory = parseLeaseMemory(text);
      return memory === undefined ? [] : [[id, memory] as const];
    }),
  );
}

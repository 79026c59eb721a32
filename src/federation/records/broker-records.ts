// Ties a federation's authority to the broker: every member's exported shards become its records, members whose leases have
// run out are left out, and the Federation object says the policy. While the broker is away everything stays as it was.

import type { IpRange } from '../../base/ip.ts';
import type { Log } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import { type Cluster, clusterType } from '../../clusterset/kinds/cluster.ts';
import { type ClusterSet, clusterSetType } from '../../clusterset/kinds/cluster-set.ts';
import { type ServiceShard, serviceShardType } from '../../clusterset/kinds/service-shard.ts';
import { memberLeaseName } from '../../clusterset/rules/broker-layout.ts';
import { LeaseJudge, type LeaseTimes } from '../../clusterset/rules/leases/lease-judge.ts';
import { parseRecordName } from '../../clusterset/rules/names.ts';
import { readSetPolicy } from '../../clusterset/rules/set-policy.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type Informer, type InformerReader } from '../../kube/controller/informer.ts';
import { type Lease, leaseType } from '../../kube/objects/lease.ts';
import { type Federation, federationType } from '../kinds/federation.ts';
import { type FederationSink, federatedShard } from '../rules/record.ts';

export interface AttachFederationOptions {
  readonly sink: FederationSink;
  /** Name of the Federation object. */
  readonly federation: string;
  readonly broker: Client;
  /** Namespace of the clusterset at the broker. */
  readonly clusterset: string;
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
}

export interface FederationAttachment {
  /** The copies it is made from, for those who work beside it. */
  readonly federations: InformerReader<Federation>;
  readonly clusters: InformerReader<Cluster>;
  whenSynced(): Promise<void>;
  stop(): void;
}

interface Member {
  readonly cluster: Cluster;
  readonly shards: Informer<ServiceShard>;
  readonly leases: Informer<Lease>;
}

const probeMs = 1000;

export function attachFederation(options: AttachFederationOptions): FederationAttachment {
  const { sink, broker, clusterset, world, log } = options;
  const shared = { client: broker, world, log };
  const federations = createInformer<Federation>({ ...shared, type: federationType, namespace: clusterset });
  const clusters = createInformer<Cluster>({ ...shared, type: clusterType, namespace: clusterset });
  const members = new Map<string, Member>();
  let leaseTimes = timesOf(undefined);
  let { virtualRanges } = readSetPolicy(undefined);
  const judge = new LeaseJudge(() => leaseTimes);
  const waiters: (() => void)[] = [];
  let hasSynced = false;
  let isStopped = false;
  let timer: Timer | undefined;

  const federation = (): Federation | undefined => federations.get(`${clusterset}/${options.federation}`);

  function publish(member: Member, shard: ServiceShard): void {
    const present = federation();
    const wanted = present && federatedShard({ shard, cluster: member.cluster, virtualRanges }, present);
    if (wanted) sink.upsertShard(wanted.key, wanted.record, seenNow(shard));
    else withdraw(member, shard);
  }

  function seenNow({ metadata }: ServiceShard) {
    return { revision: metadata.resourceVersion ?? '', seenMs: world.clock.monotonicMs() };
  }

  function withdraw(member: Member, shard: ServiceShard): void {
    const service = parseRecordName(shard.metadata.name);
    const { name: cluster } = member.cluster.metadata;
    if (!service) return;
    const { namespace, name } = service;
    sink.removeShard({ federation: options.federation, namespace, service: name, cluster });
  }

  function addMember(cluster: Cluster): void {
    const inNamespace = { ...shared, namespace: cluster.spec.namespace };
    const member: Member = {
      cluster,
      shards: createInformer<ServiceShard>({ ...inNamespace, type: serviceShardType }),
      leases: createInformer<Lease>({ ...inNamespace, type: leaseType }),
    };
    members.set(cluster.metadata.name, member);
    member.shards.on((_key, next, previous) => {
      const now = members.get(cluster.metadata.name) ?? member;
      if (next) publish(now, next);
      else if (previous) withdraw(now, previous);
    });
    member.leases.on((_key, next) => {
      if (next?.metadata.name === memberLeaseName) see(cluster.metadata.name, next);
    });
    member.shards.start();
    member.leases.start();
    void Promise.all([member.shards.whenSynced(), member.leases.whenSynced()]).then(checkSynced);
  }

  function removeMember(id: string): void {
    const member = members.get(id);
    if (!member) return;
    member.shards.stop();
    member.leases.stop();
    members.delete(id);
    for (const shard of member.shards.values()) withdraw(member, shard);
    judge.forget(id);
    sink.setClusterAlive(id, true);
  }

  function see(id: string, lease: Lease): void {
    judge.seen({ cluster: id, token: lease.metadata.resourceVersion ?? '', nowMs: world.clock.monotonicMs() });
    tellVerdict(id);
  }

  function tellVerdict(id: string): void {
    sink.setClusterAlive(id, judge.verdict(id) === 'alive');
  }

  clusters.on((_key, next, previous) => {
    const id = (next ?? previous)!.metadata.name;
    const known = members.get(id);
    if (next && known && known.cluster.spec.namespace === next.spec.namespace) {
      // Only its place may have changed.
      members.set(id, { ...known, cluster: next });
      for (const shard of known.shards.values()) publish(members.get(id)!, shard);
      return;
    }
    removeMember(id);
    if (next) addMember(next);
  });

  federations.on((_key, next, previous) => {
    if ((next ?? previous)?.metadata.name !== options.federation) return;
    if (next) sink.setPolicy(options.federation, next.spec?.policy ?? 'ordered');
    publishAll();
  });

  function checkSynced(): void {
    if (hasSynced || !federations.hasSynced || !clusters.hasSynced) return;
    for (const { shards, leases } of members.values()) if (!shards.hasSynced || !leases.hasSynced) return;
    hasSynced = true;
    sink.setSynced();
    for (const waiter of waiters.splice(0)) waiter();
  }

  function publishAll(): void {
    for (const member of members.values()) for (const shard of member.shards.values()) publish(member, shard);
  }

  function followRanges(set: ClusterSet | undefined): void {
    const next = readSetPolicy(set).virtualRanges;
    const isSame =
      next.length === virtualRanges.length && next.every((range, at) => isSameRange(range, virtualRanges[at]!));
    if (isSame) return;
    virtualRanges = next;
    publishAll();
  }

  /** Only time in which the broker answers counts against anybody. */
  async function probe(): Promise<void> {
    try {
      // Not there is an answer too; anything else means that the broker cannot be asked.
      const ref = { namespace: clusterset, name: clusterset };
      const set = await getOrUndefined<ClusterSet>(broker, clusterSetType, ref);
      leaseTimes = timesOf(set);
      followRanges(set);
      judge.ownRenewed(world.clock.monotonicMs());
      for (const id of judge.suspects()) await lookOnceMore(id);
      for (const id of members.keys()) tellVerdict(id);
      sink.setStale(false);
    } catch {
      judge.ownRenewalFailed();
      if (hasSynced) sink.setStale(true);
    }
    if (!isStopped) timer = world.timers.after(probeMs, () => void probe());
  }

  async function lookOnceMore(id: string): Promise<void> {
    const namespace = members.get(id)?.cluster.spec.namespace;
    if (namespace !== undefined) {
      const lease = await getOrUndefined<Lease>(broker, leaseType, { namespace, name: memberLeaseName });
      if (lease) see(id, lease);
    }
    judge.condemn(id);
    if (judge.verdict(id) === 'stale')
      log.info("a cluster's lease has run out, its shards are left out", { cluster: id });
  }

  federations.start();
  clusters.start();
  void Promise.all([federations.whenSynced(), clusters.whenSynced()]).then(checkSynced);
  void probe();
  return {
    federations,
    clusters,
    whenSynced: () => (hasSynced ? Promise.resolve() : new Promise((resolve) => waiters.push(resolve))),
    stop: () => {
      isStopped = true;
      timer?.cancel();
      federations.stop();
      clusters.stop();
      for (const { shards, leases } of members.values()) {
        shards.stop();
        leases.stop();
      }
    },
  };
}

function isSameRange(a: IpRange, b: IpRange): boolean {
  return a.family === b.family && a.first === b.first && a.size === b.size;
}

/** As members have them; an authority renews nothing and counts its own probes instead. */
function timesOf(set: ClusterSet | undefined): LeaseTimes {
  return { ...readSetPolicy(set).lease, renewalGapMsMax: 5 * probeMs };
}

// Connects a federation's authority to the broker: the exported shards of all members become its records, members with an
// expired lease are left out, and the Federation object sets the policy. While the broker is unreachable nothing changes.

import type { Log } from '../../base/log.ts';
import type { IpRange } from '../../base/net/ip.ts';
import { repeat } from '../../base/repeat.ts';
import type { World } from '../../base/world.ts';
import type { Cluster } from '../../clusterset/kinds/cluster.ts';
import { type ClusterSet, clusterSetType } from '../../clusterset/kinds/cluster-set.ts';
import type { ServiceShard } from '../../clusterset/kinds/service-shard.ts';
import { type Member, MemberFollower } from '../../clusterset/members/follower.ts';
import { readHeartbeat } from '../../clusterset/members/read-heartbeat.ts';
import { timesFor } from '../../clusterset/rules/leases/heartbeat-rate.ts';
import { homeAwayOf } from '../../clusterset/rules/leases/home-away.ts';
import { LeaseJudge, type LeaseTimes } from '../../clusterset/rules/leases/lease-judge.ts';
import { parseRecordName } from '../../clusterset/rules/names.ts';
import { readSetPolicy } from '../../clusterset/rules/set-policy.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type InformerReader } from '../../kube/controller/informer.ts';
import type { Lease } from '../../kube/objects/lease.ts';
import { type Federation, federationType, isSameSpec } from '../kinds/federation.ts';
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
  /** Copies that other parts of the authority share. */
  readonly federations: InformerReader<Federation>;
  readonly clusters: InformerReader<Cluster>;
  whenSynced(): Promise<void>;
  stop(): void;
}

const probeMs = 1000;

export function attachFederation(options: AttachFederationOptions): FederationAttachment {
  const { sink, broker, clusterset, world, log } = options;
  const shared = { client: broker, world, log };
  const federations = createInformer<Federation>({ ...shared, type: federationType, namespace: clusterset });
  const members = new MemberFollower({ ...options, hasEndpoints: false });
  members.on({
    shard: (member, next, previous) => {
      if (next) publish(member, next);
      else if (previous) withdraw(member, previous);
    },
    removed: (member) => {
      for (const shard of member.shards.values()) withdraw(member, shard);
      judge.forget(member.id);
      sink.setClusterAlive(member.id, true);
    },
    // Its place or its limits may have changed.
    changed: (_id, member) => {
      for (const shard of member?.shards.values() ?? []) publish(member!, shard);
    },
    heartbeat: (id, next) => {
      if (next) see(id, next);
    },
    listed: () => checkSynced(),
  });
  let leaseTimes = timesOf(undefined, 0);
  let { virtualRanges } = readSetPolicy(undefined);
  const judge = new LeaseJudge(() => leaseTimes);
  const waiters: (() => void)[] = [];
  let hasSynced = false;

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

  function see(id: string, lease: Lease): void {
    const token = lease.metadata.resourceVersion ?? '';
    const homeAwaySince = homeAwayOf(lease)?.since;
    judge.seen({ cluster: id, token, nowMs: world.clock.monotonicMs(), homeAwaySince });
    tellVerdict(id);
  }

  function tellVerdict(id: string): void {
    sink.setClusterAlive(id, judge.verdict(id) === 'alive');
  }

  federations.on((_key, next, previous) => {
    if ((next ?? previous)?.metadata.name !== options.federation || isSameSpec(next, previous)) return;
    if (next) sink.setPolicy(options.federation, next.spec?.policy ?? 'ordered');
    publishAll();
  });

  function checkSynced(): void {
    if (hasSynced || !federations.hasSynced || !members.hasSynced) return;
    hasSynced = true;
    sink.setSynced();
    for (const waiter of waiters.splice(0)) waiter();
  }

  function publishAll(): void {
    for (const member of members.all()) for (const shard of member.shards.values()) publish(member, shard);
  }

  function followRanges(set: ClusterSet | undefined): void {
    const next = readSetPolicy(set).virtualRanges;
    const isSame =
      next.length === virtualRanges.length && next.every((range, at) => isSameRange(range, virtualRanges[at]!));
    if (isSame) return;
    virtualRanges = next;
    publishAll();
  }

  /** Only time in which the broker responds counts towards expiry. */
  async function probe(): Promise<void> {
    try {
      // Not found is a response too; any other error means that the broker is unreachable.
      const ref = { namespace: clusterset, name: clusterset };
      const set = await getOrUndefined<ClusterSet>(broker, clusterSetType, ref);
      leaseTimes = timesOf(set, members.all().length);
      followRanges(set);
      judge.ownRenewed(world.clock.monotonicMs());
      for (const id of judge.suspects()) await lookOnceMore(id);
      for (const { id } of members.all()) tellVerdict(id);
      sink.setStale(false);
    } catch {
      judge.ownRenewalFailed();
      if (hasSynced) sink.setStale(true);
    }
  }

  async function lookOnceMore(id: string): Promise<void> {
    const namespace = members.get(id)?.cluster.spec.namespace;
    if (namespace !== undefined) {
      const lease = await readHeartbeat(broker, namespace);
      if (lease) see(id, lease);
    }
    judge.condemn(id);
    if (judge.verdict(id) === 'stale') log.info('lease of a cluster expired, its shards are left out', { cluster: id });
  }

  federations.start();
  members.start();
  members.watchHeartbeats(true);
  void federations.whenSynced().then(checkSynced);
  const stopProbing = repeat(world.timers, { everyMs: probeMs, firstMs: 0 }, probe);
  return {
    federations,
    clusters: members.clusters,
    whenSynced: () => (hasSynced ? Promise.resolve() : new Promise((resolve) => waiters.push(resolve))),
    stop: () => {
      stopProbing();
      federations.stop();
      members.stop();
    },
  };
}

function isSameRange(a: IpRange, b: IpRange): boolean {
  return a.family === b.family && a.first === b.first && a.size === b.size;
}

/** The lease times of members. An authority has no lease; its own probes count as renewals. */
function timesOf(set: ClusterSet | undefined, memberCount: number): LeaseTimes {
  return { ...timesFor(readSetPolicy(set).lease, memberCount), renewalGapMsMax: 5 * probeMs };
}

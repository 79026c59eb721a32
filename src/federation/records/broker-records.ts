// Connects a federation's authority to the broker: the exported shards of all members become its records, members with an
// expired lease are left out, and the Federation object sets the policy. While the broker is unreachable nothing changes.

import type { Log } from '../../base/log.ts';
import type { IpRange } from '../../base/net/ip.ts';
import { repeat } from '../../base/repeat.ts';
import type { World } from '../../base/world.ts';
import { type ClusterSet, clusterSetType } from '../../clusterset/kinds/cluster-set.ts';
import type { ServiceShard } from '../../clusterset/kinds/service-shard.ts';
import { type Member, MemberFollower } from '../../clusterset/members/follower.ts';
import { readHeartbeat } from '../../clusterset/members/read-heartbeat.ts';
import { timesFor } from '../../clusterset/rules/leases/heartbeat-rate.ts';
import { homeAwayOf } from '../../clusterset/rules/leases/home-away.ts';
import { LeaseMonitor, type LeaseTimes } from '../../clusterset/rules/leases/lease-monitor.ts';
import { parseRecordName } from '../../clusterset/rules/names.ts';
import { readSetPolicy } from '../../clusterset/rules/set-policy.ts';
import { getOrUndefined } from '../../kube/client/absent.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
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

const probeMs = 1000;

export class FederationAttachment {
  readonly #options: AttachFederationOptions;
  readonly #shared;
  readonly federations: Informer<Federation>;
  readonly #members;
  #leaseTimes = timesOf(undefined, 0);
  #virtualRanges;
  readonly #monitor;
  readonly #waiters: (() => void)[] = [];
  #hasSynced = false;
  readonly #stopProbing;

  constructor(options: AttachFederationOptions) {
    this.#options = options;
    this.#shared = { client: this.#options.broker, world: this.#options.world, log: this.#options.log };
    this.federations = createInformer<Federation>({
      ...this.#shared,
      type: federationType,
      namespace: this.#options.clusterset,
    });
    this.#members = new MemberFollower({ ...this.#options, hasEndpoints: false });
    this.#members.on({
      shard: (member, next, previous) => {
        if (next) this.#publish(member, next);
        else if (previous) this.#withdraw(member, previous);
      },
      removed: (member) => {
        for (const shard of member.shards.values()) this.#withdraw(member, shard);
        this.#monitor.forget(member.id);
        this.#options.sink.setClusterAlive(member.id, true);
      },
      // Its place or its limits may have changed.
      changed: (_id, member) => {
        for (const shard of member?.shards.values() ?? []) this.#publish(member!, shard);
      },
      heartbeat: (id, next) => {
        if (next) this.#see(id, next);
      },
      listed: () => this.#checkSynced(),
    });
    const { virtualRanges } = readSetPolicy(undefined);
    this.#virtualRanges = virtualRanges;
    this.#monitor = new LeaseMonitor(() => this.#leaseTimes);
    this.federations.on((_key, next, previous) => {
      if ((next ?? previous)?.metadata.name !== this.#options.federation || isSameSpec(next, previous)) return;
      if (next) this.#options.sink.setPolicy(this.#options.federation, next.spec?.policy ?? 'ordered');
      this.#publishAll();
    });
    this.federations.start();
    this.#members.start();
    this.#members.watchHeartbeats(true);
    void this.federations.whenSynced().then(() => this.#checkSynced());
    this.#stopProbing = repeat(this.#options.world.timers, { everyMs: probeMs, firstMs: 0 }, () => this.#probe());
  }

  get clusters() {
    return this.#members.clusters;
  }

  whenSynced(): Promise<void> {
    return this.#hasSynced ? Promise.resolve() : new Promise((resolve) => this.#waiters.push(resolve));
  }

  stop(): void {
    this.#stopProbing();
    this.federations.stop();
    this.#members.stop();
  }

  #federation(): Federation | undefined {
    return this.federations.get(`${this.#options.clusterset}/${this.#options.federation}`);
  }

  #publish(member: Member, shard: ServiceShard): void {
    const present = this.#federation();
    const wanted =
      present && federatedShard({ shard, cluster: member.cluster, virtualRanges: this.#virtualRanges }, present);
    if (wanted) this.#options.sink.upsertShard(wanted.key, wanted.record, this.#seenNow(shard));
    else this.#withdraw(member, shard);
  }

  #seenNow({ metadata }: ServiceShard) {
    return { revision: metadata.resourceVersion ?? '', seenMs: this.#options.world.clock.monotonicMs() };
  }

  #withdraw(member: Member, shard: ServiceShard): void {
    const service = parseRecordName(shard.metadata.name);
    const { name: cluster } = member.cluster.metadata;
    if (!service) return;
    const { namespace, name } = service;
    this.#options.sink.removeShard({ federation: this.#options.federation, namespace, service: name, cluster });
  }

  #see(id: string, lease: Lease): void {
    const token = lease.metadata.resourceVersion ?? '';
    const homeAwaySince = homeAwayOf(lease)?.since;
    this.#monitor.seen({ cluster: id, token, nowMs: this.#options.world.clock.monotonicMs(), homeAwaySince });
    this.#tellVerdict(id);
  }

  #tellVerdict(id: string): void {
    this.#options.sink.setClusterAlive(id, this.#monitor.verdict(id) === 'alive');
  }

  #checkSynced(): void {
    if (this.#hasSynced || !this.federations.hasSynced || !this.#members.hasSynced) return;
    this.#hasSynced = true;
    this.#options.sink.setSynced();
    for (const waiter of this.#waiters.splice(0)) waiter();
  }

  #publishAll(): void {
    for (const member of this.#members.all()) for (const shard of member.shards.values()) this.#publish(member, shard);
  }

  #followRanges(set: ClusterSet | undefined): void {
    const next = readSetPolicy(set).virtualRanges;
    const isSame =
      next.length === this.#virtualRanges.length &&
      next.every((range, at) => isSameRange(range, this.#virtualRanges[at]!));
    if (isSame) return;
    this.#virtualRanges = next;
    this.#publishAll();
  }

  /** Only time in which the broker responds counts towards expiry. */
  async #probe(): Promise<void> {
    try {
      // Not found is a response too; any other error means that the broker is unreachable.
      const ref = { namespace: this.#options.clusterset, name: this.#options.clusterset };
      const set = await getOrUndefined<ClusterSet>(this.#options.broker, clusterSetType, ref);
      this.#leaseTimes = timesOf(set, this.#members.all().length);
      this.#followRanges(set);
      this.#monitor.ownRenewed(this.#options.world.clock.monotonicMs());
      for (const id of this.#monitor.suspects()) await this.#lookOnceMore(id);
      for (const { id } of this.#members.all()) this.#tellVerdict(id);
      this.#options.sink.setStale(false);
    } catch {
      this.#monitor.ownRenewalFailed();
      if (this.#hasSynced) this.#options.sink.setStale(true);
    }
  }

  async #lookOnceMore(id: string): Promise<void> {
    const namespace = this.#members.get(id)?.cluster.spec.namespace;
    if (namespace !== undefined) {
      const lease = await readHeartbeat(this.#options.broker, namespace);
      if (lease) this.#see(id, lease);
    }
    this.#monitor.condemn(id);
    if (this.#monitor.verdict(id) === 'stale')
      this.#options.log.info('lease of a cluster expired, its shards are left out', { cluster: id });
  }
}

function isSameRange(a: IpRange, b: IpRange): boolean {
  return a.family === b.family && a.first === b.first && a.size === b.size;
}

/** The lease times of members. An authority has no lease; its own probes count as renewals. */
function timesOf(set: ClusterSet | undefined, memberCount: number): LeaseTimes {
  return { ...timesFor(readSetPolicy(set).lease, memberCount), renewalGapMsMax: 5 * probeMs };
}

// The members of a clusterset as this agent sees them at the broker: for each Cluster object, local copies of the lease,
// shards and slices in that member's namespace. A record's cluster is the namespace it lies in, never what it says.
//
// A member that leaves is told as the deletion of all it had. While the broker is away everything known stays.

import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type Informer, type InformerReader } from '../../kube/controller/informer.ts';
import { type EndpointSlice, endpointSliceType, sourceClusterLabel } from '../../kube/objects/endpoint-slice.ts';
import { type Lease, leaseType } from '../../kube/objects/lease.ts';
import type { KubernetesObject } from '../../kube/objects/object.ts';
import { type Cluster, clusterType } from '../kinds/cluster.ts';
import { type ServiceShard, serviceShardType } from '../kinds/service-shard.ts';
import { memberLeaseName } from '../rules/broker-layout.ts';
import { formatServiceKey, parseRecordName, recordName, type ServiceKey } from '../rules/names.ts';
import { placementsAnnotation } from '../rules/placement.ts';
import { publishedServiceKey, recordProblem } from '../rules/shard-record.ts';

export interface Member {
  readonly id: string;
  readonly cluster: Cluster;
  readonly shards: Informer<ServiceShard>;
  readonly slices: Informer<EndpointSlice>;
  readonly leases: Informer<Lease>;
}

export interface MembersOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly broker: Client;
  /** Namespace of the clusterset at the broker. */
  readonly clusterset: string;
}

export interface MemberServicesOptions {
  /** Only what this member has records of. */
  readonly only?: string;
  /** Whether slices count too; shards alone if not. Asked at each change. */
  readonly hasSlices: () => boolean;
  readonly whenSynced: () => Promise<void>;
}

interface ServiceNews {
  readonly clusterId: string;
  readonly isSlice: boolean;
}

/** By service, over the records of one member. */
export const byService = 'service';

/** Over shards: by the namespace of the service. */
export const byNamespace = 'namespace';

export class Members {
  readonly #options: MembersOptions;
  readonly clusters: Informer<Cluster>;
  readonly #members = new Map<string, Member>();
  /** The members in order; undefined when one has come, changed or gone since. */
  #sorted: readonly Member[] | undefined;
  /** Whose first lists are not all in yet. */
  readonly #unsynced = new Map<string, Member>();
  readonly #serviceHandlers = new Set<(serviceKey: string, news: ServiceNews) => void>();
  readonly #upgradeHandlers = new Set<(clusterId: string) => void>();
  readonly #leaseHandlers = new Set<(clusterId: string, lease: Lease | undefined) => void>();
  readonly #placementHandlers = new Set<() => void>();
  readonly #returnHandlers = new Set<(clusterId: string) => void>();
  readonly #memberHandlers = new Set<(clusterId: string, member: Member | undefined) => void>();

  constructor(options: MembersOptions) {
    this.#options = options;
    this.clusters = createInformer<Cluster>({
      client: options.broker,
      world: options.world,
      log: options.log,
      type: clusterType,
      namespace: options.clusterset,
    });
    this.clusters.on((_key, next, previous) => this.#clusterChanged(next, previous));
  }

  start(): void {
    this.clusters.start();
  }

  stop(): void {
    this.clusters.stop();
    for (const member of this.#members.values()) stopMember(member);
  }

  /** The broker may have been put back to an older copy: everything is listed anew. */
  relist(): void {
    this.clusters.relist();
    for (const member of this.#members.values()) for (const informer of informersOf(member)) informer.relist();
  }

  get(clusterId: string): Member | undefined {
    return this.#members.get(clusterId);
  }

  /** In the order of text, so that whoever walks them does so alike everywhere. */
  all(): readonly Member[] {
    this.#sorted ??= [...this.#members.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
    return this.#sorted;
  }

  /** The first list of everything is in: what is not here is not there. */
  get hasSynced(): boolean {
    return this.clusters.hasSynced && this.unsynced().length === 0;
  }

  /** Members whose records are not all here yet: what they had before must not be taken for withdrawn. */
  unsynced(): string[] {
    if (this.#unsynced.size === 0) return [];
    for (const [id, member] of this.#unsynced) if (hasMemberSynced(member)) this.#unsynced.delete(id);
    return [...this.#unsynced.keys()].sort();
  }

  /** As a source of keys for a controller: each key is that of a service some member has, or had, records of. */
  services(options: MemberServicesOptions): Pick<InformerReader<string>, 'on' | 'whenSynced'> {
    return {
      on: (handler) => {
        const told = (serviceKey: string, { clusterId, isSlice }: ServiceNews) => {
          if (options.only !== undefined && options.only !== clusterId) return;
          if (!isSlice || options.hasSlices()) handler(serviceKey, undefined, undefined);
        };
        for (const { id, shards, slices } of this.#members.values()) {
          for (const shard of shards.values())
            tellKey(shardKey(shard), (key) => told(key, { clusterId: id, isSlice: false }));
          for (const slice of slices.values())
            tellKey(publishedServiceKey(slice), (key) => told(key, { clusterId: id, isSlice: true }));
        }
        this.#serviceHandlers.add(told);
        return () => this.#serviceHandlers.delete(told);
      },
      whenSynced: () => options.whenSynced(),
    };
  }

  /** Keys of all services in a namespace that some member exports. */
  servicesIn(namespace: string): Set<string> {
    const shards = this.all().flatMap((member) => member.shards.byIndex(byNamespace, namespace));
    return new Set(shards.map(shardKey).filter((key) => key !== undefined));
  }

  /** Keys of all services that this member has records of. */
  servicesOf(clusterId: string): Set<string> {
    const shards = this.#members.get(clusterId)?.shards.values() ?? [];
    return new Set(Array.from(shards, shardKey).filter((key) => key !== undefined));
  }

  /** Keys of all services that this member has shards or slices of. */
  recordsOf(clusterId: string): Set<string> {
    const slices = this.#members.get(clusterId)?.slices.values() ?? [];
    const keys = Array.from(slices, publishedServiceKey).filter((key) => key !== undefined);
    return new Set([...this.servicesOf(clusterId), ...keys]);
  }

  /** Whether the cluster publishes in today's form: it has at least one shard. */
  isUpgraded(clusterId: string): boolean {
    return (this.#members.get(clusterId)?.shards.size ?? 0) > 0;
  }

  /** Told when a member's first shard appears and when its last one goes. */
  onUpgrade(handler: (clusterId: string) => void): void {
    this.#upgradeHandlers.add(handler);
  }

  /** Told when what a member says of its placements has changed. */
  onPlacements(handler: () => void): void {
    this.#placementHandlers.add(handler);
  }

  /** Told when the broker shows the shards or slices of a member again after it did not. */
  onReturn(handler: (clusterId: string) => void): void {
    this.#returnHandlers.add(handler);
  }

  onLease(handler: (clusterId: string, lease: Lease | undefined) => void): void {
    this.#leaseHandlers.add(handler);
  }

  /** Told when a member comes, changes (its Cluster object) or goes. */
  onMember(handler: (clusterId: string, member: Member | undefined) => void): void {
    this.#memberHandlers.add(handler);
  }

  #clusterChanged(next: Cluster | undefined, previous: Cluster | undefined): void {
    const id = (next ?? previous)?.metadata.name;
    if (id === undefined) return;
    const present = this.#members.get(id);
    const isSamePlace = next !== undefined && present?.cluster.spec.namespace === next.spec.namespace;
    this.#sorted = undefined;
    if (present !== undefined && !isSamePlace) this.#remove(present);
    if (next !== undefined) this.#members.set(id, isSamePlace ? { ...present!, cluster: next } : this.#add(next));
    this.#sorted = undefined;
    for (const handler of this.#memberHandlers) handler(id, this.#members.get(id));
  }

  #add(cluster: Cluster): Member {
    const { world, log, broker } = this.#options;
    const id = cluster.metadata.name;
    const shared = { client: broker, world, log: log.with({ member: id }), namespace: cluster.spec.namespace };
    const member: Member = {
      id,
      cluster,
      shards: createInformer<ServiceShard>({
        ...shared,
        type: serviceShardType,
        indexes: { [byNamespace]: (shard) => keysOf(parseRecordName(shard.metadata.name)?.namespace) },
      }),
      slices: createInformer<EndpointSlice>({
        ...shared,
        type: endpointSliceType,
        indexes: { [byService]: (slice) => keysOf(publishedServiceKey(slice)) },
      }),
      leases: createInformer<Lease>({ ...shared, type: leaseType }),
    };
    const doubt = createDoubts(id, shared.log);
    member.shards.on((_key, next, previous) => {
      doubt(next, next && shardKey(next));
      this.#tellShard(id, next ?? previous);
      const isFirstOrLast = member.shards.size === (next === undefined ? 0 : 1);
      if (isFirstOrLast) for (const handler of this.#upgradeHandlers) handler(id);
    });
    member.slices.on((_key, next, previous) => {
      doubt(next, next && publishedServiceKey(next));
      this.#tellSlice(id, next, previous);
    });
    member.leases.on((_key, next, previous) => this.#tellLease(id, next, previous));
    for (const records of [member.shards, member.slices]) {
      records.onReturn(() => {
        for (const handler of this.#returnHandlers) handler(id);
      });
    }
    for (const informer of informersOf(member)) informer.start();
    this.#unsynced.set(id, member);
    return member;
  }

  #remove(member: Member): void {
    stopMember(member);
    this.#members.delete(member.id);
    this.#unsynced.delete(member.id);
    this.#sorted = undefined;
    for (const shard of member.shards.values()) this.#tellShard(member.id, shard);
    for (const slice of member.slices.values()) this.#tellSlice(member.id, undefined, slice);
  }

  #tellShard(id: string, shard: ServiceShard | undefined): void {
    const key = shard && shardKey(shard);
    if (key !== undefined) this.#tellService(key, { clusterId: id, isSlice: false });
  }

  #tellSlice(id: string, next: EndpointSlice | undefined, previous: EndpointSlice | undefined): void {
    const keys = new Set([
      ...keysOf(next && publishedServiceKey(next)),
      ...keysOf(previous && publishedServiceKey(previous)),
    ]);
    for (const key of keys) this.#tellService(key, { clusterId: id, isSlice: true });
  }

  #tellService(serviceKey: string, news: ServiceNews): void {
    for (const handler of this.#serviceHandlers) handler(serviceKey, news);
  }

  #tellLease(id: string, next: Lease | undefined, previous: Lease | undefined): void {
    if ((next ?? previous)?.metadata.name !== memberLeaseName) return;
    for (const handler of this.#leaseHandlers) handler(id, next);
    const [says, said] = [next, previous].map((lease) => lease?.metadata.annotations?.[placementsAnnotation]);
    if (says !== said) for (const handler of this.#placementHandlers) handler();
  }
}

function hasMemberSynced(member: Member): boolean {
  return member.shards.hasSynced && member.slices.hasSynced && member.leases.hasSynced;
}

/** What the member exports of the service. */
export function shardOf(member: Member, service: ServiceKey): ServiceShard | undefined {
  return member.shards.get(`${member.cluster.spec.namespace}/${recordName(service)}`);
}

function stopMember(member: Member): void {
  for (const informer of informersOf(member)) informer.stop();
}

function informersOf({ shards, slices, leases }: Member) {
  return [shards, slices, leases];
}

function shardKey(shard: ServiceShard): string | undefined {
  const service = parseRecordName(shard.metadata.name);
  return service && formatServiceKey(service);
}

/** Says which records of a member cannot be what they claim, each kind of doubt once: a liar may write all day. */
function createDoubts(id: string, log: Log): (record: KubernetesObject | undefined, serviceKey?: string) => void {
  const said = new Set<string>();
  return (record, serviceKey) => {
    if (record === undefined) return;
    const claims = record.metadata.labels?.[sourceClusterLabel] ?? id;
    const isForeign = claims !== id;
    const problem = record.kind === serviceShardType.kind ? recordProblem(record as ServiceShard) : undefined;
    const what = isForeign
      ? 'record claims another cluster, counted for its own'
      : problem !== undefined
        ? 'record cannot be counted, ignored'
        : 'record of no service, ignored';
    if ((serviceKey !== undefined && !isForeign && problem === undefined) || said.has(what)) return;
    said.add(what);
    const { name, namespace } = record.metadata;
    log.warn(what, { kind: record.kind, name, namespace, claims, problem });
  };
}

function tellKey(key: string | undefined, tell: (key: string) => void): void {
  if (key !== undefined) tell(key);
}

function keysOf(key: string | undefined): string[] {
  return key === undefined ? [] : [key];
}

// Follows the members of a clusterset at its broker: the Cluster objects, and the records of all members, with one informer
// for each kind. Agents and authorities share it. While the broker is unreachable all copies stay as they are.

import type { Hpke, KeyPair } from '../../base/keys/hpke.ts';
import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type Informer, type InformerOptions } from '../../kube/controller/informer.ts';
import type { EndpointSlice } from '../../kube/objects/endpoint-slice.ts';
import type { KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import { type Cluster, clusterType } from '../kinds/cluster.ts';
import { endpointShardType } from '../kinds/endpoint-shard.ts';
import { type Heartbeat, heartbeatType } from '../kinds/heartbeat.ts';
import { type ServiceShard, serviceShardType } from '../kinds/service-shard.ts';
import { memberLeaseName } from '../rules/broker-layout.ts';
import { formatServiceKey, parseRecordName, recordName, type ServiceKey } from '../rules/names.ts';
import { publishedServiceKey } from '../rules/shard-record.ts';
import { layered } from './opened-part.ts';
import { SealedCopy, type SeenMarks } from './sealed-copy.ts';
import { type RecordPart, SharedCopy } from './shared-copy.ts';

export interface FollowerOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly broker: Client;
  /** Namespace of the clusterset at the broker. */
  readonly clusterset: string;
  /** Whether endpoints are followed too. */
  readonly hasEndpoints: boolean;
  /** Without it sealed records are not read. */
  readonly sealing?: FollowerSealing | undefined;
}

export interface FollowerSealing {
  readonly hpke: Hpke;
  readonly memory: SeenMarks;
  readonly clusterId: string;
  /** This cluster's keys; undefined while there are none. */
  readonly identity: () => KeyPair | undefined;
  /** The key of a member; undefined while none is trusted. */
  readonly publicKeyOf: (cluster: Cluster) => Uint8Array | undefined;
}

export interface Member {
  readonly id: string;
  readonly cluster: Cluster;
  /** Those that lie open at the broker, and those that were sealed for this cluster. */
  readonly shards: RecordPart<ServiceShard>;
  readonly endpoints: RecordPart<EndpointSlice>;
  /** Those that lie open at the broker alone. */
  readonly open: { readonly shards: RecordPart<ServiceShard>; readonly endpoints: RecordPart<EndpointSlice> };
  /** Its heartbeat; undefined also while heartbeats are not watched here. */
  readonly heartbeat: () => Heartbeat | undefined;
}

/** Called with each change of the kinds they name. */
export interface MemberHandlers {
  readonly shard?: (member: Member, next: ServiceShard | undefined, previous: ServiceShard | undefined) => void;
  readonly endpoints?: (member: Member, next: EndpointSlice | undefined, previous: EndpointSlice | undefined) => void;
  /** Shards or endpoints can be read again after a failure. */
  readonly returned?: () => void;
  /** The member has left, or its records moved to another namespace. */
  readonly removed?: (member: Member) => void;
  /** After any change of a Cluster object; undefined if it is deleted. */
  readonly changed?: (id: string, member: Member | undefined) => void;
  /** The heartbeat of a member; undefined if it is deleted. */
  readonly heartbeat?: (id: string, next: Heartbeat | undefined, previous: Heartbeat | undefined) => void;
  /** After the first list of each kind. */
  readonly listed?: () => void;
}

/** Over endpoints: by the key of their service. */
export const byService = 'service';

/** Over shards: by the namespace of the service. */
export const byNamespace = 'namespace';

export class MemberFollower {
  readonly clusters: Informer<Cluster>;
  /** Undefined for who does not read sealed records. Opened from outside, where the set has any. */
  readonly sealed: SealedCopy | undefined;
  readonly #handlers = new Set<MemberHandlers>();
  readonly #shards: SharedCopy<ServiceShard>;
  readonly #endpoints: SharedCopy<EndpointSlice>;
  readonly #heartbeats: SharedCopy<Heartbeat>;
  readonly #hasEndpoints: boolean;
  readonly #members = new Map<string, Member>();
  /** Ids by the namespace of their records: one, unless an admin gave a namespace to two. */
  readonly #idsByNamespace = new Map<string, readonly string[]>();
  /** The members by id; undefined after a change. */
  #sorted: readonly Member[] | undefined;

  constructor(options: FollowerOptions) {
    this.#hasEndpoints = options.hasEndpoints;
    const { broker: client, world, log, clusterset: namespace } = options;
    this.clusters = createInformer<Cluster>({ client, world, log, type: clusterType, namespace });
    const copyOf = <T extends KubernetesObject>(type: ResourceType, indexes: InformerOptions<T, T>['indexes']) =>
      new SharedCopy<T>({ client, world, log, type, indexes, keepsLost: true });
    this.#shards = copyOf<ServiceShard>(serviceShardType, {
      [byNamespace]: (shard) => keysOf(parseRecordName(shard.metadata.name)?.namespace),
    });
    this.#endpoints = copyOf<EndpointSlice>(endpointShardType, {
      [byService]: (slice) => keysOf(publishedServiceKey(slice)),
    });
    this.#heartbeats = copyOf<Heartbeat>(heartbeatType, {});
    this.sealed = options.sealing && this.#sealedCopy(options, options.sealing);
    this.clusters.on((_key, next, previous) => this.#clusterChanged(next, previous));
    this.#shards.on((_key, next, previous) => {
      for (const member of this.#ownersOf((next ?? previous)!)) this.#tellShard(member, next, previous);
    });
    this.#endpoints.on((_key, next, previous) => {
      for (const member of this.#ownersOf((next ?? previous)!)) this.#tellEndpoints(member, next, previous);
    });
    this.#heartbeats.on((_key, next, previous) => {
      const record = (next ?? previous)!;
      if (record.metadata.name !== memberLeaseName) return;
      for (const { id } of this.#ownersOf(record)) this.#tellHeartbeat(id, next, previous);
    });
    for (const copy of [this.#shards, this.#endpoints, this.sealed])
      copy?.onReturn(() => {
        for (const { returned } of this.#handlers) returned?.();
      });
  }

  /** From now on: records that are here already are not named again. In the order of these calls. */
  on(handlers: MemberHandlers): void {
    this.#handlers.add(handlers);
  }

  start(): void {
    this.clusters.start();
    for (const copy of this.#records()) copy.open();
    for (const copy of [this.clusters, ...this.#records()])
      void copy.whenSynced().then(() => {
        for (const { listed } of this.#handlers) listed?.();
      });
  }

  stop(): void {
    this.clusters.stop();
    for (const copy of [this.#shards, this.#endpoints, this.#heartbeats, this.sealed]) copy?.close();
  }

  /** For a broker that may have been restored from an older copy. */
  relist(): void {
    for (const copy of [this.clusters, this.#shards, this.#endpoints, this.#heartbeats, this.sealed]) copy?.relist();
  }

  get(id: string): Member | undefined {
    return this.#members.get(id);
  }

  /** The member whose records lie in that namespace. */
  inNamespace(namespace: string): Member | undefined {
    const [id] = this.#idsByNamespace.get(namespace) ?? [];
    return id === undefined ? undefined : this.#members.get(id);
  }

  /** In the order of their ids, so that every process iterates alike. */
  all(): readonly Member[] {
    this.#sorted ??= [...this.#members.values()].sort(byId);
    return this.#sorted;
  }

  /** Members that export the service, in the order of their ids. Costs their number, not that of all members. */
  exportersOf(service: ServiceKey): readonly Member[] {
    const name = recordName(service);
    const records = [...this.#shards.named(name), ...(this.sealed?.named(name) ?? [])];
    return [...new Set(records.flatMap((shard) => this.#ownersOf(shard)))].sort(byId);
  }

  /** All first lists are complete: a missing record does not exist. */
  get hasSynced(): boolean {
    return this.clusters.hasSynced && this.#records().every(({ hasSynced }) => hasSynced);
  }

  async whenSynced(signal: AbortSignal): Promise<void> {
    await Promise.all([this.clusters, ...this.#records()].map((copy) => copy.whenSynced(signal)));
  }

  /** Why the records of members cannot be read; undefined while nothing is known to be wrong. */
  get problem(): string | undefined {
    return this.#shards.problem ?? this.#endpoints.problem;
  }

  watchHeartbeats(isWatched: boolean): void {
    if (isWatched) this.#heartbeats.open();
    else this.#heartbeats.close();
  }

  /** Whether the heartbeats of all members are seen here. */
  get areHeartbeatsWatched(): boolean {
    return this.#heartbeats.hasSynced;
  }

  /** Resolves when they are listed, or at once if they are not watched. */
  whenHeartbeatsWatched(): Promise<void> {
    return this.#heartbeats.whenSynced();
  }

  #sealedCopy({ broker: client, world, log, clusterset }: FollowerOptions, sealing: FollowerSealing): SealedCopy {
    return new SealedCopy({
      ...{ client, world, log, clusterset, hpke: sealing.hpke, memory: sealing.memory },
      clusterId: sealing.clusterId,
      identity: sealing.identity,
      exporterIn: (namespace) => {
        const member = this.inNamespace(namespace);
        if (member === undefined) return undefined;
        const isSelf = member.id === sealing.clusterId;
        const publicKey = isSelf ? sealing.identity()?.publicKey : sealing.publicKeyOf(member.cluster);
        return { id: member.id, publicKey };
      },
      onShard: (next, previous) => {
        for (const member of this.#ownersOf((next ?? previous)!)) this.#tellShard(member, next, previous);
      },
      onEndpoints: (next, previous) => {
        for (const member of this.#ownersOf((next ?? previous)!)) this.#tellEndpoints(member, next, previous);
      },
    });
  }

  #records(): readonly Pick<SharedCopy<KubernetesObject>, 'open' | 'hasSynced' | 'whenSynced'>[] {
    return this.#hasEndpoints ? [this.#shards, this.#endpoints] : [this.#shards];
  }

  #ownersOf({ metadata }: KubernetesObject): Member[] {
    const ids = this.#idsByNamespace.get(metadata.namespace ?? '') ?? [];
    return ids.flatMap((id) => this.#members.get(id) ?? []);
  }

  #clusterChanged(next: Cluster | undefined, previous: Cluster | undefined): void {
    const id = (next ?? previous)?.metadata.name;
    if (id === undefined) return;
    const present = this.#members.get(id);
    const isSamePlace = next !== undefined && present?.cluster.spec.namespace === next.spec.namespace;
    if (present !== undefined && !isSamePlace) this.#remove(present);
    if (next !== undefined && isSamePlace) this.#set({ ...present!, cluster: next });
    else if (next !== undefined) this.#add(id, next);
    for (const { changed } of this.#handlers) changed?.(id, this.#members.get(id));
  }

  /** Its records may be here already. */
  #add(id: string, cluster: Cluster): void {
    const { namespace } = cluster.spec;
    const open = { shards: this.#shards.part(namespace), endpoints: this.#endpoints.part(namespace) };
    const shards = layered(open.shards, () => this.sealed?.shards(namespace));
    const endpoints = layered(open.endpoints, () => this.sealed?.endpoints(namespace));
    const heartbeats = this.#heartbeats.part(namespace);
    const heartbeat = () => heartbeats.get(memberLeaseName);
    const member: Member = { id, cluster, shards, endpoints, open, heartbeat };
    this.#set(member);
    this.#idsByNamespace.set(namespace, [...(this.#idsByNamespace.get(namespace) ?? []), id]);
    for (const shard of shards.values()) this.#tellShard(member, shard, undefined);
    for (const slice of endpoints.values()) this.#tellEndpoints(member, slice, undefined);
    this.sealed?.reconsider(namespace);
    const beat = heartbeat();
    if (beat !== undefined) this.#tellHeartbeat(id, beat, undefined);
  }

  #tellShard(member: Member, next: ServiceShard | undefined, previous: ServiceShard | undefined): void {
    for (const { shard } of this.#handlers) shard?.(member, next, previous);
  }

  #tellEndpoints(member: Member, next: EndpointSlice | undefined, previous: EndpointSlice | undefined): void {
    for (const { endpoints } of this.#handlers) endpoints?.(member, next, previous);
  }

  #tellHeartbeat(id: string, next: Heartbeat | undefined, previous: Heartbeat | undefined): void {
    for (const { heartbeat } of this.#handlers) heartbeat?.(id, next, previous);
  }

  #remove(member: Member): void {
    const { namespace } = member.cluster.spec;
    this.#members.delete(member.id);
    const others = (this.#idsByNamespace.get(namespace) ?? []).filter((id) => id !== member.id);
    if (others.length === 0) this.#idsByNamespace.delete(namespace);
    else this.#idsByNamespace.set(namespace, others);
    this.#sorted = undefined;
    for (const { removed } of this.#handlers) removed?.(member);
    this.sealed?.drop(namespace);
  }

  #set(member: Member): void {
    this.#members.set(member.id, member);
    this.#sorted = undefined;
  }
}

/** The export of the service by this member. */
export function shardOf(member: Member, service: ServiceKey): ServiceShard | undefined {
  return member.shards.get(recordName(service));
}

/** The slices that this member has published of the service. */
export function publishedBy(member: Member, service: ServiceKey): readonly EndpointSlice[] {
  return member.endpoints.byIndex(byService, formatServiceKey(service));
}

/** Whether the cluster publishes in today's form: it has at least one shard. */
export function isUpgraded(member: Member | undefined): boolean {
  return (member?.shards.size ?? 0) > 0;
}

function keysOf(key: string | undefined): string[] {
  return key === undefined ? [] : [key];
}

function byId(a: Member, b: Member): number {
  return a.id < b.id ? -1 : 1;
}

// Follows the members of a clusterset at its broker: the Cluster objects, and copies of each member's records. Agents and
// authorities share it. Another layout is read from when its copies are complete, and not a moment without. While the
// broker is unreachable all copies stay as they are.

import type { Timer } from '../../base/world.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import type { EndpointSlice } from '../../kube/objects/endpoint-slice.ts';
import type { Lease } from '../../kube/objects/lease.ts';
import { type Cluster, clusterType } from '../kinds/cluster.ts';
import type { RecordLayout } from '../kinds/cluster-set.ts';
import type { ServiceShard } from '../kinds/service-shard.ts';
import { type MemberCopies, MemberSources, type SourceOptions } from './sources.ts';

export interface FollowerOptions extends Omit<SourceOptions, 'hasEndpoints'> {
  /** Namespace of the clusterset at the broker. */
  readonly clusterset: string;
  /** Id of the member whose agent this is; none for an authority. */
  readonly clusterId?: string;
}

export interface Member extends MemberCopies {
  readonly id: string;
  readonly cluster: Cluster;
}

export interface MemberHandlers {
  readonly shard: (member: Member, next: ServiceShard | undefined, previous: ServiceShard | undefined) => void;
  /** A published slice, of either kind. */
  readonly endpoints?: (member: Member, next: EndpointSlice | undefined, previous: EndpointSlice | undefined) => void;
  /** The records of a member can be read again after a failure. */
  readonly returned?: (member: Member) => void;
  /** The member has left, or its records moved to another namespace; its copies are stopped. */
  readonly removed: (member: Member) => void;
  /** After any change of a Cluster object; undefined if it is deleted. */
  readonly changed: (id: string, member: Member | undefined) => void;
  /** The lease of a member; undefined if it is deleted. */
  readonly lease: (id: string, next: Lease | undefined, previous: Lease | undefined) => void;
  /** After the first list of the Cluster objects, and after the first lists of each member. */
  readonly listed?: () => void;
}

/** How long the rights to read all namespaces may be missing before members are read one by one meanwhile. */
const forbiddenMs = 15_000;

export class MemberFollower {
  readonly clusters: Informer<Cluster>;
  readonly #options: FollowerOptions;
  readonly #handlers: MemberHandlers;
  readonly #sources: MemberSources;
  readonly #members = new Map<string, Member>();
  readonly #idsByNamespace = new Map<string, string>();
  /** Members whose first lists are not complete. */
  readonly #unsynced = new Set<string>();
  readonly #stopping = new AbortController();
  /** Copies of the layout per member that are not complete yet. Without the rights they never are. */
  readonly #moving = new Set<MemberCopies>();
  /** The members by id; undefined after a change. */
  #sorted: readonly Member[] | undefined;
  /** Whether one look into the shared copy finds the shards of all members; undefined after a change. */
  #areShardsShared: boolean | undefined;
  /** The layout in the ClusterSet; undefined until it is known, and then nothing is read. */
  #wanted: RecordLayout | undefined;
  #timer: Timer | undefined;

  constructor(options: FollowerOptions & { readonly hasEndpoints: boolean }, handlers: MemberHandlers) {
    this.#options = options;
    this.#handlers = handlers;
    this.#sources = new MemberSources(options);
    const { broker: client, world, log, clusterset: namespace } = options;
    this.clusters = createInformer<Cluster>({ client, world, log, type: clusterType, namespace });
    this.clusters.on((_key, next, previous) => this.#clusterChanged(next, previous));
  }

  start(): void {
    this.clusters.start();
    void this.clusters.whenSynced().then(this.#handlers.listed);
  }

  stop(): void {
    this.#stopping.abort();
    this.#timer?.cancel();
    this.clusters.stop();
    this.#giveUpMoves();
    for (const member of this.#members.values()) stopCopies(member);
    this.#sources.closeShared();
  }

  #giveUpMoves(): void {
    for (const { shards, endpoints } of this.#moving) for (const copy of [shards, endpoints]) copy.stop();
    this.#moving.clear();
  }

  /** For a broker that may have been restored from an older copy. */
  relist(): void {
    this.clusters.relist();
    this.#sources.relist();
    for (const member of this.#members.values()) for (const copy of copiesOf(member)) copy.relist();
  }

  get(id: string): Member | undefined {
    return this.#members.get(id);
  }

  /** The member whose records lie in that namespace. */
  inNamespace(namespace: string): Member | undefined {
    const id = this.#idsByNamespace.get(namespace);
    return id === undefined ? undefined : this.#members.get(id);
  }

  /** In the order of their ids, so that every process iterates alike. */
  all(): readonly Member[] {
    this.#sorted ??= [...this.#members.values()].sort(byId);
    return this.#sorted;
  }

  /** Members that have a shard of that name, in the order of their ids. Costs their number, not that of all members. */
  exporters(recordName: string): readonly Member[] {
    const has = (member: Member) => member.shards.get(`${placeOf(member)}/${recordName}`) !== undefined;
    const isOnePlaceEach = this.#idsByNamespace.size === this.#members.size;
    this.#areShardsShared ??= isOnePlaceEach && this.all().every(({ layout }) => layout === 'AllNamespaces');
    if (!this.#areShardsShared) return this.all().filter(has);
    const found = this.#sources.sharedShards(recordName).flatMap(({ metadata }) => {
      return this.inNamespace(metadata.namespace ?? '') ?? [];
    });
    return found.sort(byId);
  }

  /** All first lists are complete: a missing record does not exist. */
  get hasSynced(): boolean {
    return this.#wanted !== undefined && this.clusters.hasSynced && this.unsynced().length === 0;
  }

  /** Members whose records are not complete yet: a missing record may still come. */
  unsynced(): string[] {
    for (const id of this.#unsynced) {
      const member = this.#members.get(id);
      if (member === undefined || copiesOf(member).every(({ hasSynced }) => hasSynced)) this.#unsynced.delete(id);
    }
    return [...this.#unsynced].sort();
  }

  /** The layout that every member is read by now. */
  get reads(): RecordLayout {
    return this.#wanted === 'AllNamespaces' && this.#sources.hasShared ? 'AllNamespaces' : 'PerMember';
  }

  /** Reads by this layout as soon as its copies are complete. */
  read(layout: RecordLayout): void {
    if (this.#wanted === layout || this.#stopping.signal.aborted) return;
    const isFirst = this.#wanted === undefined;
    this.#wanted = layout;
    this.#timer?.cancel();
    this.#giveUpMoves();
    if (layout === 'AllNamespaces') this.#readShared(isFirst);
    else for (const { id } of this.all()) void this.#moveOut(id);
    if (!isFirst) return;
    for (const cluster of this.clusters.values()) this.#clusterChanged(cluster, undefined);
  }

  /** Whether the leases of all members are watched. In the layout per member they always are. */
  watchLeases(isWatched: boolean): void {
    const isShared = isWatched && this.reads === 'AllNamespaces';
    if (isShared === this.#sources.areHeartbeatsWatched) return;
    const review = () => {
      for (const { lease } of this.#members.values()) lease.review();
    };
    this.#sources.watchHeartbeats(isShared);
    void this.#sources.whenHeartbeats().then(review);
    review();
  }

  /** Whether the leases of all members are seen here. */
  get areLeasesWatched(): boolean {
    return this.reads === 'PerMember' || this.#sources.haveHeartbeatsSynced;
  }

  whenLeasesWatched(): Promise<void> {
    return this.#sources.whenHeartbeats();
  }

  /** The slices of this cluster's own are all gone: they need not be watched any more. */
  releaseOwnSlices(): void {
    const own = this.#own();
    if (own !== undefined && this.reads === 'AllNamespaces' && own.slices.hasSynced && own.slices.size === 0)
      own.slices.need(false);
  }

  /** Slices of this cluster's own are published again. */
  needOwnSlices(): void {
    this.#own()?.slices.need(true);
  }

  #own(): Member | undefined {
    return this.#options.clusterId === undefined ? undefined : this.#members.get(this.#options.clusterId);
  }

  #readShared(isFirst: boolean): void {
    const { log, world } = this.#options;
    this.#sources.openShared();
    void this.#sources.whenShared(this.#stopping.signal).then(
      () => {
        if (this.#wanted !== 'AllNamespaces') return;
        for (const { id, layout } of this.all()) if (layout === 'PerMember') this.#moveIn(id);
        this.#handlers.listed?.();
      },
      () => {},
    );
    if (!isFirst) return;
    this.#timer = world.timers.after(forbiddenMs, () => {
      const { problem = '' } = this.#sources;
      if (this.#sources.hasShared || !/forbidden|cannot/i.test(problem)) return;
      log.warn(
        'the broker does not let this member read all namespaces, reading each member: run portolan broker init',
        {
          error: problem,
        },
      );
      for (const member of this.all())
        this.#replace(member, this.#sources.reopen(placeOf(member), 'PerMember', member));
    });
  }

  /** From informers of its own to a part of the shared ones. */
  #moveIn(id: string): void {
    const member = this.#members.get(id);
    if (member !== undefined) this.#replace(member, this.#sources.reopen(placeOf(member), 'AllNamespaces', member));
  }

  /** From a part of the shared informers to informers of its own, once these are complete. */
  async #moveOut(id: string): Promise<void> {
    const before = this.#members.get(id);
    if (before === undefined) return;
    const copies = this.#sources.reopen(placeOf(before), 'PerMember', before);
    copies.lease.follow(undefined);
    const isOwn = id === this.#options.clusterId;
    this.#sources.review(copies, { isOwn });
    copies.shards.on(() => this.#sources.review(copies, { isOwn }));
    this.#moving.add(copies);
    for (const copy of [copies.shards, copies.endpoints]) copy.start();
    await Promise.all([copies.shards, copies.slices].map((copy) => copy.whenSynced()));
    await copies.endpoints.whenSynced();
    this.#moving.delete(copies);
    const member = this.#members.get(id);
    const isStill = this.#wanted === 'PerMember' && member?.slices === before.slices;
    if (!isStill || this.#stopping.signal.aborted)
      return [copies.shards, copies.endpoints].forEach((copy) => copy.stop());
    this.#replace(member, copies);
    if (this.all().every(({ layout }) => layout === 'PerMember')) this.#sources.closeShared();
  }

  #replace(before: Member, copies: MemberCopies): void {
    const member = { ...before, ...copies };
    const left = new Map(Array.from(before.shards.values(), (shard) => [shard.metadata.name, shard]));
    this.#set(member);
    for (const copy of [before.shards, before.endpoints]) copy.stop();
    this.#attach(member);
    for (const copy of [copies.shards, copies.endpoints]) copy.start();
    for (const { metadata } of copies.shards.values()) left.delete(metadata.name);
    for (const shard of left.values()) this.#handlers.shard(member, undefined, shard);
  }

  #clusterChanged(next: Cluster | undefined, previous: Cluster | undefined): void {
    const id = (next ?? previous)?.metadata.name;
    if (id === undefined || this.#wanted === undefined) return;
    const present = this.#members.get(id);
    const isSamePlace = next !== undefined && present?.cluster.spec.namespace === next.spec.namespace;
    if (present !== undefined && !isSamePlace) this.#remove(present);
    if (next !== undefined && isSamePlace) this.#set({ ...present!, cluster: next });
    else if (next !== undefined) this.#add(id, next);
    this.#handlers.changed(id, this.#members.get(id));
  }

  #add(id: string, cluster: Cluster): void {
    const member: Member = { ...this.#sources.open(cluster.spec.namespace, this.#wanted!), id, cluster };
    this.#set(member);
    this.#unsynced.add(id);
    member.lease.on((next, previous) => this.#handlers.lease(id, next, previous));
    member.slices.on((_key, next, previous) =>
      this.#handlers.endpoints?.(this.#members.get(id) ?? member, next, previous),
    );
    member.slices.onReturn(() => this.#handlers.returned?.(member));
    // The own slices are looked at once in any layout: an earlier run may have left some.
    if (id === this.#options.clusterId && this.#wanted === 'AllNamespaces') member.slices.need(true);
    this.#attach(member);
    for (const copy of copiesOf(member)) copy.start();
    void Promise.all(copiesOf(member).map((copy) => copy.whenSynced())).then(this.#handlers.listed);
  }

  /** Subscribes to the copies that another layout has others of. */
  #attach(member: Member): void {
    const { id, shards, endpoints } = member;
    const isOwn = id === this.#options.clusterId;
    const now = () => this.#members.get(id) ?? member;
    const isShared = member.layout === 'AllNamespaces';
    member.lease.follow(isShared ? this.#sources.heartbeatsOf(placeOf(member), shards) : undefined);
    const review = () => {
      this.#sources.review(member, { isOwn });
      // A copy that has just been opened is not complete: what it lacks is not gone.
      if (!member.slices.hasSynced || !member.endpoints.hasSynced) this.#unsynced.add(id);
    };
    shards.on((_key, next, previous) => {
      review();
      this.#handlers.shard(now(), next, previous);
    });
    endpoints.on((_key, next, previous) => this.#handlers.endpoints?.(now(), next, previous));
    for (const records of [shards, endpoints]) records.onReturn(() => this.#handlers.returned?.(now()));
    review();
  }

  #remove(member: Member): void {
    stopCopies(member);
    this.#members.delete(member.id);
    this.#idsByNamespace.delete(placeOf(member));
    this.#unsynced.delete(member.id);
    this.#sorted = undefined;
    this.#areShardsShared = undefined;
    this.#handlers.removed(member);
  }

  #set(member: Member): void {
    this.#members.set(member.id, member);
    this.#idsByNamespace.set(placeOf(member), member.id);
    this.#sorted = undefined;
    this.#areShardsShared = undefined;
  }
}

function copiesOf({ shards, endpoints, slices, lease }: MemberCopies) {
  return [shards, endpoints, slices, lease];
}

function stopCopies(member: MemberCopies): void {
  for (const copy of copiesOf(member)) copy.stop();
}

function placeOf({ cluster }: Member): string {
  return cluster.spec.namespace;
}

function byId(a: Member, b: Member): number {
  return a.id < b.id ? -1 : 1;
}

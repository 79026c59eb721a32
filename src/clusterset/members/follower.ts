// Follows the members of a clusterset at its broker: the Cluster objects and, for each, copies of the records in that
// member's namespace. Agents and authorities share it; each creates the copies it needs. While the broker is unreachable
// all copies stay as they are.

import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import type { Lease } from '../../kube/objects/lease.ts';
import type { KubernetesObject } from '../../kube/objects/object.ts';
import { type Cluster, clusterType } from '../kinds/cluster.ts';
import type { ServiceShard } from '../kinds/service-shard.ts';
import { memberLeaseName } from '../rules/broker-layout.ts';

export interface FollowerOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly broker: Client;
  /** Namespace of the clusterset at the broker. */
  readonly clusterset: string;
}

/** Options that all informers of one member share. */
export interface MemberScope {
  readonly client: Client;
  readonly world: FollowerOptions['world'];
  readonly log: Log;
  readonly namespace: string;
}

export interface MemberCopies {
  readonly shards: Informer<ServiceShard>;
  readonly leases: Informer<Lease>;
}

export type Followed<Copies> = Copies & { readonly id: string; readonly cluster: Cluster };

export interface MemberHandlers<Copies> {
  /** Called with informers that are not started yet; every property is an informer. */
  readonly create: (scope: MemberScope) => Copies;
  /** Subscribes to the copies of a new member, before they start. */
  readonly added: (member: Followed<Copies>) => void;
  /** The member has left, or its records moved to another namespace; its copies are stopped. */
  readonly removed: (member: Followed<Copies>) => void;
  /** After any change of a Cluster object; undefined if it is deleted. */
  readonly changed: (id: string, member: Followed<Copies> | undefined) => void;
  /** The lease of a member; undefined if it is deleted. */
  readonly lease: (id: string, next: Lease | undefined, previous: Lease | undefined) => void;
  /** After the first list of the Cluster objects, and after the first lists of each member. */
  readonly listed?: () => void;
}

type Copy = Pick<Informer<KubernetesObject>, 'start' | 'stop' | 'relist' | 'hasSynced' | 'whenSynced'>;

export class MemberFollower<Copies extends MemberCopies> {
  readonly clusters: Informer<Cluster>;
  readonly #options: FollowerOptions;
  readonly #handlers: MemberHandlers<Copies>;
  readonly #members = new Map<string, Followed<Copies>>();
  readonly #copies = new Map<string, readonly Copy[]>();
  /** Members whose first lists are not complete. */
  readonly #unsynced = new Set<string>();
  /** The members by id; undefined after a change. */
  #sorted: readonly Followed<Copies>[] | undefined;

  constructor(options: FollowerOptions, handlers: MemberHandlers<Copies>) {
    this.#options = options;
    this.#handlers = handlers;
    const { broker: client, world, log, clusterset: namespace } = options;
    this.clusters = createInformer<Cluster>({ client, world, log, type: clusterType, namespace });
    this.clusters.on((_key, next, previous) => this.#clusterChanged(next, previous));
  }

  start(): void {
    this.clusters.start();
    void this.clusters.whenSynced().then(this.#handlers.listed);
  }

  stop(): void {
    for (const copy of this.#all()) copy.stop();
  }

  /** For a broker that may have been restored from an older copy. */
  relist(): void {
    for (const copy of this.#all()) copy.relist();
  }

  get(id: string): Followed<Copies> | undefined {
    return this.#members.get(id);
  }

  /** In the order of their ids, so that every process iterates alike. */
  all(): readonly Followed<Copies>[] {
    this.#sorted ??= [...this.#members.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
    return this.#sorted;
  }

  /** All first lists are complete: a missing record does not exist. */
  get hasSynced(): boolean {
    return this.clusters.hasSynced && this.unsynced().length === 0;
  }

  /** Members whose records are not complete yet: a missing record may still come. */
  unsynced(): string[] {
    for (const id of this.#unsynced)
      if (this.#copies.get(id)?.every(({ hasSynced }) => hasSynced) !== false) this.#unsynced.delete(id);
    return [...this.#unsynced].sort();
  }

  *#all(): IterableIterator<Copy> {
    yield this.clusters;
    for (const copies of this.#copies.values()) yield* copies;
  }

  #clusterChanged(next: Cluster | undefined, previous: Cluster | undefined): void {
    const id = (next ?? previous)?.metadata.name;
    if (id === undefined) return;
    const present = this.#members.get(id);
    const isSamePlace = next !== undefined && present?.cluster.spec.namespace === next.spec.namespace;
    if (present !== undefined && !isSamePlace) this.#remove(present);
    if (next !== undefined && isSamePlace) this.#set({ ...present!, cluster: next });
    else if (next !== undefined) this.#add(id, next);
    this.#handlers.changed(id, this.#members.get(id));
  }

  #add(id: string, cluster: Cluster): void {
    const { world, log, broker: client } = this.#options;
    const scope = { client, world, log: log.with({ member: id }), namespace: cluster.spec.namespace };
    const created = this.#handlers.create(scope);
    const copies = Object.values(created) as Copy[];
    const member = { ...created, id, cluster };
    this.#set(member);
    this.#copies.set(id, copies);
    this.#unsynced.add(id);
    member.leases.on((_key, lease, before) => {
      if ((lease ?? before)?.metadata.name === memberLeaseName) this.#handlers.lease(id, lease, before);
    });
    this.#handlers.added(member);
    for (const copy of copies) copy.start();
    void Promise.all(copies.map((copy) => copy.whenSynced())).then(this.#handlers.listed);
  }

  #remove(member: Followed<Copies>): void {
    for (const copy of this.#copies.get(member.id) ?? []) copy.stop();
    this.#members.delete(member.id);
    this.#copies.delete(member.id);
    this.#unsynced.delete(member.id);
    this.#sorted = undefined;
    this.#handlers.removed(member);
  }

  #set(member: Followed<Copies>): void {
    this.#members.set(member.id, member);
    this.#sorted = undefined;
  }
}

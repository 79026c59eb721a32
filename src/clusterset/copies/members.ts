// The members of a clusterset for an agent: copies of the heartbeat, shards and endpoints in each member's namespace, and
// events of their services. The namespace of a record decides its cluster; a label never does. When a member leaves, all its records
// are reported as deleted.

import type { Log } from '../../base/log.ts';
import type { Informer, InformerReader } from '../../kube/controller/informer.ts';
import { type EndpointSlice, sourceClusterLabel } from '../../kube/objects/endpoint-slice.ts';
import type { KubernetesObject } from '../../kube/objects/object.ts';
import type { Cluster } from '../kinds/cluster.ts';
import type { Heartbeat } from '../kinds/heartbeat.ts';
import { type ServiceShard, serviceShardType } from '../kinds/service-shard.ts';
import { byNamespace, byService, type FollowerOptions, type Member, MemberFollower } from '../members/follower.ts';
import { formatServiceKey, parseRecordName, recordName, type ServiceKey } from '../rules/names.ts';
import { placementsAnnotation } from '../rules/placement.ts';
import { publishedServiceKey, recordProblem } from '../rules/shard-record.ts';

export type { Member };

export interface MemberServicesOptions {
  /** Only services with records of this member. */
  readonly only?: string;
  /** Whether slices count too, or only shards. Read at each change. */
  readonly hasSlices: () => boolean;
  readonly whenSynced: () => Promise<void>;
}

interface ServiceNews {
  readonly clusterId: string;
  readonly isSlice: boolean;
}

export class Members {
  readonly #follower: MemberFollower;
  readonly #doubts = new Map<string, ReturnType<typeof createDoubts>>();
  readonly #serviceHandlers = new Set<(serviceKey: string, news: ServiceNews) => void>();
  readonly #upgradeHandlers = new Set<(clusterId: string) => void>();
  readonly #heartbeatHandlers = new Set<(clusterId: string, heartbeat: Heartbeat | undefined) => void>();
  readonly #placementHandlers = new Set<() => void>();
  readonly #returnHandlers = new Set<() => void>();
  readonly #memberHandlers = new Set<(clusterId: string, member: Member | undefined) => void>();

  constructor(options: FollowerOptions) {
    const doubt = (id: string) => {
      const known = this.#doubts.get(id) ?? createDoubts(id, options.log.with({ member: id }));
      this.#doubts.set(id, known);
      return known;
    };
    this.#follower = new MemberFollower(
      { ...options, hasEndpoints: true },
      {
        shard: (member, next, previous) => {
          doubt(member.id)(next, next && shardKey(next));
          this.#tellShard(member.id, next ?? previous);
          const isFirstOrLast = member.shards.size === (next === undefined ? 0 : 1);
          if (isFirstOrLast) for (const handler of this.#upgradeHandlers) handler(member.id);
        },
        endpoints: (member, next, previous) => {
          doubt(member.id)(next, next && publishedServiceKey(next));
          this.#tellSlice(member.id, next, previous);
        },
        returned: () => {
          for (const handler of this.#returnHandlers) handler();
        },
        removed: (member) => this.#removed(member),
        changed: (id, member) => {
          for (const handler of this.#memberHandlers) handler(id, member);
        },
        heartbeat: (id, next, previous) => this.#tellHeartbeat(id, next, previous),
      },
    );
  }

  get clusters(): Informer<Cluster> {
    return this.#follower.clusters;
  }

  start(): void {
    this.#follower.start();
  }

  stop(): void {
    this.#follower.stop();
  }

  watchHeartbeats(isWatched: boolean): void {
    this.#follower.watchHeartbeats(isWatched);
  }

  /** Whether the heartbeats of all members are seen here. */
  get areHeartbeatsWatched(): boolean {
    return this.#follower.areHeartbeatsWatched;
  }

  whenHeartbeatsWatched(): Promise<void> {
    return this.#follower.whenHeartbeatsWatched();
  }

  /** Why the records of members cannot be read; undefined while nothing is known to be wrong. */
  get problem(): string | undefined {
    return this.#follower.problem;
  }

  /** For a broker that may have been restored from an older copy. */
  relist(): void {
    this.#follower.relist();
  }

  get(clusterId: string): Member | undefined {
    return this.#follower.get(clusterId);
  }

  /** The member whose records lie in that namespace of the broker. */
  inNamespace(namespace: string): Member | undefined {
    return this.#follower.inNamespace(namespace);
  }

  /** In the order of their ids. */
  all(): readonly Member[] {
    return this.#follower.all();
  }

  /** Members that export the service, in the order of their ids. */
  exportersOf(service: ServiceKey): readonly Member[] {
    return this.#follower.exporters(recordName(service));
  }

  get hasSynced(): boolean {
    return this.#follower.hasSynced;
  }

  whenSynced(signal: AbortSignal): Promise<void> {
    return this.#follower.whenSynced(signal);
  }

  /** As a source of keys for a controller: each key is that of a service some member has, or had, records of. */
  services(options: MemberServicesOptions): Pick<InformerReader<string>, 'on' | 'whenSynced'> {
    return {
      on: (handler) => {
        const told = (serviceKey: string, { clusterId, isSlice }: ServiceNews) => {
          if (options.only !== undefined && options.only !== clusterId) return;
          if (!isSlice || options.hasSlices()) handler(serviceKey, undefined, undefined);
        };
        for (const member of this.#follower.all()) {
          const { id } = member;
          for (const shard of member.shards.values())
            tellKey(shardKey(shard), (key) => told(key, { clusterId: id, isSlice: false }));
          for (const slice of member.endpoints.values())
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
    const shards = this.#follower.get(clusterId)?.shards.values() ?? [];
    return new Set(Array.from(shards, shardKey).filter((key) => key !== undefined));
  }

  /** Keys of all services that this member has shards or slices of. */
  recordsOf(clusterId: string): Set<string> {
    const member = this.#follower.get(clusterId);
    const keys = Array.from(member?.endpoints.values() ?? [], publishedServiceKey).filter((key) => key !== undefined);
    return new Set([...this.servicesOf(clusterId), ...keys]);
  }

  /** Whether the cluster publishes in today's form: it has at least one shard. */
  isUpgraded(clusterId: string): boolean {
    return (this.#follower.get(clusterId)?.shards.size ?? 0) > 0;
  }

  /** Called when a member's first shard appears and when its last one is removed. */
  onUpgrade(handler: (clusterId: string) => void): void {
    this.#upgradeHandlers.add(handler);
  }

  /** Called when a member's report of its placements has changed. */
  onPlacements(handler: () => void): void {
    this.#placementHandlers.add(handler);
  }

  /** Called when shards or endpoints can be read again after a failure. */
  onReturn(handler: () => void): void {
    this.#returnHandlers.add(handler);
  }

  onHeartbeat(handler: (clusterId: string, heartbeat: Heartbeat | undefined) => void): void {
    this.#heartbeatHandlers.add(handler);
  }

  /** Called when a member joins, changes (its Cluster object) or leaves. */
  onMember(handler: (clusterId: string, member: Member | undefined) => void): void {
    this.#memberHandlers.add(handler);
  }

  #removed(member: Member): void {
    for (const shard of member.shards.values()) this.#tellShard(member.id, shard);
    for (const slice of member.endpoints.values()) this.#tellSlice(member.id, undefined, slice);
    this.#doubts.delete(member.id);
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

  #tellHeartbeat(id: string, next: Heartbeat | undefined, previous: Heartbeat | undefined): void {
    for (const handler of this.#heartbeatHandlers) handler(id, next);
    const [now, before] = [next, previous].map((one) => one?.metadata.annotations?.[placementsAnnotation]);
    if (now !== before) for (const handler of this.#placementHandlers) handler();
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

function shardKey(shard: ServiceShard): string | undefined {
  const service = parseRecordName(shard.metadata.name);
  return service && formatServiceKey(service);
}

/** Logs invalid records of a member, each kind of problem once: a hostile member may write without end. */
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

// The records of clusters that are not upgraded yet, in the namespace that the ClusterSet names and nowhere else. A
// cluster with shards of its own is upgraded: what it left in the older form no longer counts. While it is being
// upgraded its shards come one by one; for a short time each service counts in the older form until its shard is there.

import type { Log } from '../../base/log.ts';
import type { Timer, World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type Informer } from '../../kube/controller/informer.ts';
import { type EndpointSlice, endpointSliceType } from '../../kube/objects/endpoint-slice.ts';
import { apiVersionOf } from '../../kube/objects/object.ts';
import { type ServiceImport, serviceImportType } from '../kinds/service-import.ts';
import { type ServiceShard, serviceShardType } from '../kinds/service-shard.ts';
import { isUpgraded, type Member, type MemberFollower, publishedBy, shardOf } from '../members/follower.ts';
import { listHeartbeats } from '../members/read-heartbeat.ts';
import { legacyOrigin, legacyShardSpec, legacySliceOrigin, legacySlices } from '../rules/legacy-import.ts';
import { formatServiceKey, type ServiceKey } from '../rules/names.ts';

export interface LegacyRecord {
  readonly cluster: string;
  readonly record: ServiceShard;
  readonly published: readonly EndpointSlice[];
}

export interface LegacyRecordsOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly broker: Client;
  readonly members: MemberFollower;
  readonly clusterId: string;
  readonly onService: (serviceKey: string) => void;
}

/** Index of `imports`: by the key of the service. */
export const legacyByService = 'service';
const byCluster = 'cluster';
/** How long the shards of a cluster that is being upgraded may take to come. */
const upgradeMs = 30_000;

export class LegacyRecords {
  readonly #options: LegacyRecordsOptions;
  /** Clusters whose first shard was seen a short time ago. */
  readonly #upgrading = new Map<string, Timer>();
  /** Members that are known to have renewed a heartbeat, where nobody here watches heartbeats. */
  #haveRun: ReadonlySet<string> = new Set();
  #copies: { namespace: string; imports: Informer<ServiceImport>; slices: Informer<EndpointSlice> } | undefined;

  constructor(options: LegacyRecordsOptions) {
    this.#options = options;
    options.members.on({
      shard: ({ id, shards }, next) => {
        const isFirstOrLast = shards.size === (next === undefined ? 0 : 1);
        if (isFirstOrLast) this.#upgraded(id);
      },
    });
  }

  /** Follows what the ClusterSet says; undefined is nowhere. */
  follow(namespace: string | undefined): void {
    if (this.#copies?.namespace === namespace) return;
    this.stop();
    if (namespace !== undefined) this.#copies = this.#open(namespace);
  }

  stop(): void {
    const copies = this.#copies;
    this.#copies = undefined;
    for (const timer of this.#upgrading.values()) timer.cancel();
    this.#upgrading.clear();
    copies?.imports.stop();
    copies?.slices.stop();
    for (const key of copies === undefined ? [] : keysIn(copies.imports)) this.#options.onService(key);
  }

  relist(): void {
    this.#copies?.imports.relist();
    this.#copies?.slices.relist();
  }

  /** Whether no cluster is left that reads the older form alone: one that never renewed a lease may be such a one. */
  isEverybodyUpgraded(): boolean {
    const { members } = this.#options;
    return (
      this.remaining().length === 0 &&
      members.all().every(({ id, heartbeat }) => this.#haveRun.has(id) || heartbeat() !== undefined)
    );
  }

  /** Finds out at the broker who has run, if that is all there is to wait for and nobody here watches it. */
  async lookForHeartbeats(): Promise<void> {
    const { members, broker } = this.#options;
    const isOpen = this.#copies !== undefined && this.remaining().length === 0;
    if (!isOpen || members.areHeartbeatsWatched || this.isEverybodyUpgraded()) return;
    const heartbeats = await listHeartbeats(broker);
    const run = members.all().filter(({ cluster }) => heartbeats.has(cluster.spec.namespace));
    this.#haveRun = new Set(run.map(({ id }) => id));
  }

  get namespace(): string | undefined {
    return this.#copies?.namespace;
  }

  get hasSynced(): boolean {
    return this.#copies === undefined || (this.#copies.imports.hasSynced && this.#copies.slices.hasSynced);
  }

  get imports(): Informer<ServiceImport> | undefined {
    return this.#copies?.imports;
  }

  recordsOf(service: ServiceKey): LegacyRecord[] {
    const key = formatServiceKey(service);
    const found = this.#copies?.imports.byIndex(legacyByService, key) ?? [];
    return found.flatMap((object) => {
      const cluster = legacyOrigin(object)!.cluster;
      return this.#isSilent(cluster, service) ? [] : [this.#recordOf(cluster, key, object)];
    });
  }

  /** Other clusters that still speak the older form alone. */
  remaining(): string[] {
    const origins = Array.from(this.#copies?.imports.values() ?? [], legacyOrigin);
    return [...new Set(origins.flatMap((origin) => origin?.cluster ?? []))].filter((id) => !this.#isUpgraded(id));
  }

  #isSilent(cluster: string, service: ServiceKey): boolean {
    if (!this.#isUpgraded(cluster)) return false;
    const member = this.#options.members.get(cluster);
    return member === undefined || !this.#upgrading.has(cluster) || hasArrived(member, service);
  }

  // A cluster upgraded before we started has been so for long enough.
  #upgraded(cluster: string): void {
    const { members } = this.#options;
    const isNews = members.hasSynced && isUpgraded(members.get(cluster));
    if (this.#copies !== undefined && isNews && !this.#upgrading.has(cluster)) {
      const timer = this.#options.world.timers.after(upgradeMs, () => {
        this.#upgrading.delete(cluster);
        this.#tellCluster(cluster);
      });
      this.#upgrading.set(cluster, timer);
    }
    this.#tellCluster(cluster);
  }

  #isUpgraded(cluster: string): boolean {
    return cluster === this.#options.clusterId || isUpgraded(this.#options.members.get(cluster));
  }

  #recordOf(cluster: string, key: string, object: ServiceImport): LegacyRecord {
    const beside = (this.#copies?.slices.byIndex(legacyByService, key) ?? []).filter(
      (slice) => legacySliceOrigin(slice)?.cluster === cluster,
    );
    return {
      cluster,
      record: {
        apiVersion: apiVersionOf(serviceShardType),
        kind: serviceShardType.kind,
        metadata: object.metadata,
        spec: legacyShardSpec(object),
      },
      published: legacySlices(object, beside),
    };
  }

  #open(namespace: string) {
    const { broker: client, world, log, onService } = this.#options;
    const shared = { client, world, log, namespace };
    const copies = {
      namespace,
      imports: createInformer<ServiceImport>({
        ...shared,
        type: serviceImportType,
        indexes: {
          [legacyByService]: (object) => keysOf(legacyOrigin(object)),
          [byCluster]: (object) => clustersOf(legacyOrigin(object)),
        },
      }),
      slices: createInformer<EndpointSlice>({
        ...shared,
        type: endpointSliceType,
        indexes: { [legacyByService]: (slice) => keysOf(legacySliceOrigin(slice)) },
      }),
    };
    copies.imports.on((_key, next, previous) => {
      for (const key of keysOf(legacyOrigin((next ?? previous)!))) onService(key);
    });
    copies.slices.on((_key, next, previous) => {
      for (const key of keysOf(legacySliceOrigin((next ?? previous)!))) onService(key);
    });
    copies.imports.start();
    copies.slices.start();
    return copies;
  }

  #tellCluster(clusterId: string): void {
    for (const object of this.#copies?.imports.byIndex(byCluster, clusterId) ?? []) {
      for (const key of keysOf(legacyOrigin(object))) this.#options.onService(key);
    }
  }
}

/** Shard and slices travel apart: a shard that speaks of endpoints counts when one of its slices is here. */
function hasArrived(member: Member, service: ServiceKey): boolean {
  const shard = shardOf(member, service);
  if (shard === undefined) return false;
  return shard.spec.readyEndpoints === 0 || publishedBy(member, service).length > 0;
}

function keysIn(imports: Informer<ServiceImport>): string[] {
  return Array.from(imports.values(), legacyOrigin).flatMap(keysOf);
}

function keysOf(origin: ReturnType<typeof legacyOrigin>): string[] {
  return origin === undefined ? [] : [formatServiceKey(origin.service)];
}

function clustersOf(origin: ReturnType<typeof legacyOrigin>): string[] {
  return origin === undefined ? [] : [origin.cluster];
}

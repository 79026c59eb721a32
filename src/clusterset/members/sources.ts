// Where the records of members are read from. In the layout per member every member has informers of its own namespace; in
// the layout of all namespaces one informer for each kind serves all members, and only what an older agent published is
// read in its namespace.

import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import type { Client } from '../../kube/client/client.ts';
import { createInformer, type InformerOptions } from '../../kube/controller/informer.ts';
import { type EndpointSlice, endpointSliceType } from '../../kube/objects/endpoint-slice.ts';
import { type Lease, leaseType } from '../../kube/objects/lease.ts';
import type { KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import type { RecordLayout } from '../kinds/cluster-set.ts';
import { endpointShardType } from '../kinds/endpoint-shard.ts';
import { type Heartbeat, heartbeatType } from '../kinds/heartbeat.ts';
import { type ServiceShard, serviceShardType } from '../kinds/service-shard.ts';
import { parseRecordName } from '../rules/names.ts';
import { publishedServiceKey } from '../rules/shard-record.ts';
import { MemberLease } from './member-lease.ts';
import { OptionalCopy, type RecordCopy } from './record-copy.ts';
import { SharedCopy } from './shared-copy.ts';

export interface SourceOptions {
  readonly world: Pick<World, 'clock' | 'timers' | 'random'>;
  readonly log: Log;
  readonly broker: Client;
  /** Whether endpoints are read too, or shards and leases alone. */
  readonly hasEndpoints: boolean;
}

export interface MemberCopies {
  readonly layout: RecordLayout;
  readonly shards: RecordCopy<ServiceShard>;
  /** EndpointShards. */
  readonly endpoints: RecordCopy<EndpointSlice>;
  /** EndpointSlices, which older agents read and publish. */
  readonly slices: OptionalCopy<EndpointSlice>;
  readonly lease: MemberLease;
}

/** By service, over the records of one member. */
export const byService = 'service';

/** Over shards: by the namespace of the service. */
export const byNamespace = 'namespace';

/** Over shards: by where their endpoints are. */
const byEndpoints = 'endpoints';

export class MemberSources {
  readonly #options: SourceOptions;
  readonly #shards: SharedCopy<ServiceShard>;
  readonly #endpoints: SharedCopy<EndpointSlice>;
  readonly #heartbeats: SharedCopy<Heartbeat>;

  constructor(options: SourceOptions) {
    this.#options = options;
    this.#shards = new SharedCopy(this.#informerOf<ServiceShard>(serviceShardType, shardIndexes));
    this.#endpoints = new SharedCopy(this.#informerOf<EndpointSlice>(endpointShardType, sliceIndexes));
    this.#heartbeats = new SharedCopy(this.#informerOf<Heartbeat>(heartbeatType, {}));
  }

  /** Copies of a member's records that are not started yet. */
  open(namespace: string, layout: RecordLayout): MemberCopies {
    const inNamespace = { namespace };
    const slices = new OptionalCopy(() =>
      createInformer({ ...this.#informerOf<EndpointSlice>(endpointSliceType, sliceIndexes), ...inNamespace }),
    );
    const leases = new OptionalCopy(() =>
      createInformer({ ...this.#informerOf<Lease>(leaseType, {}), ...inNamespace }),
    );
    return this.reopen(namespace, layout, { slices, lease: new MemberLease(namespace, leases) });
  }

  /** The copies of another layout; those that both have are taken over. */
  reopen(namespace: string, layout: RecordLayout, kept: Pick<MemberCopies, 'slices' | 'lease'>): MemberCopies {
    const { slices, lease } = kept;
    const own = new OptionalCopy(() =>
      createInformer({ ...this.#informerOf<EndpointSlice>(endpointShardType, sliceIndexes), namespace }),
    );
    if (layout === 'AllNamespaces') {
      const endpoints = this.#options.hasEndpoints ? this.#endpoints.part(namespace) : own;
      return { layout, slices, lease, shards: this.#shards.part(namespace), endpoints };
    }
    const shards = createInformer({ ...this.#informerOf<ServiceShard>(serviceShardType, shardIndexes), namespace });
    return { layout, slices, lease, shards, endpoints: own };
  }

  /** Opens and closes what depends on how the member publishes. `isOwn`: its slices are this process's to keep in order. */
  review(copies: MemberCopies, { isOwn }: { readonly isOwn: boolean }): void {
    const { layout, shards, endpoints, slices, lease } = copies;
    if (this.#options.hasEndpoints) {
      const isPerMember = layout === 'PerMember';
      if (endpoints instanceof OptionalCopy) endpoints.need(shards.countByIndex(byEndpoints, 'shards') > 0);
      if (isPerMember) slices.need(true);
      else if (!isOwn) slices.need(hasOlderShards(shards));
    }
    lease.review();
  }

  /** Shards of that name in all namespaces, as the shared copy has them. */
  sharedShards(name: string): readonly ServiceShard[] {
    return this.#shards.named(name);
  }

  heartbeatsOf(namespace: string, shards: RecordCopy<ServiceShard>) {
    return {
      beats: this.#heartbeats.part(namespace),
      isWatched: () => this.#heartbeats.isOpen,
      isOlder: () => hasOlderShards(shards),
    };
  }

  /** Reads shards and endpoints of all namespaces from now on. */
  openShared(): void {
    this.#shards.open();
    if (this.#options.hasEndpoints) this.#endpoints.open();
  }

  async whenShared(signal: AbortSignal): Promise<void> {
    await this.#shards.whenSynced(signal);
    if (this.#options.hasEndpoints) await this.#endpoints.whenSynced(signal);
  }

  get hasShared(): boolean {
    return this.#shards.hasSynced && (!this.#options.hasEndpoints || this.#endpoints.hasSynced);
  }

  /** Why all namespaces cannot be read. */
  get problem(): string | undefined {
    return this.#shards.problem ?? this.#endpoints.problem;
  }

  closeShared(): void {
    for (const copy of [this.#shards, this.#endpoints, this.#heartbeats]) copy.close();
  }

  watchHeartbeats(isWatched: boolean): void {
    if (isWatched) this.#heartbeats.open();
    else this.#heartbeats.close();
  }

  /** Resolves when they are listed, or at once if they are not watched. */
  whenHeartbeats(): Promise<void> {
    return this.#heartbeats.whenSynced();
  }

  get haveHeartbeatsSynced(): boolean {
    return this.#heartbeats.hasSynced;
  }

  get areHeartbeatsWatched(): boolean {
    return this.#heartbeats.isOpen;
  }

  relist(): void {
    for (const copy of [this.#shards, this.#endpoints, this.#heartbeats]) copy.relist();
  }

  #informerOf<T extends KubernetesObject>(type: ResourceType, indexes: InformerOptions<T, T>['indexes']) {
    const { world, log, broker: client } = this.#options;
    return { client, world, log, type, indexes, keepsLost: true } as InformerOptions<T, T>;
  }
}

/** Whether some of the member's shards are of an agent from before there were layouts. */
export function hasOlderShards(shards: Pick<RecordCopy<ServiceShard>, 'countByIndex'>): boolean {
  return shards.countByIndex(byEndpoints, 'slices') > 0;
}

const shardIndexes: InformerOptions<ServiceShard, ServiceShard>['indexes'] = {
  [byNamespace]: (shard) => keysOf(parseRecordName(shard.metadata.name)?.namespace),
  [byEndpoints]: ({ spec }) => [spec.endpointShards === undefined ? 'slices' : 'shards'],
};

const sliceIndexes: InformerOptions<EndpointSlice, EndpointSlice>['indexes'] = {
  [byService]: (slice) => keysOf(publishedServiceKey(slice)),
};

function keysOf(key: string | undefined): string[] {
  return key === undefined ? [] : [key];
}

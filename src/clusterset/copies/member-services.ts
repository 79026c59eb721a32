// The services of members, by the records at the broker: turns their events into keys of services, for the controllers of
// an agent, and logs records that cannot be counted. When a member leaves, the services of all its records are told.

import type { Log } from '../../base/log.ts';
import type { InformerReader } from '../../kube/controller/informer.ts';
import { type EndpointSlice, sourceClusterLabel } from '../../kube/objects/endpoint-slice.ts';
import type { KubernetesObject } from '../../kube/objects/object.ts';
import { type ServiceShard, serviceShardType } from '../kinds/service-shard.ts';
import { byNamespace, type MemberFollower } from '../members/follower.ts';
import { formatServiceKey, parseRecordName } from '../rules/names.ts';
import { publishedServiceKey, recordProblem } from '../rules/shard-record.ts';

export interface ServiceKeysOptions {
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

export class MemberServices {
  readonly #members: MemberFollower;
  readonly #doubts = new Map<string, ReturnType<typeof createDoubts>>();
  readonly #handlers = new Set<(serviceKey: string, news: ServiceNews) => void>();

  /** Before the members are started. */
  constructor({ members, log }: { readonly members: MemberFollower; readonly log: Log }) {
    this.#members = members;
    const doubt = (id: string) => {
      const known = this.#doubts.get(id) ?? createDoubts(id, log.with({ member: id }));
      this.#doubts.set(id, known);
      return known;
    };
    members.on({
      shard: (member, next, previous) => {
        doubt(member.id)(next, next && shardKey(next));
        this.#tellShard(member.id, next ?? previous);
      },
      endpoints: (member, next, previous) => {
        doubt(member.id)(next, next && publishedServiceKey(next));
        this.#tellSlice(member.id, next, previous);
      },
      removed: (member) => {
        for (const shard of member.shards.values()) this.#tellShard(member.id, shard);
        for (const slice of member.endpoints.values()) this.#tellSlice(member.id, undefined, slice);
        this.#doubts.delete(member.id);
      },
    });
  }

  /** As a source of keys for a controller: each key is that of a service some member has, or had, records of. */
  keys(options: ServiceKeysOptions): Pick<InformerReader<string>, 'on' | 'whenSynced'> {
    return {
      on: (handler) => {
        const told = (serviceKey: string, { clusterId, isSlice }: ServiceNews) => {
          if (options.only !== undefined && options.only !== clusterId) return;
          if (!isSlice || options.hasSlices()) handler(serviceKey, undefined, undefined);
        };
        for (const member of this.#members.all()) {
          const { id } = member;
          for (const shard of member.shards.values())
            tellKey(shardKey(shard), (key) => told(key, { clusterId: id, isSlice: false }));
          for (const slice of member.endpoints.values())
            tellKey(publishedServiceKey(slice), (key) => told(key, { clusterId: id, isSlice: true }));
        }
        this.#handlers.add(told);
        return () => this.#handlers.delete(told);
      },
      whenSynced: () => options.whenSynced(),
    };
  }

  /** Keys of all services that some member exports. */
  all(): Set<string> {
    return new Set(this.#members.all().flatMap(({ id }) => [...this.exportedBy(id)]));
  }

  /** Keys of all services in a namespace that some member exports. */
  inNamespace(namespace: string): Set<string> {
    const shards = this.#members.all().flatMap((member) => member.shards.byIndex(byNamespace, namespace));
    return new Set(shards.map(shardKey).filter((key) => key !== undefined));
  }

  /** Keys of all services that this member exports. */
  exportedBy(clusterId: string): Set<string> {
    const shards = this.#members.get(clusterId)?.shards.values() ?? [];
    return new Set(Array.from(shards, shardKey).filter((key) => key !== undefined));
  }

  /** Keys of all services that this member has shards or slices of. */
  recordedBy(clusterId: string): Set<string> {
    const member = this.#members.get(clusterId);
    const keys = Array.from(member?.endpoints.values() ?? [], publishedServiceKey).filter((key) => key !== undefined);
    return new Set([...this.exportedBy(clusterId), ...keys]);
  }

  #tellShard(id: string, shard: ServiceShard | undefined): void {
    const key = shard && shardKey(shard);
    if (key !== undefined) this.#tell(key, { clusterId: id, isSlice: false });
  }

  #tellSlice(id: string, next: EndpointSlice | undefined, previous: EndpointSlice | undefined): void {
    const keys = new Set([
      ...keysOf(next && publishedServiceKey(next)),
      ...keysOf(previous && publishedServiceKey(previous)),
    ]);
    for (const key of keys) this.#tell(key, { clusterId: id, isSlice: true });
  }

  #tell(serviceKey: string, news: ServiceNews): void {
    for (const handler of this.#handlers) handler(serviceKey, news);
  }
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

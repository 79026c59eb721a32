// Deliberately broken agents, to see that the properties catch what they are for. Each is the real agent with one lie
// between it and a home.

import { type AddressClaim, addressClaimType } from '../src/addresses/address-claim.ts';
import { type AgentOptions, createAgent } from '../src/clusterset/agent/agent.ts';
import { type Cluster, clusterType } from '../src/clusterset/kinds/cluster.ts';
import { heartbeatType } from '../src/clusterset/kinds/heartbeat.ts';
import { type ServiceShard, serviceShardType } from '../src/clusterset/kinds/service-shard.ts';
import { type JudgingRules, judgingRules } from '../src/clusterset/rules/leases/observing.ts';
import type { Client } from '../src/kube/client/client.ts';
import type { WatchEvent } from '../src/kube/client/watch-stream.ts';
import { isAlreadyExists } from '../src/kube/objects/api-error.ts';
import type { KubernetesObject, ResourceType } from '../src/kube/objects/object.ts';
import { serviceType } from '../src/kube/objects/service.ts';
import { memberNamespace } from './clusterset.ts';

export type BrokenVersion =
  | 'tie-break'
  | 'missed delete'
  | 'address reuse'
  | 'foreign write'
  | 'lease ignored'
  | 'drain ignored'
  | 'export right ignored'
  | 'derived Service kept'
  | 'observer dies'
  | 'observer cut off'
  | 'two observers';

export const brokenVersions: Readonly<Record<BrokenVersion, typeof createAgent>> = {
  'tie-break': (options) => createAgent({ ...options, broker: seeingShards(options.broker, preferOwn(options)) }),
  'missed delete': (options) => createAgent({ ...options, broker: missingDeletes(options.broker) }),
  'address reuse': (options) => createAgent({ ...options, home: ignoringClaims(options.home) }),
  'foreign write': (options) => createAgent({ ...options, broker: writingElsewhere(options.broker) }),
  'lease ignored': (options) => createAgent({ ...options, broker: neverRenewing(options.broker) }),
  'drain ignored': (options) => createAgent({ ...options, broker: seeingClusters(options.broker, 'draining') }),
  'export right ignored': (options) => createAgent({ ...options, broker: seeingClusters(options.broker, 'mayExport') }),
  'derived Service kept': (options) => createAgent({ ...options, home: keepingServices(options.home) }),
  'observer dies': observingBy({ isSeatOurs: ({ self, ids }) => ids[0] === self, isReportFresh: () => true }),
  'observer cut off': observingBy({
    times: (times) => ({ ...times, renewalGapMsMax: Number.POSITIVE_INFINITY }),
    silence: ({ leaseMs }) => leaseMs,
  }),
  'two observers': observingBy({ isReportFresh: () => true, reported: agreed }),
};

/** One rule of judging leases is wrong: nobody stands in; time counts that an observer was away; what one denies is denied. */
function observingBy(wrong: Partial<JudgingRules>): typeof createAgent {
  return (options) => createAgent({ ...options, judging: { ...judgingRules, ...wrong } });
}

function agreed([first = [], ...others]: readonly (readonly string[])[]): ReadonlySet<string> {
  return new Set(first.filter((id) => others.every((report) => report.includes(id))));
}

/** Each cluster thinks that its own export is the oldest. */
function preferOwn({ membership }: AgentOptions): (shard: ServiceShard) => ServiceShard {
  return (shard) => {
    if (shard.metadata.namespace !== membership.namespace) return shard;
    return { ...shard, metadata: { ...shard.metadata, creationTimestamp: '1970-01-01T00:00:00Z' } };
  };
}

function seeingShards(client: Client, change: (shard: ServiceShard) => ServiceShard): Client {
  return mapRead(client, serviceShardType, (object) => change(object as ServiceShard));
}

/** Hides this field of the set admin's settings. */
function seeingClusters(client: Client, field: 'draining' | 'mayExport'): Client {
  return mapRead(client, clusterType, (object) => {
    const { [field]: _unread, ...spec } = (object as Cluster).spec;
    return { ...object, spec } as Cluster;
  });
}

/** Keeps Services that should be deleted. */
function keepingServices(client: Client): Client {
  return {
    ...client,
    delete: async (type, ref, options) =>
      type.plural === serviceType.plural ? (undefined as never) : client.delete(type, ref, options),
  };
}

/** Changes what is read of one kind. */
function mapRead(client: Client, type: ResourceType, change: (object: KubernetesObject) => KubernetesObject): Client {
  const mapPage = <T extends KubernetesObject>(page: { items: T[] }) => ({
    ...page,
    items: page.items.map((item) => change(item) as T),
  });
  return {
    ...client,
    list: async (asked, options) => {
      const page = await client.list(asked, options);
      return (asked.plural === type.plural ? mapPage(page) : page) as never;
    },
    listPaged: (asked, options) =>
      mapAsync(client.listPaged(asked, options), (page) =>
        asked.plural === type.plural ? mapPage(page) : page,
      ) as never,
    watch: async (asked, options) => {
      const events = await client.watch(asked, options);
      if (asked.plural !== type.plural) return events as never;
      return mapAsync(events, (event) =>
        isObjectEvent(event) ? { ...event, object: change(event.object) } : event,
      ) as never;
    },
  };
}

/** One delete in a watch out of every two is not noticed. */
function missingDeletes(client: Client): Client {
  let count = 0;
  return {
    ...client,
    watch: async (type, options) => {
      const events = await client.watch(type, options);
      return filterAsync(events, (event) => event.type !== 'DELETED' || ++count % 2 === 0) as never;
    },
  };
}

/** An address that another owner has claimed is taken all the same. */
function ignoringClaims(client: Client): Client {
  return {
    ...client,
    create: async (type, object, options) => {
      try {
        return await client.create(type, object, options);
      } catch (error) {
        if (type.plural !== addressClaimType.plural || !isAlreadyExists(error)) throw error;
        return object;
      }
    },
    listPaged: (type, options) =>
      (type.plural === addressClaimType.plural
        ? mapAsync(client.listPaged<AddressClaim>(type, options), (page) => ({ ...page, items: [] }))
        : client.listPaged(type, options)) as never,
  };
}

/** Every third shard goes into another member's namespace. */
function writingElsewhere(client: Client): Client {
  let count = 0;
  return {
    ...client,
    create: (type, object, options) => {
      if (type.plural !== serviceShardType.plural || ++count % 3 !== 0) return client.create(type, object, options);
      const namespace = memberNamespace(object.metadata.namespace === memberNamespace('east') ? 'west' : 'east');
      return client.create(type, { ...object, metadata: { ...object.metadata, namespace } }, options);
    },
  };
}

/** Its own lease is never acknowledged, so that it never judges those of others. */
function neverRenewing(client: Client): Client {
  return {
    ...client,
    update: async (type, object, options) => {
      const written = await client.update(type, object, options);
      if (type.plural === heartbeatType.plural) throw new Error('lied to');
      return written;
    },
  };
}

function isObjectEvent(event: WatchEvent<KubernetesObject>): event is { type: 'ADDED'; object: KubernetesObject } {
  return event.type === 'ADDED' || event.type === 'MODIFIED' || event.type === 'DELETED';
}

async function* mapAsync<T, R>(source: AsyncIterable<T>, change: (item: T) => R): AsyncGenerator<R> {
  for await (const item of source) yield change(item);
}

async function* filterAsync<T>(source: AsyncIterable<T>, isKept: (item: T) => boolean): AsyncGenerator<T> {
  for await (const item of source) if (isKept(item)) yield item;
}

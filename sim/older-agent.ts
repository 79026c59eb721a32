// An agent of before there were layouts of records: it reads every member by itself, publishes EndpointSlices and renews a
// Lease, whatever its clusterset asks for, and writes shards without saying where their endpoints are. It neither reads nor
// removes what a newer agent has left of the other layout.

import { createAgent } from '../src/clusterset/agent/agent.ts';
import { type ClusterSet, clusterSetType } from '../src/clusterset/kinds/cluster-set.ts';
import { endpointShardType } from '../src/clusterset/kinds/endpoint-shard.ts';
import { heartbeatType } from '../src/clusterset/kinds/heartbeat.ts';
import { type ServiceShard, serviceShardType } from '../src/clusterset/kinds/service-shard.ts';
import type { Client } from '../src/kube/client/client.ts';
import { ApiError } from '../src/kube/objects/api-error.ts';
import { mapRead } from './broken.ts';

export const createOlderAgent: typeof createAgent = (options) => {
  const withoutLayout = mapRead(options.broker, clusterSetType, (object) => {
    const { layout: _unknown, ...spec } = (object as ClusterSet).spec ?? {};
    return { ...object, spec } as ClusterSet;
  });
  const withoutCounts = mapRead(withoutLayout, serviceShardType, (object) => {
    const { endpointShards: _unknown, ...spec } = (object as ServiceShard).spec;
    // Its own shards it sees to be other than it would write them.
    return (object.metadata.namespace === options.membership.namespace ? object : { ...object, spec }) as ServiceShard;
  });
  return createAgent({ ...options, broker: withoutNewerKinds(withoutCounts) });
};

/** Heartbeats as at a broker that grants no right to them, and EndpointShards that stay: the agent leaves both alone. */
function withoutNewerKinds(client: Client): Client {
  return {
    ...client,
    get: async (type, ref, options) => {
      if (type.plural === heartbeatType.plural) throw new ApiError('unknown', { code: 403, reason: 'Forbidden' });
      return client.get(type, ref, options);
    },
    delete: async (type, ref, options) =>
      type.plural === endpointShardType.plural ? (undefined as never) : client.delete(type, ref, options),
  };
}

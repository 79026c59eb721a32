// An agent of before there were layouts of records: it reads every member by itself, publishes EndpointSlices and renews a
// Lease, whatever its clusterset asks for, and writes shards without saying where their endpoints are.

import { createAgent } from '../src/clusterset/agent/agent.ts';
import { type ClusterSet, clusterSetType } from '../src/clusterset/kinds/cluster-set.ts';
import { mapRead } from './broken.ts';

export const createOlderAgent: typeof createAgent = (options) =>
  createAgent({
    ...options,
    broker: mapRead(options.broker, clusterSetType, (object) => {
      const { layout: _unknown, ...spec } = (object as ClusterSet).spec ?? {};
      return { ...object, spec } as ClusterSet;
    }),
  });

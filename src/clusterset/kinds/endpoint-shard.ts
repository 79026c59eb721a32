// EndpointShard: endpoints that one cluster exports of one service, at the broker in that cluster's namespace. It has the
// shape of an EndpointSlice but is a kind of our own: a right to read it in all namespaces shows nothing else of a cluster.

import type { ResourceType } from '../../kube/objects/object.ts';

export const endpointShardType: ResourceType = {
  group: 'portolan.dev',
  version: 'v1alpha1',
  plural: 'endpointshards',
  kind: 'EndpointShard',
  isNamespaced: true,
  lists: ['endpoints', 'ports'],
};

// The Kubernetes EndpointSlice, and the labels by which a slice says what it belongs to.

import type { KubernetesObject, ResourceType } from './object.ts';
import type { Protocol } from './service.ts';

export const endpointSliceType: ResourceType = {
  group: 'discovery.k8s.io',
  version: 'v1',
  plural: 'endpointslices',
  kind: 'EndpointSlice',
  isNamespaced: true,
  lists: ['endpoints', 'ports'],
};

/** On a cluster's own slices: the Service they stand behind. */
export const serviceNameLabel = 'kubernetes.io/service-name';
export const sliceManagedByLabel = 'endpointslice.kubernetes.io/managed-by';
/** On imported slices: the ServiceImport they stand behind, and the cluster their endpoints run in. */
export const importedServiceNameLabel = 'multicluster.kubernetes.io/service-name';
export const sourceClusterLabel = 'multicluster.kubernetes.io/source-cluster';
/** Makes kube-proxy leave a slice alone. */
export const serviceProxyNameLabel = 'service.kubernetes.io/service-proxy-name';

export interface EndpointSlice extends KubernetesObject {
  addressType: 'IPv4' | 'IPv6' | 'FQDN';
  endpoints: Endpoint[];
  ports?: EndpointPort[];
}

export interface Endpoint {
  addresses?: string[];
  conditions?: EndpointConditions;
  hostname?: string;
  zone?: string;
  nodeName?: string;
  targetRef?: { kind?: string; namespace?: string; name?: string; uid?: string };
  hints?: { forZones?: { name: string }[] };
}

interface EndpointConditions {
  ready?: boolean;
  serving?: boolean;
  terminating?: boolean;
}

export interface EndpointPort {
  name?: string;
  protocol?: Protocol;
  port?: number;
  appProtocol?: string;
}

/** Unknown counts as ready, as Kubernetes says. */
export function isReady(endpoint: Endpoint): boolean {
  return endpoint.conditions?.ready !== false;
}

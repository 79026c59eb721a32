// The gRPC methods of xDS: all types on one stream, or one type on each. Pure.

import type { Variant, XdsType } from '../resource.ts';

export interface Method {
  readonly variant: Variant;
  /** Undefined when all types share the stream. */
  readonly type: XdsType | undefined;
}

const services: readonly (readonly [service: string, noun: string, type: XdsType | undefined])[] = [
  ['envoy.service.discovery.v3.AggregatedDiscoveryService', 'AggregatedResources', undefined],
  ['envoy.service.cluster.v3.ClusterDiscoveryService', 'Clusters', 'cluster'],
  ['envoy.service.endpoint.v3.EndpointDiscoveryService', 'Endpoints', 'endpoints'],
  ['envoy.service.listener.v3.ListenerDiscoveryService', 'Listeners', 'listener'],
  ['envoy.service.route.v3.RouteDiscoveryService', 'Routes', 'route'],
  ['envoy.service.route.v3.VirtualHostDiscoveryService', 'VirtualHosts', 'virtual-host'],
  ['envoy.service.secret.v3.SecretDiscoveryService', 'Secrets', 'secret'],
];

const methods = new Map<string, Method>(
  services.flatMap(([service, noun, type]) => [
    [`/${service}/Stream${noun}`, { variant: 'sotw', type }] as const,
    [`/${service}/Delta${noun}`, { variant: 'delta', type }] as const,
  ]),
);

export function methodOf(path: string): Method | undefined {
  return methods.get(path);
}

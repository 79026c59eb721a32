// Defaults of a Service. Which addresses it gets, and of which families, is decided with the
// server's ranges at hand, in service-families.ts.

import type { Service, ServicePort, ServiceSpec } from './service.ts';

const affinityTimeoutSecondsDefault = 10_800;

export function applyServiceDefaults(service: Service): void {
  const spec = (service.spec ??= {});
  spec.type ||= 'ClusterIP';
  defaultAffinity(spec);
  for (const port of spec.ports ?? []) defaultPort(port);
  if (spec.type === 'NodePort' || spec.type === 'LoadBalancer') spec.externalTrafficPolicy ??= 'Cluster';
  if (spec.type === 'LoadBalancer') spec.allocateLoadBalancerNodePorts ??= true;
  if (spec.type !== 'ExternalName') spec.internalTrafficPolicy ??= 'Cluster';
  if (spec.clusterIP && !spec.clusterIPs?.length) spec.clusterIPs = [spec.clusterIP];
  service.status ??= {};
  service.status.loadBalancer ??= {};
}

function defaultAffinity(spec: ServiceSpec): void {
  spec.sessionAffinity ||= 'None';
  if (spec.sessionAffinity === 'None') delete spec.sessionAffinityConfig;
  if (spec.sessionAffinity !== 'ClientIP') return;
  spec.sessionAffinityConfig ??= {};
  spec.sessionAffinityConfig.clientIP ??= {};
  spec.sessionAffinityConfig.clientIP.timeoutSeconds ??= affinityTimeoutSecondsDefault;
}

function defaultPort(port: ServicePort): void {
  port.protocol ||= 'TCP';
  if (port.targetPort === undefined || port.targetPort === 0 || port.targetPort === '') port.targetPort = port.port;
  // Go programs write the zero value for "none".
  if (port.nodePort === 0) delete port.nodePort;
}

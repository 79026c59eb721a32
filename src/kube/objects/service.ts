// The Kubernetes Service, as far as we read it.

import type { IpFamily } from '../../base/net/ip.ts';
import type { KubernetesObject, ResourceType } from './object.ts';

export const serviceType: ResourceType = {
  group: '',
  version: 'v1',
  plural: 'services',
  kind: 'Service',
  isNamespaced: true,
};

export interface Service extends KubernetesObject {
  spec?: ServiceSpec;
  status?: { loadBalancer?: { ingress?: { ip?: string; hostname?: string }[] } };
}

export interface ServiceSpec {
  type?: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
  selector?: Record<string, string>;
  ports?: ServicePort[];
  clusterIP?: string;
  clusterIPs?: string[];
  ipFamilies?: IpFamily[];
  ipFamilyPolicy?: string;
  sessionAffinity?: SessionAffinity;
  sessionAffinityConfig?: { clientIP?: { timeoutSeconds?: number } };
  internalTrafficPolicy?: string;
  trafficDistribution?: string;
  publishNotReadyAddresses?: boolean;
  externalName?: string;
  externalIPs?: string[];
  externalTrafficPolicy?: string;
  healthCheckNodePort?: number;
  allocateLoadBalancerNodePorts?: boolean;
  loadBalancerIP?: string;
  loadBalancerClass?: string;
  loadBalancerSourceRanges?: string[];
}

export interface ServicePort {
  name?: string;
  protocol?: Protocol;
  port: number;
  targetPort?: number | string;
  nodePort?: number;
  appProtocol?: string;
}

export function isHeadless(service: Service): boolean {
  return service.spec?.clusterIP === 'None';
}

export type Protocol = 'TCP' | 'UDP' | 'SCTP';
export type SessionAffinity = 'None' | 'ClientIP';

/** Where an embedded home takes the addresses of its Services from by default; kubeadm has the first of them too. */
export const defaultServiceRanges: readonly string[] = ['10.96.0.0/12', 'fd00:10:96::/112'];

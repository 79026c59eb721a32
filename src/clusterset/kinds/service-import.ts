// ServiceImport of the Multi-Cluster Services API: a service of the clusterset as one cluster can use it.

import type { IpFamily } from '../../base/net/ip.ts';
import type { Condition, KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import type { Protocol, SessionAffinity } from '../../kube/objects/service.ts';

export const serviceImportType: ResourceType = {
  group: 'multicluster.x-k8s.io',
  version: 'v1beta1',
  plural: 'serviceimports',
  kind: 'ServiceImport',
  isNamespaced: true,
};

/** On imports that are made of sealed exports: what is seen at the broker does not tell what they should be. */
export const sealedFromAnnotation = 'portolan.dev/sealed-from';

export interface ServiceImport extends KubernetesObject {
  spec: ServiceImportSpec;
  status?: ServiceImportStatus;
}

interface ServiceImportSpec {
  type: ImportType;
  ports?: ServiceImportPort[];
  /** At most two; none if it is headless. */
  ips?: string[];
  /** In the order of the IPs; given for headless imports too. */
  ipFamilies?: IpFamily[];
  sessionAffinity?: SessionAffinity;
  sessionAffinityConfig?: { clientIP?: { timeoutSeconds?: number } };
  internalTrafficPolicy?: string;
  trafficDistribution?: string;
}

export interface ServiceImportPort {
  name?: string;
  protocol?: Protocol;
  appProtocol?: string;
  port: number;
}

interface ServiceImportStatus {
  clusters?: { cluster: string }[];
  conditions?: Condition[];
  endpointSliceObjects?: 'Present' | 'Absent';
}

export type ImportType = 'ClusterSetIP' | 'Headless';

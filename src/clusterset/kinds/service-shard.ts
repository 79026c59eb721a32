// ServiceShard: what one cluster exports of one service, at the broker in that cluster's namespace. Its name is
// `<service>.<namespace>`; its namespace identifies the cluster.

import type { IpFamily } from '../../base/net/ip.ts';
import type { KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import type { SessionAffinity } from '../../kube/objects/service.ts';
import type { StalenessPolicy } from './cluster-set.ts';
import type { ImportType, ServiceImportPort } from './service-import.ts';

export const serviceShardType: ResourceType = {
  group: 'portolan.dev',
  version: 'v1alpha1',
  plural: 'serviceshards',
  kind: 'ServiceShard',
  isNamespaced: true,
};

export interface ServiceShard extends KubernetesObject {
  spec: ServiceShardSpec;
}

export interface ServiceShardSpec {
  type: ImportType;
  /** creationTimestamp of the ServiceExport, for people: precedence counts from when the broker stored the record. */
  exportedAt: string;
  ports?: ServiceImportPort[];
  sessionAffinity?: SessionAffinity;
  sessionAffinityConfig?: { clientIP?: { timeoutSeconds?: number } };
  internalTrafficPolicy?: string;
  trafficDistribution?: string;
  publishNotReadyAddresses?: boolean;
  exportedLabels?: Record<string, string>;
  exportedAnnotations?: Record<string, string>;
  ipFamilies?: IpFamily[];
  /** As other clusters reach them; none if it is headless, or nothing in the cluster routes cluster IPs. */
  clusterIPs?: string[];
  /** Where cluster IPs are not routed: addresses at which clients in the same cluster reach the service. */
  localIPs?: string[];
  /** Each has an ip, a hostname, or both. */
  loadBalancer?: LoadBalancerAddress[];
  /** Virtual addresses that this cluster holds for the service, so that others may take the same. */
  clusterSetIPs?: string[];
  readyEndpoints?: number;
  /** Ids of the clusters that may import it; all if absent. */
  exportTo?: string[];
  /** New connections go to other clusters, while those that are open go on. */
  draining?: boolean;
  /** Percent of its share of new connections that the exporter wants, 1 to 99; all of it if absent. */
  share?: number;
  /** How many EndpointShards hold its endpoints. Agents of the release before read them if it is given. */
  endpointShards?: number;
  /** Instead of what the clusterset says. */
  onStale?: StalenessPolicy;
}

export interface LoadBalancerAddress {
  ip?: string;
  hostname?: string;
}

/** Whether a cluster may import from this shard. The exporter itself always does. */
export function isExportedTo({ spec }: ServiceShard, clusters: ExportEnds): boolean {
  return mayUse(spec.exportTo, clusters);
}

export interface ExportEnds {
  readonly exporter: string;
  readonly reader: string;
}

/** The rule of access: who may import a service is who may call it through a gateway. */
export function mayUse(exportTo: readonly string[] | undefined, clusters: ExportEnds): boolean {
  return exportTo === undefined || clusters.reader === clusters.exporter || exportTo.includes(clusters.reader);
}

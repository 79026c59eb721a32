// PLACEHOLDER until the kinds land in src/model
import type { Condition, KubernetesObject, ResourceType } from '../model/object.ts';
import type { ImportType, IpFamily, Protocol, SessionAffinity } from '../model/shard.ts';

const own = (plural: string, kind: string, isNamespaced = true): ResourceType => ({
  group: 'portolan.dev',
  version: 'v1alpha1',
  plural,
  kind,
  isNamespaced,
});
const mcs = (plural: string, kind: string): ResourceType => ({
  group: 'multicluster.x-k8s.io',
  version: 'v1beta1',
  plural,
  kind,
  isNamespaced: true,
});
export const clusterType = own('clusters', 'Cluster');
export const clusterSetType = own('clustersets', 'ClusterSet');
export const serviceShardType = own('serviceshards', 'ServiceShard');
export const addressClaimType = own('addressclaims', 'AddressClaim', false);
export const serviceExportType = mcs('serviceexports', 'ServiceExport');
export const serviceImportType = mcs('serviceimports', 'ServiceImport');

export interface Cluster extends KubernetesObject {
  spec: { namespace: string; region?: string; zone?: string; allowedRanges?: string[] };
}
export interface ServiceShard extends KubernetesObject {
  spec: {
    exportedAt: string;
    type: ImportType;
    ports?: { name?: string; protocol?: Protocol; appProtocol?: string; port: number }[];
    sessionAffinity?: SessionAffinity;
    sessionAffinityConfig?: { clientIP?: { timeoutSeconds?: number } };
    internalTrafficPolicy?: string;
    trafficDistribution?: string;
    ipFamilies?: IpFamily[];
    exportedLabels?: Record<string, string>;
    exportedAnnotations?: Record<string, string>;
    clusterIPs?: string[];
    loadBalancer?: { ip?: string; hostname?: string }[];
    clusterSetIPs?: string[];
    readyEndpoints?: number;
    exportTo?: string[];
    onStale?: 'Withdraw' | 'MarkNotReady' | 'Keep';
  };
}
export interface ClusterSet extends KubernetesObject {
  spec?: {
    ports?: 'union' | 'intersection';
    endpoints?: 'Pods' | 'ClusterIP';
    clusterSetIP?: 'allocate' | 'none';
    onStale?: 'Withdraw' | 'MarkNotReady' | 'Keep';
    lease?: { renewInterval?: string; expiry?: string; holdDownMin?: string; holdDownMax?: string };
    addresses?: { clusterset?: string[]; peers?: string[]; external?: string[]; holdTime?: string };
    dns?: { zone?: string };
  };
}
export interface ServiceExport extends KubernetesObject {
  spec?: { exportedLabels?: Record<string, string>; exportedAnnotations?: Record<string, string> };
  status?: { conditions?: Condition[] };
}
export interface ServiceImport extends KubernetesObject {
  spec: {
    type: ImportType;
    ports?: { name?: string; protocol?: Protocol; appProtocol?: string; port: number }[];
    ips?: string[];
    ipFamilies?: IpFamily[];
    sessionAffinity?: SessionAffinity;
    sessionAffinityConfig?: { clientIP?: { timeoutSeconds?: number } };
    internalTrafficPolicy?: string;
    trafficDistribution?: string;
  };
  status?: { clusters?: { cluster: string }[]; conditions?: Condition[]; endpointSliceObjects?: 'Present' | 'Absent' };
}

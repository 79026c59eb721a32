// Cluster: a member of the clusterset, at the broker in the namespace of the set. Its name is the cluster's id.

import type { Condition, KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import type { ClusterSetIpPolicy } from './cluster-set.ts';

export const clusterType: ResourceType = {
  group: 'portolan.dev',
  version: 'v1alpha1',
  plural: 'clusters',
  kind: 'Cluster',
  isNamespaced: true,
};

export interface Cluster extends KubernetesObject {
  spec: ClusterSpec;
  status?: {
    conditions?: Condition[];
    /** As the member reports it; counts if the spec names none. */
    resolver?: { endpoint: string; caBundle?: string };
    /** As the member reports them; used inside `spec.gatewayRanges` only. */
    gateways?: { address: string; port: number }[] | null;
    /** PEM, one certificate each: the roots of the member's own trust domain, as it reports them. */
    trustRoots?: string[] | null;
    /** Base64: the public key that exports are sealed for, as the member reports it. */
    sealingKey?: string | null;
    /** Version of its API server, as the member reports it. */
    kubernetesVersion?: string;
    /** Its ClusterProperties, as the member reports them: values by name. */
    properties?: Record<string, string | null> | null;
  };
}

export interface ClusterSpec {
  /** Every record in this namespace of the broker belongs to this cluster, whatever the record claims. */
  namespace: string;
  /** The member's account in the set's namespace of members. */
  serviceAccountName?: string;
  region?: string;
  zone?: string;
  /** Clusters of one network reach each other's endpoints directly; `default` if absent. */
  network?: string;
  /** Addresses that its gateways may have; without any, no gateway is used. */
  gatewayRanges?: string[];
  /** Addresses that its endpoints and services may have; any if empty. */
  allowedRanges?: string[];
  /** Addresses that its packets have when they reach other clusters: those of Pods, and of nodes where it masquerades. */
  sourceRanges?: string[] | null;
  /** Where this cluster takes the IPs of its imports from, instead of what the set says. */
  clusterSetIP?: Exclude<ClusterSetIpPolicy, 'none'>;
  /** Takes the cluster out of new connections everywhere, while those that are open go on. */
  draining?: boolean;
  /** `NAMESPACE` or `NAMESPACE/NAME` of the services it may export, `*` for any text; all if absent. */
  mayExport?: string[] | null;
  /** Where its own ranges lie for other clusters, address for address; its allowedRanges are as others see them. */
  translations?: TranslationSpec[];
  /** Where its resolver takes stub zones; the bundle is base64 of PEM. */
  resolver?: { endpoint: string; caBundle?: string };
  /** Fingerprint of the key that the admin confirmed: only with it are exports sealed for this cluster and by it. */
  sealingKey?: string;
  /** For its ClusterProfile; its id if absent. */
  displayName?: string;
  /** Ways to its API server, for its ClusterProfile. */
  accessProviders?: AccessProvider[] | null;
}

export interface AccessProvider {
  name: string;
  /** Fields as a kubeconfig has them. */
  cluster: { server: string; [field: string]: unknown };
}

export interface TranslationSpec {
  from: string;
  to: string;
}

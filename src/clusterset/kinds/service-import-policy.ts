// ServiceImportPolicy: which clusters serve the imports it selects, with which shares, as their users want it. In the home of the
// importing cluster. Pure.

import type { LabelSelector } from '../../kube/objects/label-selector.ts';
import type { Condition, KubernetesObject, ResourceType } from '../../kube/objects/object.ts';

export const serviceImportPolicyType: ResourceType = {
  group: 'portolan.dev',
  version: 'v1alpha1',
  plural: 'serviceimportpolicies',
  kind: 'ServiceImportPolicy',
  isNamespaced: false,
};

export interface ServiceImportPolicy extends KubernetesObject {
  spec?: ServiceImportPolicySpec;
  status?: { imports?: number; observedGeneration?: number; conditions?: Condition[] };
}

export interface ServiceImportPolicySpec extends ChoiceSpec {
  /** By name, beside those selected; all if neither is given. */
  namespaces?: string[];
  namespaceSelector?: LabelSelector;
  /** Names of services; all if absent. */
  services?: string[];
  /** By the labels of the import; all if absent. */
  importSelector?: LabelSelector;
  /** Not imported here if false. */
  accept?: boolean;
  /** `NAME`, `NAMESPACE/NAME`, or `NAMESPACE/*` for the same name in another namespace. */
  importAs?: string;
}

/** The wishes themselves, which a ClusterSet may have too, for imports that no policy selects. */
export interface ChoiceSpec {
  /** Groups with a weight share new connections; the others take over in this order. */
  clusters?: ClusterGroup[];
  /** Never used. */
  exclude?: ClusterMatch[];
  spillover?: { minReady?: number | string };
  /** `Direct`: never through a gateway, so no cluster of another network is used. */
  reach?: 'Any' | 'Direct';
  /** `Any`: UDP ports are carried through gateways too. */
  udp?: 'Any' | 'Direct';
}

/** Members that fulfil all that is given. */
export interface ClusterMatch {
  /** Ids. */
  clusters?: string[];
  regions?: string[];
  zones?: string[];
  /** By labels of the Cluster object at the broker. */
  clusterSelector?: LabelSelector;
  /** By ClusterProperties of the members, as they report them. */
  propertySelector?: LabelSelector;
}

interface ClusterGroup extends ClusterMatch {
  /** Percent of new connections. */
  weight?: number;
}

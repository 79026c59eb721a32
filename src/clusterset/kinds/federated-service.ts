// FederatedService: a Service that clusters of the set are asked to have and to export, at the broker in the namespace
// of the set. Its name is `<service>.<namespace>`.

import type { Condition, KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import type { ServiceSpec } from '../../kube/objects/service.ts';

export const federatedServiceType: ResourceType = {
  group: 'portolan.dev',
  version: 'v1alpha1',
  plural: 'federatedservices',
  kind: 'FederatedService',
  isNamespaced: true,
};

export interface FederatedService extends KubernetesObject {
  spec: FederatedServiceSpec;
  status?: {
    clusters?: { cluster: string; state: 'Pending' | 'Placed' | 'Refused'; message?: string }[];
    conditions?: Condition[];
  };
}

export interface FederatedServiceSpec {
  /** Ids of the clusters that get the Service; all members if absent. */
  clusters?: string[];
  exportedLabels?: Record<string, string>;
  exportedAnnotations?: Record<string, string>;
  template: {
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    spec: ServiceSpec & {
      externalTrafficPolicy?: string;
      loadBalancerClass?: string;
      loadBalancerSourceRanges?: string[];
    };
  };
}

// ServiceAccessPolicy: who may call exported services of its namespace, beside the clusters that the exports name. In the home of the
// exporting cluster. Pure.

import type { Condition, KubernetesObject, ResourceType } from '../../kube/objects/object.ts';

export const serviceAccessPolicyType: ResourceType = {
  group: 'portolan.dev',
  version: 'v1alpha1',
  plural: 'serviceaccesspolicies',
  kind: 'ServiceAccessPolicy',
  isNamespaced: true,
};

export interface ServiceAccessPolicy extends KubernetesObject {
  spec?: {
    /** Names of services; all of the namespace if absent. */
    services?: string[];
    from?: { cluster: string; namespaces?: string[] }[];
  };
  status?: { services?: number; observedGeneration?: number; conditions?: Condition[] };
}

// ServiceExportPolicy: exports every Service it selects, by namespace and by label. Pure.

import type { LabelSelector } from '../../kube/objects/label-selector.ts';
import type { Condition, KubernetesObject, ResourceType } from '../../kube/objects/object.ts';
import type { StalenessPolicy } from './cluster-set.ts';

export const serviceExportPolicyType: ResourceType = {
  group: 'portolan.dev',
  version: 'v1alpha1',
  plural: 'serviceexportpolicies',
  kind: 'ServiceExportPolicy',
  isNamespaced: false,
};

export interface ServiceExportPolicy extends KubernetesObject {
  spec: ServiceExportPolicySpec;
  status?: { exportedServices?: number; observedGeneration?: number; conditions?: Condition[] };
}

export interface ServiceExportPolicySpec {
  /** By name, beside those selected. */
  namespaces?: string[];
  /** None are selected if absent; an empty selector is all of them. */
  namespaceSelector?: LabelSelector;
  /** All services if absent. */
  serviceSelector?: LabelSelector;
  exportedLabels?: Record<string, string>;
  exportedAnnotations?: Record<string, string>;
  exportTo?: string[];
  seal?: boolean;
  onStale?: StalenessPolicy;
}

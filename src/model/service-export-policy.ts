// ServiceExportPolicy: exports every Service it selects, by namespace and by label.

import { type LabelSelector, selectsLabels } from './label-selector.ts';
import type { Condition, KubernetesObject, ResourceType } from './object.ts';
import type { StalenessPolicy } from './staleness.ts';

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
  onStale?: StalenessPolicy;
}

interface Labelled {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Nothing is exported from these unless a policy names them. */
export const reservedNamespaces: readonly string[] = ['kube-system', 'default'];

export function selectsService(
  policy: ServiceExportPolicy,
  subject: { readonly namespace: Labelled; readonly service: Labelled },
): boolean {
  const { serviceSelector } = policy.spec;
  if (!selectsNamespace(policy, subject.namespace)) return false;
  return serviceSelector === undefined || selectsLabels(serviceSelector, subject.service.labels ?? {});
}

function selectsNamespace({ spec }: ServiceExportPolicy, namespace: Labelled): boolean {
  if (spec.namespaces?.includes(namespace.name)) return true;
  if (spec.namespaceSelector === undefined || reservedNamespaces.includes(namespace.name)) return false;
  return selectsLabels(spec.namespaceSelector, namespace.labels ?? {});
}

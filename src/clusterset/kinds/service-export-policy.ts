// ServiceExportPolicy: exports every Service it selects, by namespace and by label. Which of several makes the export of a
// service, and what that export says, is decided here for agents and for whoever plans. Pure.

import { type LabelSelector, selectsLabels } from '../../kube/objects/label-selector.ts';
import { apiVersionOf, type Condition, type KubernetesObject, type ResourceType } from '../../kube/objects/object.ts';
import type { Service } from '../../kube/objects/service.ts';
import { madeAnnotation, madeMark } from '../rules/agent-marks.ts';
import { onStaleAnnotation, type StalenessPolicy } from '../rules/leases/staleness.ts';
import { compareText } from '../rules/merge/precedence.ts';
import { parseServiceKey } from '../rules/names.ts';
import { exportToAnnotation, type ServiceExport, serviceExportType } from './service-export.ts';

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

/** Label of the exports that a policy made: its name. */
export const policyLabel = 'portolan.dev/export-policy';

/** The first by name of those that select the service; undefined if none does. */
export function policyFor(
  policies: Iterable<ServiceExportPolicy>,
  subject: { readonly namespace: KubernetesObject; readonly service: Service },
): ServiceExportPolicy | undefined {
  if (subject.service.spec?.type === 'ExternalName') return undefined;
  const labelled = { namespace: subject.namespace.metadata, service: subject.service.metadata };
  return [...policies]
    .filter((policy) => policy.metadata.deletionTimestamp === undefined && selectsService(policy, labelled))
    .sort((a, b) => compareText(a.metadata.name, b.metadata.name))[0];
}

export function exportOfPolicy(key: string, { metadata, spec }: ServiceExportPolicy, clusterId: string): ServiceExport {
  const { exportedLabels, exportedAnnotations, exportTo, onStale } = spec;
  return {
    apiVersion: apiVersionOf(serviceExportType),
    kind: serviceExportType.kind,
    metadata: {
      ...parseServiceKey(key),
      labels: { [policyLabel]: metadata.name },
      annotations: {
        [madeAnnotation]: madeMark(parseServiceKey(key), clusterId),
        ...(exportTo === undefined ? {} : { [exportToAnnotation]: exportTo.join(',') }),
        ...(onStale === undefined ? {} : { [onStaleAnnotation]: onStale }),
      },
    },
    spec: {
      ...(exportedLabels === undefined ? {} : { exportedLabels }),
      ...(exportedAnnotations === undefined ? {} : { exportedAnnotations }),
    },
  };
}

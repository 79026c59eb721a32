// Which ServiceExportPolicy exports a service, and the ServiceExport it makes: for agents and for plans. Pure.

import { compareText } from '../../base/compare-text.ts';
import { selectsLabels } from '../../kube/objects/label-selector.ts';
import { apiVersionOf, type KubernetesObject } from '../../kube/objects/object.ts';
import type { Service } from '../../kube/objects/service.ts';
import {
  exportToAnnotation,
  onStaleAnnotation,
  type ServiceExport,
  sealAnnotation,
  serviceExportType,
} from '../kinds/service-export.ts';
import type { ServiceExportPolicy } from '../kinds/service-export-policy.ts';
import { madeAnnotation, madeMark, policyLabel } from './agent-marks.ts';
import { parseServiceKey } from './names.ts';

interface Labelled {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Nothing is exported from these unless a policy names them. */
const reservedNamespaces: readonly string[] = ['kube-system', 'default'];

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
  const { exportedLabels, exportedAnnotations, exportTo, onStale, seal } = spec;
  return {
    apiVersion: apiVersionOf(serviceExportType),
    kind: serviceExportType.kind,
    metadata: {
      ...parseServiceKey(key),
      labels: { [policyLabel]: metadata.name },
      annotations: {
        [madeAnnotation]: madeMark(parseServiceKey(key), clusterId),
        ...(exportTo === undefined ? {} : { [exportToAnnotation]: exportTo.join(',') }),
        ...(seal === true ? { [sealAnnotation]: 'true' } : {}),
        ...(onStale === undefined ? {} : { [onStaleAnnotation]: onStale }),
      },
    },
    spec: {
      exportedLabels,
      exportedAnnotations,
    },
  };
}

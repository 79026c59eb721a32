// ServiceExport of the Multi-Cluster Services API: a cluster offers its Service of the same name to the clusterset.

import type { Condition, KubernetesObject, ResourceType } from '../../kube/objects/object.ts';

export const serviceExportType: ResourceType = {
  group: 'multicluster.x-k8s.io',
  version: 'v1beta1',
  plural: 'serviceexports',
  kind: 'ServiceExport',
  isNamespaced: true,
};

/** `true` takes this cluster's part of the service out of new connections, while those that are open go on. */
export const drainAnnotation = 'portolan.dev/drain';

/** Limits which clusters import a service: ids, separated by commas. */
export const exportToAnnotation = 'portolan.dev/export-to';

/** `true` seals the export: at the broker only the clusters that it is for can read it. */
export const sealAnnotation = 'portolan.dev/seal';

export interface ServiceExport extends KubernetesObject {
  spec?: {
    exportedLabels?: Record<string, string>;
    exportedAnnotations?: Record<string, string>;
  };
  status?: {
    conditions?: Condition[];
    /** Who may see it besides this cluster; absent if all may. */
    clusters?: { cluster: string }[];
  };
}

/** What cannot be read as a no is a yes: an export is never wider than what was asked. */
export function isSealed({ metadata }: Pick<ServiceExport, 'metadata'>): boolean {
  const text = metadata.annotations?.[sealAnnotation];
  return text !== undefined && text !== 'false';
}

/** An annotation without names does not limit the export. Undefined without the annotation. */
export function exportToOf(serviceExport: ServiceExport): string[] | undefined {
  const text = serviceExport.metadata.annotations?.[exportToAnnotation];
  if (text === undefined) return undefined;
  const ids = text.split(',').map((id) => id.trim());
  return [...new Set(ids.filter((id) => id !== ''))].sort();
}

export const onStaleAnnotation = 'portolan.dev/on-stale';

/** Percent of its share of new connections that the exporter wants: 1 to 100. */
export const shareAnnotation = 'portolan.dev/share';

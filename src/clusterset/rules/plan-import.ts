// Plans the ServiceImport that stands for a merged service in this cluster. Pure.

import { apiVersionOf } from '../../kube/objects/object.ts';
import { type ServiceImport, serviceImportType } from '../kinds/service-import.ts';
import type { Merge } from './merge/merged.ts';
import type { ServiceKey } from './names.ts';

export const managedByLabel = 'app.kubernetes.io/managed-by';
export const manager = 'portolan';

export interface ImportPlanRequest {
  readonly service: ServiceKey;
  readonly merge: Merge;
  /** In the order of the families they were taken for; empty for headless services and sets without clusterset IPs. */
  readonly ips: readonly string[];
  /** The agent's own. */
  readonly annotations?: Readonly<Record<string, string>>;
}

export function planImport({ service, merge, ips, annotations }: ImportPlanRequest): ServiceImport {
  return {
    apiVersion: apiVersionOf(serviceImportType),
    kind: serviceImportType.kind,
    metadata: {
      name: service.name,
      namespace: service.namespace,
      // Exported metadata comes first: no export can override the label that shows the manager.
      labels: { ...merge.labels, [managedByLabel]: manager },
      annotations: { ...merge.annotations, ...annotations },
    },
    spec: planSpec(merge, ips),
  };
}

export function isOurImport(object: ServiceImport): boolean {
  return object.metadata.labels?.[managedByLabel] === manager;
}

export function planSpec(merge: Merge, ips: readonly string[]): ServiceImport['spec'] {
  return {
    type: merge.type,
    ports: merge.ports
      .filter((port) => port.isExposed)
      .map(({ name, protocol, port, appProtocol }) => ({
        ...(name === '' ? {} : { name }),
        protocol,
        port,
        appProtocol,
      })),
    ...(ips.length === 0 ? {} : { ips: [...ips] }),
    ipFamilies: [...merge.ipFamilies],
    sessionAffinity: merge.sessionAffinity,
    ...(merge.affinityTimeoutSeconds === undefined
      ? {}
      : { sessionAffinityConfig: { clientIP: { timeoutSeconds: merge.affinityTimeoutSeconds } } }),
    internalTrafficPolicy: merge.internalTrafficPolicy,
    trafficDistribution: merge.trafficDistribution,
  };
}
